#pragma once
/// Stacks for fibers: taken from the system once, reused for ever.

#include <cstddef>
#include <vector>

#include "base/mapping_pool.h"
#include "tandem/range.h"

namespace tandem {

/// One stack. It grows down from `low + bytes`.
struct Stack {
  std::byte* low = nullptr;
  Size bytes = 0;
  /// Protected by a canary at `low`, not by a guard page below it.
  bool canary = false;
};

/// A pool of stacks of one size, for the fibers of one OS thread.
///
/// The first `kMaxGuarded` stacks of a process have a guard page below them, where an overflow is a SIGSEGV. Each costs
/// two memory mappings, and Linux allows about 65,530 for a process (`vm.max_map_count`). Further
/// stacks come from slabs of `kSlabStacks` and carry a canary that the fiber checks whenever it gives control back.
/// Memory is committed by the system as it is touched: an idle fiber costs one page.
///
/// The pool must outlive the fibers that took stacks from it.
class StackPool {
 public:
#if defined(TANDEM_SANITIZER_FIBERS)
  static constexpr Size kDefaultStackBytes = 256 * 1024;  // instrumented frames are several times larger
#else
  static constexpr Size kDefaultStackBytes = 64 * 1024;
#endif
  static constexpr Size kMinStackBytes = 16 * 1024;
  static constexpr Size kMaxGuarded = 16'000;
  static constexpr Size kSlabStacks = 256;

  /// `stack_bytes` is rounded up to whole pages. `max_guarded` counts the guarded stacks of the whole process; 0 makes
  /// this pool use slabs alone. Throws InvalidArgument below `kMinStackBytes`.
  explicit StackPool(Size stack_bytes = kDefaultStackBytes, Size max_guarded = kMaxGuarded);
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  /// A stack with unspecified contents, the most recently returned one first. Throws OutOfMemory.
  Stack take();
  /// Returns a stack. Whatever is on it is forgotten.
  void give_back(const Stack& stack) noexcept;

  /// Whether the stack's owner stayed within it, as far as the canary tells; true for guarded stacks.
  static bool intact(const Stack& stack);

  /// A stack of a slab overflowed: its neighbour's contents are not to be trusted either.
  bool damaged() const { return damaged_; }
  void mark_damaged() { damaged_ = true; }

  Size stack_bytes() const { return stack_bytes_; }
  /// Stacks made so far, guarded ones and those of slabs, in use or not.
  Size made() const { return made_; }

 private:
  bool make_guarded();
  void make_slab();

  Size stack_bytes_;
  Size max_guarded_;
  Size made_ = 0;
  Size guarded_ = 0;
  bool damaged_ = false;
  std::vector<Stack> free_guarded_;
  std::vector<Stack> free_slab_;
  std::vector<MappingPool::Mapping> mappings_;
};

}  // namespace tandem
