"""Collectives and symmetric memory of processes on this computer.

usage: tandem launch -n 2 python world.py
"""

import numpy
import tandem

with tandem.World.from_environment(device="host") as world:
    x = numpy.full(4, world.pe, "float32")
    total = world.all_reduce(x)
    assert (total == sum(range(world.pes))).all()

    # listing: symmetric
    data, words = world.zeros(1024), world.signals(1)
    after = (world.pe + 1) % world.pes
    data.put(numpy.full(16, world.pe, "float32"), after)  # into the memory of the next PE
    words.signal(1, after)  # visible there after the data
    words.wait(1)
    before = data.local.numpy()[0]
    # end of listing

    assert before == (world.pe - 1) % world.pes
    if world.pe == 0:
        print(f"{world.pes} PEs: the sum is {total[0]:.0f}, and PE {before:.0f} wrote into the memory of PE 0")
