// Recordings of worlds of processes: each records its own device, PE 0's process draws all.
#include <algorithm>

#include "world/pes/host_clocks.h"
#include "world/pes/processes.h"
#include "world/pes/profiler.h"

namespace tandem::world {

void Processes::start_profiler(const WorldOptions& options) {
  const Size mail_bytes = devices().clock_mail_bytes();
  const Size offset = allocator_.allocate_symmetric(me(), MemoryKind::kControl, mail_bytes, "clock mail", mail_bytes);
  clear(pe_, me(), offset, mail_bytes, MemoryKind::kControl);
  ProfilerSetup setup;
  for (int pe = 0; pe < num_pes(); ++pe) {
    std::byte* const mail = segment_.base() + pe * segment_.stride() + offset;
    const bool is_far = pe >= pes_of_host_;
    const int clock = device_numbers_[static_cast<std::size_t>(pe)];
    setup.pes.push_back(pe == me() ? ClockPe{pe_.device, clock, pe_.stream.get(), mail, is_far}
                                   : ClockPe{0, clock, nullptr, mail, is_far});
  }
  setup.meet = [this] { member_.barrier("clocks are compared"); };
  setup.numbers = [this](std::uint64_t own) {
    std::vector<std::uint64_t> all;
    for (const Bytes& its : member_.all_gather(Writer().u64(own).result(), "numbers of a recording"))
      all.push_back(Reader(its).u64());
    return all;
  };
  if (has_hosts()) setup.compare_hosts = [this] { return HostClocks(*this).compare(); };
  profiler_ = make_profiler(*this, std::move(setup), options);
  profiler_->align();
}

void Processes::gather_profiles() {
  Profiler& profiler = profiler_of(*this);
  profiler.align();
  trace::GpuPart own = profiler.part();
  own.base = reinterpret_cast<std::uint64_t>(segment_.base());
  for (const auto& [offset, buffer] : allocator_.local_buffers(me()))
    own.buffers.push_back({offset, buffer.bytes, buffer.element_bytes, buffer.name});
  std::vector<trace::GpuPart> others;
  for (const Bytes& its : recordings_for_first(own.encode())) {
    trace::GpuPart part = trace::GpuPart::decode(its);
    part.move_to(own.base, num_pes() * segment_.stride());
    for (const trace::GpuBuffer& buffer : part.buffers)
      allocator_.know_local(static_cast<int>(others.size()) + 1, buffer.offset,
                            {buffer.name, buffer.bytes, buffer.element_bytes});
    others.push_back(std::move(part));
  }
  profiler.add(std::move(others));
}

/// Returns, on PE 0, the recordings of PEs 1, 2, ...; nothing on the others.
std::vector<Bytes> Processes::recordings_for_first(const Bytes& own) {
  std::vector<Bytes> others;
  if (has_hosts()) {
    for (int pe = 1; pe < num_pes(); ++pe)
      if (Bytes its = pass_to_first(own, pe); me() == 0) others.push_back(std::move(its));
    return others;
  }
  std::vector<std::size_t> sizes;
  for (const Bytes& size : member_.all_gather(Writer().u64(own.size()).result(), "sizes of recordings"))
    sizes.push_back(Reader(size).u64());
  const bootstrap::SharedMemory memory(exchange_, member_.world(), *std::max_element(sizes.begin(), sizes.end()));
  std::copy(own.begin(), own.end(), memory.on(me()));
  member_.barrier("recordings are written");
  for (int pe = 1; me() == 0 && pe < num_pes(); ++pe)
    others.emplace_back(memory.on(pe), memory.on(pe) + sizes[static_cast<std::size_t>(pe)]);
  member_.barrier("recordings are read");
  return others;
}

/// Returns, on PE 0, the bytes of a PE, which go there by the rendezvous in pieces. The last piece is not full.
Bytes Processes::pass_to_first(const Bytes& own, int from) {
  Bytes got;
  if (me() != 0 && me() != from) return got;
  const Team pair{0, from, 2, me() == 0 ? 0 : 1, 1};
  View left = me() == from ? View(own) : View();
  for (std::size_t bytes = bootstrap::kMostContribution; bytes == bootstrap::kMostContribution;) {
    const View piece = left.first(std::min(left.size(), bootstrap::kMostContribution));
    left = left.subspan(piece.size());
    const Bytes its = member_.all_gather(piece, "recordings", pair).back();
    bytes = its.size();
    if (me() == 0) got.insert(got.end(), its.begin(), its.end());
  }
  return got;
}

}  // namespace tandem::world
