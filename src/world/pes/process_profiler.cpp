// Recordings of worlds of processes: each records its own device, PE 0's process draws all.
#include <algorithm>

#include "world/pes/processes.h"
#include "world/pes/profiler.h"

namespace tandem::world {

void Processes::start_profiler(const WorldOptions& options) {
  if (has_hosts())
    throw Unsupported("record: a world on several hosts records no timeline, since clocks of hosts are not compared");
  if (needs_proxies() && devices().kind() == DeviceKind::kGpu)
    throw Unsupported("record: kernels between nodes of GPUs have no form that records");
  const Size mail_bytes = devices().clock_mail_bytes();
  const Size offset = allocator_.allocate_symmetric(me(), MemoryKind::kControl, mail_bytes, "clock mail", mail_bytes);
  clear(pe_, me(), offset, mail_bytes, MemoryKind::kControl);
  std::vector<ClockPe> clocks;
  for (int pe = 0; pe < num_pes(); ++pe) {
    std::byte* const mail = segment_.base() + pe * segment_.stride() + offset;
    clocks.push_back(pe == me() ? ClockPe{pe_.device, pe_.stream.get(), mail} : ClockPe{0, nullptr, mail});
  }
  profiler_ = make_profiler(*this, std::move(clocks), options, [this] { member_.barrier("clocks are compared"); });
  profiler_->align();
}

void Processes::gather_profiles() {
  Profiler& profiler = profiler_of(*this);
  profiler.align();
  trace::GpuPart own = profiler.part();
  own.base = reinterpret_cast<std::uint64_t>(segment_.base());
  for (const auto& [offset, buffer] : allocator_.local_buffers(me()))
    own.buffers.push_back({offset, buffer.bytes, buffer.element_bytes, buffer.name});
  const Bytes bytes = own.encode();
  std::vector<std::size_t> sizes;
  for (const Bytes& size : member_.all_gather(Writer().u64(bytes.size()).result(), "sizes of recordings"))
    sizes.push_back(Reader(size).u64());
  const bootstrap::SharedMemory memory(exchange_, member_.world(), *std::max_element(sizes.begin(), sizes.end()));
  std::copy(bytes.begin(), bytes.end(), memory.on(me()));
  member_.barrier("recordings are written");
  std::vector<trace::GpuPart> others;
  for (int pe = 1; me() == 0 && pe < num_pes(); ++pe) {
    const std::byte* const its = memory.on(pe);
    trace::GpuPart part = trace::GpuPart::decode({its, sizes[static_cast<std::size_t>(pe)]});
    part.move_to(own.base, num_pes() * segment_.stride());
    for (const trace::GpuBuffer& buffer : part.buffers)
      allocator_.know_local(pe, buffer.offset, {buffer.name, buffer.bytes, buffer.element_bytes});
    others.push_back(std::move(part));
  }
  profiler.add(std::move(others));
  member_.barrier("recordings are read");
}

}  // namespace tandem::world
