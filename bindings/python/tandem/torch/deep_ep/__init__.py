"""DeepEP's interface on Tandem: the same names, arguments and results, for GPUs of one node and for CPUs.

    from tandem.torch.deep_ep import Buffer          in place of deep_ep
    buffer = Buffer(group)

A group's world and its plans hold the memory, so sizes of buffers and tuning options of kernels have no effect. Calls
run on the current stream: events are complete in its order, and receiving hooks have nothing left to do. Arguments that
need what Tandem does not have raise Unsupported with their names.
"""

from __future__ import annotations

from ._buffer import Buffer
from ._events import Config, EventHandle, EventOverlap

__all__ = ["Buffer", "Config", "EventHandle", "EventOverlap"]
