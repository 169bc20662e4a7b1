#include "world/memory/window.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tandem/error.h"

namespace tandem::world {

namespace {

/// The allocations that hold a buffer, retained.
struct Holders {
  std::vector<Chunk> chunks;
  Size offset = 0;      ///< of the buffer in the first
  std::string problem;  ///< why there are none
};

Holders find_holders(DeviceMemory& memory, void* pointer, Size bytes) {
  Holders holders;
  auto* const begin = static_cast<std::byte*>(pointer);
  for (std::byte* at = begin; at < begin + bytes && holders.problem.empty();) {
    const Holder holder = memory.holder_of(at);
    holders.problem = holder.problem;
    if (!holder.is_retained) break;
    if (holders.chunks.empty()) holders.offset = begin - holder.base;
    holders.chunks.push_back(holder.chunk);
    at = holder.base + holder.chunk.bytes;
  }
  if (holders.problem.empty() && holders.chunks.size() > bootstrap::FdExchange::kMost)
    holders.problem =
        fmt::format("it lies in {} allocations, allowed are {}", holders.chunks.size(), bootstrap::FdExchange::kMost);
  return holders;
}

/// Why no device has to be asked; empty: it has to.
std::string wrong_argument(const void* pointer, Size bytes, bool is_registered) {
  if (pointer == nullptr) return "pointer: NULL given, allowed is an address";
  if (bytes <= 0) return fmt::format("bytes: {} given, must be positive", bytes);
  return is_registered ? fmt::format("pointer: {} given, which is registered already", pointer) : "";
}

Bytes describe(const std::string& wrong, const Holders& holders, Size bytes) {
  Writer writer;
  writer.text(wrong)
      .text(holders.problem)
      .u64(static_cast<std::uint64_t>(bytes))
      .u64(static_cast<std::uint64_t>(holders.offset));
  for (const Chunk& chunk : holders.chunks) writer.u64(static_cast<std::uint64_t>(chunk.bytes));
  return writer.result();
}

void check_all(const std::vector<Bytes>& all, int me) {
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    Reader its(all[pe]);
    if (const std::string wrong = its.text(); !wrong.empty())
      throw InvalidArgument(fmt::format("registration: PE {}: {}", pe, wrong));
    if (const std::string problem = its.text(); !problem.empty())
      throw Unsupported(
          fmt::format("registration: PE {}'s memory cannot be mapped by other processes: {}", pe, problem));
  }
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    if (all[pe] != all[static_cast<std::size_t>(me)])
      throw InvalidArgument(
          fmt::format("registration: size, or place in its allocation, differ between PE {} and PE {}", me, pe));
}

}  // namespace

Window::Window(Processes& processes, void* pointer, Size bytes, bool is_registered) {
  const std::string wrong = wrong_argument(pointer, bytes, is_registered);
  DeviceMemory& memory = processes.devices().memory();
  const Holders holders = wrong.empty() ? find_holders(memory, pointer, bytes) : Holders{};
  try {
    check_all(processes.member().all_gather(describe(wrong, holders, bytes), "registration"), processes.me());
  } catch (...) {
    release(memory, holders.chunks);
    throw;
  }
  segment_ = std::make_unique<Segment>(processes.devices(), processes.member(), processes.exchange(),
                                       processes.pe(0).device, holders.chunks);
  memory_ = Symm<std::byte>(segment_->base() + holders.offset, segment_->stride(), processes.me());
}

}  // namespace tandem::world
