#pragma once
/// Address ranges that pass from one simulation to the next.

#include <cstddef>
#include <vector>

namespace tandem {

/// While an object lives, simulations of its thread pass their address ranges (the PEs' memory, guarded stacks) on to
/// later ones. To map and touch them anew takes longer than a small run. Kept ranges stay committed.
class MappingPool {
 public:
  struct Mapping {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
  };

  MappingPool();
  ~MappingPool();
  MappingPool(const MappingPool&) = delete;
  MappingPool& operator=(const MappingPool&) = delete;

  /// The purpose of a range, which decides how its pages are protected.
  enum class Use { kStack, kMemory, kPhantomMemory };
  /// A range of so many bytes that was kept for this use; null where there is none.
  static std::byte* take(Use use, std::size_t bytes);
  /// Keeps the range, or unmaps it where no Reuse lives.
  static void give(Use use, Mapping mapping) noexcept;

 private:
  struct Kept {
    Use use;
    Mapping mapping;
  };

  MappingPool* outer_;
  std::vector<Kept> kept_;
};

}  // namespace tandem
