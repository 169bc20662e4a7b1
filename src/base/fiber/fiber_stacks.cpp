#include "base/fiber/fiber_stacks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "tandem/error.h"

#if defined(TANDEM_SANITIZER_FIBERS) && __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) (static_cast<void>(address), static_cast<void>(bytes))
#endif

namespace tandem {
namespace {

/// Guarded stacks of all pools together: the limit on mappings is the process's.
std::atomic<Size> guarded_in_process{0};

constexpr std::size_t kCanaryWords = 8;
constexpr std::size_t kCanaryBytes = kCanaryWords * sizeof(std::uint64_t);
constexpr std::uint64_t kCanary = 0xA5C3'5A3C'96E1'1E69ULL;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Address space that is not backed by memory until it is touched; null where the system refuses.
std::byte* reserve(std::size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
}

/// The same with a page at its begin that cannot be touched.
std::byte* reserve_guarded(std::size_t bytes) {
  std::byte* const base = reserve(bytes);
  if (base == nullptr || mprotect(base, page_bytes(), PROT_NONE) == 0) return base;
  munmap(base, bytes);
  return nullptr;
}

void write_canary(std::byte* low) {
  for (std::size_t i = 0; i < kCanaryWords; ++i) std::memcpy(low + i * sizeof(kCanary), &kCanary, sizeof(kCanary));
}

}  // namespace

StackPool::StackPool(Size stack_bytes, Size max_guarded)
    : stack_bytes_(round_up(stack_bytes, static_cast<Size>(page_bytes()))), max_guarded_(max_guarded) {
  if (stack_bytes < kMinStackBytes) {
    throw InvalidArgument("stack_bytes: " + std::to_string(stack_bytes) + " given, at least " +
                          std::to_string(kMinStackBytes) + " needed");
  }
}

StackPool::~StackPool() {
  const std::size_t guarded_bytes = static_cast<std::size_t>(stack_bytes_) + page_bytes();
  for (const MappingPool::Mapping& m : mappings_) {
    if (m.bytes == guarded_bytes)
      MappingPool::give(MappingPool::Use::kStack, m);
    else
      munmap(m.address, m.bytes);
  }
  guarded_in_process -= guarded_;
}

Stack StackPool::take() {
  if (free_guarded_.empty() && free_slab_.empty() && !make_guarded()) make_slab();
  std::vector<Stack>& free = free_guarded_.empty() ? free_slab_ : free_guarded_;
  const Stack stack = free.back();
  free.pop_back();
  if (stack.canary) write_canary(stack.low);
  return stack;
}

void StackPool::give_back(const Stack& stack) noexcept {
  // Frames that were abandoned leave poisoned redzones behind.
  ASAN_UNPOISON_MEMORY_REGION(stack.low, static_cast<std::size_t>(stack.bytes));
  (stack.canary ? free_slab_ : free_guarded_).push_back(stack);  // reserved when the stack was made: does not throw
}

bool StackPool::intact(const Stack& stack) {
  if (!stack.canary) return true;
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < kCanaryWords; ++i) {
    std::uint64_t word;
    std::memcpy(&word, stack.low + i * sizeof(word), sizeof(word));
    difference |= word ^ kCanary;
  }
  return difference == 0;
}

bool StackPool::make_guarded() {
  if (guarded_in_process.fetch_add(1) >= max_guarded_) {
    --guarded_in_process;
    return false;
  }
  mappings_.reserve(mappings_.size() + 1);
  free_guarded_.reserve(static_cast<std::size_t>(guarded_ + 1));
  const std::size_t bytes = static_cast<std::size_t>(stack_bytes_) + page_bytes();
  std::byte* base = MappingPool::take(MappingPool::Use::kStack, bytes);
  if (base == nullptr) base = reserve_guarded(bytes);
  if (base == nullptr) {  // out of mappings: slabs need fewer
    --guarded_in_process;
    return false;
  }
  mappings_.push_back({base, bytes});
  free_guarded_.push_back({base + page_bytes(), stack_bytes_, false});
  ++guarded_;
  ++made_;
  return true;
}

/// Layout from low to high addresses: a guard page, then a page of which the first stack's canary takes the last bytes,
/// then the stacks. Stacks thus start just below a page boundary. The stack below has touched the canary's page
/// already, so a canary costs no page of its own.
void StackPool::make_slab() {
  const Size slab_stacks = made_ - guarded_ + kSlabStacks;
  free_slab_.reserve(static_cast<std::size_t>(slab_stacks));
  mappings_.reserve(mappings_.size() + 1);
  const std::size_t bytes = 2 * page_bytes() + static_cast<std::size_t>(kSlabStacks * stack_bytes_);
  std::byte* base = reserve(bytes);
  if (base == nullptr || mprotect(base, page_bytes(), PROT_NONE) != 0) {
    if (base != nullptr) munmap(base, bytes);
    throw OutOfMemory("stacks of fibers: " + std::to_string(bytes) + " bytes asked, refused after " +
                      std::to_string(made_) + " stacks of " + std::to_string(stack_bytes_) + " bytes");
  }
  madvise(base, bytes, MADV_NOHUGEPAGE);  // a huge page would commit some thirty stacks at the first touch
  mappings_.push_back({base, bytes});
  std::byte* low = base + 2 * page_bytes() - kCanaryBytes;
  for (Size i = kSlabStacks - 1; i >= 0; --i) free_slab_.push_back({low + i * stack_bytes_, stack_bytes_, true});
  made_ += kSlabStacks;
}

}  // namespace tandem
