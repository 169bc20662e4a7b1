"""Which all-reduce is the quickest at which size.

usage: python compare_algorithms.py [PICTURE.png]     (the picture needs matplotlib)
"""

import sys

import tandem

# listing: sweep
sizes = [1 << exponent for exponent in range(10, 21, 2)]
table = tandem.simulate.sweep(
    "all_reduce",
    bytes=sizes,
    algorithm=["one_shot_ll", "one_shot", "two_shot", "ring"],
    machine="h200x8",
    pes=8,
)
print(table)

for size in sizes:
    quickest = min((row for row in table if row["bytes"] == size), key=lambda row: row["time_us"])
    chosen = tandem.simulate.all_reduce(bytes=size, pes=8, machine="h200x8")
    print(f"{size:>10} bytes: {quickest['algorithm']} of these; the library chooses {chosen.algorithm}")
# end of listing

if len(sys.argv) > 1:
    table.plot().figure.savefig(sys.argv[1])
    print("wrote", sys.argv[1])
