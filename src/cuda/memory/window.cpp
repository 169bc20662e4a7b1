#include "cuda/memory/window.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cuda/driver/driver.h"
#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

/// The allocations that hold a buffer, retained.
struct Holders {
  std::vector<Chunk> chunks;
  Size offset = 0;      ///< of the buffer in the first
  std::string problem;  ///< why there are none

  void release() {
    for (const Chunk& chunk : chunks) driver().mem_release(chunk.handle);
    chunks.clear();
  }
};

/// Why a chunk cannot be shared; empty: it can.
std::string problem_of(CUmemGenericAllocationHandle handle) {
  CUmemAllocationProp properties{};
  if (driver().mem_properties(&properties, handle) != CUDA_SUCCESS) return "its properties are unknown";
  if ((properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0)
    return "it was not made exportable as a file descriptor";
  return "";
}

Holders find_holders(void* pointer, Size bytes) {
  Holders holders;
  const auto begin = reinterpret_cast<CUdeviceptr>(pointer);
  for (CUdeviceptr at = begin; at < begin + static_cast<CUdeviceptr>(bytes) && holders.problem.empty();) {
    CUdeviceptr base = 0;
    std::size_t size = 0;
    Chunk chunk;
    if (driver().mem_retain(&chunk.handle, reinterpret_cast<void*>(at)) != CUDA_SUCCESS) {
      holders.problem = "it is not from an allocator that uses CUDA virtual memory management";
      break;
    }
    if (driver().mem_range(&base, &size, at) != CUDA_SUCCESS || size == 0) {
      driver().mem_release(chunk.handle);
      holders.problem = "its allocation is unknown";
      break;
    }
    if (holders.chunks.empty()) holders.offset = static_cast<Size>(begin - base);
    chunk.bytes = static_cast<Size>(size);
    holders.chunks.push_back(chunk);
    holders.problem = problem_of(chunk.handle);
    at = base + size;
  }
  if (holders.problem.empty() && holders.chunks.size() > bootstrap::FdExchange::kMost)
    holders.problem =
        fmt::format("it lies in {} allocations, allowed are {}", holders.chunks.size(), bootstrap::FdExchange::kMost);
  return holders;
}

/// Why no driver has to be asked; empty: it has to.
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
  Holders holders = wrong.empty() ? find_holders(pointer, bytes) : Holders{};
  try {
    check_all(processes.session().all_gather(describe(wrong, holders, bytes), "registration"), processes.me());
  } catch (...) {
    holders.release();
    throw;
  }
  segment_ =
      std::make_unique<Segment>(processes.session(), processes.exchange(), processes.pe(0).device, holders.chunks);
  memory_ = Symm<std::byte>(segment_->base() + holders.offset, segment_->stride(), processes.me());
}

}  // namespace tandem::cuda
