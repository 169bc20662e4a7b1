#include "world/pes/profiler.h"

#include "tandem/error.h"

namespace tandem::world {

std::unique_ptr<Profiler> make_profiler(const Pes& pes, ProfilerSetup setup, const WorldOptions& options) {
  setup.options = options.record;
  setup.machine = pes.machine().name;
  AddressBook& book = setup.book;
  book.place = [&pes](std::uint64_t address) -> trace::GpuPlace {
    const auto* const memory = reinterpret_cast<const std::byte*>(address);
    const Segment& segment = pes.segment();
    if (memory < segment.base() || memory >= segment.base() + pes.num_pes() * segment.stride()) return {};
    const int pe = segment.pe_of(memory);
    return {pe, memory - segment.base() - pe * segment.stride()};
  };
  book.describe = [&pes, place = book.place](std::uint64_t address) {
    return place(address).pe < 0 ? std::string() : pes.describe(reinterpret_cast<const void*>(address));
  };
  return pes.devices().make_profiler(setup);
}

Profiler& profiler_of(const Pes& pes) {
  if (pes.profiler() == nullptr)
    throw Unsupported("timeline: nothing was recorded; the option `record` of the world has to be on");
  return *pes.profiler();
}

}  // namespace tandem::world
