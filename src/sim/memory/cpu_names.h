#pragma once
/// Names of the Block on CPUs that the simulator uses throughout.

#include "tandem/impl/cpu/block_core.h"

namespace tandem::sim {

using cpu::AtomicOp;
using cpu::Buffer;
using cpu::Completion;
using cpu::MultimemOp;
using cpu::PacketForm;
using cpu::SignalUpdate;

}  // namespace tandem::sim
