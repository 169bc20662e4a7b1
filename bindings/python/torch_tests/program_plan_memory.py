"""All plans of a layer of Llama 3 70B, forward and backward, need at most the memory that the largest two need."""

from __future__ import annotations

import tandem
from common import DEVICE, join
from tandem._c import LAYOUTS, TYPES
from tandem._plan import OperatorPlan

rank, size = join()
# Sequence parallelism on two processes, m = 8192: four products, and the gradients of their inputs.
GATHER, SCATTER = "all_gather_gemm", "gemm_reduce_scatter"
PRODUCTS = [
    (GATHER, 10240, 8192),
    (SCATTER, 8192, 8192),
    (GATHER, 57344, 8192),
    (SCATTER, 8192, 28672),
    (GATHER, 28672, 8192),
    (SCATTER, 8192, 57344),
    (GATHER, 8192, 8192),
    (SCATTER, 8192, 10240),
]
# Units of memory, and the most of them: a heap is found to one of them. On CPUs no page of it is used.
UNIT, MOST = 64 << 20, 32


def fits(products, units):
    """Whether a heap of so many units, which does not grow, has room for plans of all these products."""
    heap = units * UNIT
    kind = "gpu" if DEVICE == "cuda" else "host"
    with tandem.World.from_torch(device=kind, heap_bytes=heap, heap_limit_bytes=heap, staging_bytes=1 << 20) as world:
        try:
            for operator, n, k in products:
                options = {"type": TYPES["bfloat16"], "b_layout": LAYOUTS["NxK"]}
                OperatorPlan(world, operator, 8192, [n], k, **options)
        except tandem.OutOfMemory:
            return False
        return True


def needed(products):
    """The least heap in which they have room, in units."""
    least, most = 0, MOST
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if fits(products, middle) else (middle, most)
    assert most < MOST, products
    return most


# Gathered rows have k columns, and sums n: products that are alike there need the same.
alike = {(one[0], one[2] if one[0] == GATHER else one[1]): one for one in PRODUCTS}
least = {key: needed([one]) for key, one in alike.items()}
alone = sorted(least[operator, k if operator == GATHER else n] for operator, n, k in PRODUCTS)
together, allowed = needed(PRODUCTS), alone[-1] + alone[-2]
print(f"all plans {together * UNIT >> 20} MiB, the largest two {allowed * UNIT >> 20} MiB")
assert together <= allowed
print("all equal")
