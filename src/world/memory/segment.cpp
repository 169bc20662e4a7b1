#include "world/memory/segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "tandem/error.h"

namespace tandem::world {

namespace {

void check_reach(Devices& devices, const std::vector<int>& numbers) {
  for (const int from : numbers)
    for (const int to : numbers)
      if (from != to && !devices.memory().reaches(from, to))
        throw Unsupported(fmt::format("{} backend: {} does not reach {} by loads and stores", devices.name(),
                                      devices.name_of(from), devices.name_of(to)));
}

}  // namespace

Segment::Segment(Devices& devices, const std::vector<int>& numbers, const Bytes& bytes)
    : devices_(devices), pes_(static_cast<int>(numbers.size())) {
  check_reach(devices, numbers);
  Size granularity = 1;
  for (const int device : numbers)
    granularity = std::max(granularity, devices.memory().granularity(device, Handles::kNone));
  const Size first = round_up(std::max<Size>(bytes.first, 1), granularity);
  stride_ = std::max(first, round_up(bytes.most, granularity));
  reserve();
  try {
    make_all(numbers, first);
  } catch (...) {
    release();
    throw;
  }
}

Segment::Segment(Devices& devices, bootstrap::WorldMember& member, bootstrap::FdExchange& exchange,
                 const Sharing& sharing, int device, const Bytes& bytes)
    : devices_(devices), pes_(member.size()), sharing_(sharing) {
  // Devices of another kind may need other multiples.
  DeviceMemory& memory = devices.memory();
  const auto needed = static_cast<std::uint64_t>(memory.granularity(device, sharing_.handles));
  Size granularity = 1;
  for (const tandem::Bytes& other : member.all_gather(Writer().u64(needed).result(), "granularity of memory"))
    granularity = std::max(granularity, static_cast<Size>(Reader(other).u64()));
  const Size first = round_up(std::max<Size>(bytes.first, 1), granularity);
  stride_ = std::max(first, round_up(bytes.most, granularity));
  try {
    const Size kept = bytes.kept % granularity == 0 ? bytes.kept : 0;
    if (kept > 0 && kept < first) {
      share(member, exchange, device, {{memory.create(device, sharing_.handles, kept), kept}});
      share(member, exchange, device, {{memory.create(device, sharing_.handles, first - kept), first - kept}});
      kept_ = kept;
      grown_.push_back(first - kept);
    } else {
      share(member, exchange, device, {{memory.create(device, sharing_.handles, first), first}});
      kept_ = first;
    }
  } catch (...) {
    release();
    throw;
  }
}

Segment::Segment(Devices& devices, bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, int device,
                 const std::vector<Chunk>& chunks)
    : devices_(devices), pes_(member.size()) {
  for (const Chunk& chunk : chunks) stride_ += chunk.bytes;
  try {
    share(member, exchange, device, chunks);
  } catch (...) {
    release();
    throw;
  }
}

void Segment::reserve() {
  if (stride_ > kMostAddresses / pes_) {
    const double gib = static_cast<double>(stride_) / static_cast<double>(Size{1} << 30);
    throw InvalidArgument(
        fmt::format("heap_limit_bytes, or the size of registered memory: {} PEs x {:.2f} GiB of addresses = {:.2f} GiB "
                    "given, allowed are {} GiB in all",
                    pes_, gib, gib * pes_, kMostAddresses >> 30));
  }
  base_ = devices_.memory().reserve(stride_ * pes_);
}

void Segment::make_all(const std::vector<int>& numbers, Size bytes) {
  for (int pe = 0; pe < pes_; ++pe) {
    const int device = numbers[static_cast<std::size_t>(pe)];
    map(pe, {{devices_.memory().create(device, Handles::kNone, bytes), bytes}}, numbers);
  }
  there_ += bytes;
}

void Segment::grow(const std::vector<int>& numbers, Size bytes) {
  const std::size_t before = mapped_.size();
  try {
    make_all(numbers, bytes);
  } catch (...) {
    unmap_down_to(before);
    throw;
  }
}

void Segment::grow(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, int device, Size bytes) {
  Chunk chunk{0, bytes};
  bool is_made = false;
  try {
    member.all_or_none("growth of the heap", [&] {
      chunk.handle = devices_.memory().create(device, sharing_.handles, bytes);
      is_made = true;
    });
  } catch (...) {
    if (is_made) devices_.memory().release(chunk.handle);
    throw;
  }
  const std::size_t before = mapped_.size();
  try {
    share(member, exchange, device, {chunk});
  } catch (...) {
    unmap_down_to(before);
    throw;
  }
  grown_.push_back(bytes);
}

Size Segment::suspendable() const {
  const std::vector<Size>& chunks = is_suspended() ? suspended_ : grown_;
  return std::accumulate(chunks.begin(), chunks.end(), Size{0});
}

void Segment::suspend() {
  const auto is_kept = [&](const Mapping& mapping) { return (mapping.address - base_) % stride_ < kept_; };
  const auto gone = std::stable_partition(mapped_.begin(), mapped_.end(), is_kept);
  unmap_down_to(static_cast<std::size_t>(gone - mapped_.begin()));
  suspended_ = std::exchange(grown_, {});
  is_suspended_ = true;
  there_ = kept_;
}

void Segment::resume(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, int device) {
  const std::vector<Size> chunks = std::exchange(suspended_, {});
  try {
    for (const Size bytes : chunks) grow(member, exchange, device, bytes);
  } catch (...) {
    suspend();
    suspended_ = chunks;
    throw;
  }
  is_suspended_ = false;
}

/// Maps the chunks of all PEs behind the mapped part. If one PE fails, all throw. Takes the chunks of this process even
/// then, and the caller unmaps the chunks that are mapped by then.
void Segment::share(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, int device,
                    const std::vector<Chunk>& own) {
  std::vector<std::vector<Chunk>> all;
  try {
    all = exchange_chunks(member, exchange, devices_.memory(), sharing_, own);
  } catch (...) {
    world::release(devices_.memory(), own);
    throw;
  }
  all[static_cast<std::size_t>(member.pe())] = own;
  member.all_or_none("memory is mapped", [&] {
    int next = 0;
    try {
      if (base_ == nullptr) {
        reserve();
        add_stand_ins(all, device);
      }
      while (next < pes_) {
        const int pe = next++;
        map(pe, all[static_cast<std::size_t>(pe)], {device});
      }
    } catch (...) {
      for (; next < pes_; ++next) world::release(devices_.memory(), all[static_cast<std::size_t>(next)]);
      throw;
    }
  });
  for (const Chunk& chunk : own) there_ += chunk.bytes;
}

/// Adds memory of this process for each PE of another host, in place of that PE's WaitWords.
void Segment::add_stand_ins(std::vector<std::vector<Chunk>>& all, int device) const {
  DeviceMemory& memory = devices_.memory();
  for (std::vector<Chunk>& chunks : all) {
    if (!chunks.empty()) continue;
    const Size bytes = memory.granularity(device, Handles::kNone);
    chunks.push_back({memory.create(device, Handles::kNone, bytes), bytes});
  }
}

/// Takes the chunks, even if it fails.
void Segment::map(int pe, const std::vector<Chunk>& chunks, const std::vector<int>& numbers) {
  DeviceMemory& memory = devices_.memory();
  std::byte* const begin = base_ + stride_ * pe + there_;
  std::byte* address = begin;
  std::size_t taken = 0;
  if (chunks.empty()) return;  // a PE of another host
  try {
    for (const Chunk& chunk : chunks) {
      memory.map(address, chunk);
      mapped_.push_back({address, chunk});
      ++taken;
      address += chunk.bytes;
    }
  } catch (...) {
    for (; taken < chunks.size(); ++taken) memory.release(chunks[taken].handle);
    throw;
  }
  const std::set<int> each(numbers.begin(), numbers.end());
  memory.allow(begin, address - begin, {each.begin(), each.end()});
}

Segment::~Segment() { release(); }

void Segment::unmap_down_to(std::size_t mappings) {
  for (; mapped_.size() > mappings; mapped_.pop_back()) {
    devices_.memory().unmap(mapped_.back().address, mapped_.back().chunk.bytes);
    devices_.memory().release(mapped_.back().chunk.handle);
  }
}

void Segment::release() {
  unmap_down_to(0);
  if (base_ != nullptr) devices_.memory().give_back(base_, stride_ * pes_);
  base_ = nullptr;
}

}  // namespace tandem::world
