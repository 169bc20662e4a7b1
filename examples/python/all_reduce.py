"""An all-reduce of numpy arrays on eight simulated GPUs, and where its time goes.

usage: python all_reduce.py [TIMELINE.html]
"""

import sys

# listing: call
import numpy
import tandem

arrays = [numpy.full(1 << 18, pe, "float32") for pe in range(8)]
result = tandem.simulate.all_reduce(arrays, machine="h200x8")

assert all((one == sum(range(8))).all() for one in result.results)
print(result)
print(f"bus bandwidth {result.bus_gbps:.0f} GB/s, bound by {result.bound_by}")
for share in result.critical_path:
    print(f"{share.us:8.2f} us  {share.name}")
# end of listing

if len(sys.argv) > 1:
    print("wrote", result.timeline.save(sys.argv[1]))
