#pragma once
/// What a plan has allocated on the symmetric heap: given back when the plan is destroyed, or could not be made.

#include <memory>
#include <utility>
#include <vector>

namespace tandem::detail {

/// Where plans give buffers of a PE back: a world's backend.
class HeapOwner {
 public:
  virtual ~HeapOwner() = default;
  /// This PE is through with a symmetric buffer, which begins there on PE 0. Not collective, and nobody waits: it is
  /// free when all PEs have said so and a later allocation wants it.
  virtual void release_symmetric(const void* memory) = 0;
  /// A buffer of this PE alone.
  virtual void free_local(const void* memory) = 0;
};

/// Of one PE's part in a plan. Gives all back when it is destroyed, if the world is still there.
class PlanMemory {
 public:
  PlanMemory() = default;
  explicit PlanMemory(std::weak_ptr<HeapOwner*> owner) : owner_(std::move(owner)) {}
  PlanMemory(PlanMemory&& other) noexcept
      : owner_(std::move(other.owner_)), buffers_(std::exchange(other.buffers_, {})) {}
  PlanMemory& operator=(PlanMemory&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(buffers_, other.buffers_);
    return *this;
  }
  ~PlanMemory();

  void add(const void* memory, bool is_symmetric) { buffers_.push_back({memory, is_symmetric}); }

 private:
  struct Buffer {
    const void* memory;
    bool is_symmetric;
  };
  std::weak_ptr<HeapOwner*> owner_;
  std::vector<Buffer> buffers_;
};

/// While it lives, what this PE allocates is noted here; of several, where the youngest lives.
class NotedAllocations {
 public:
  NotedAllocations(PlanMemory*& current, std::weak_ptr<HeapOwner*> owner)
      : current_(current), before_(current), memory_(std::move(owner)) {
    current_ = &memory_;
  }
  ~NotedAllocations() { current_ = before_; }
  NotedAllocations(const NotedAllocations&) = delete;
  NotedAllocations& operator=(const NotedAllocations&) = delete;

  PlanMemory take() { return std::move(memory_); }

 private:
  PlanMemory*& current_;
  PlanMemory* const before_;
  PlanMemory memory_;
};

}  // namespace tandem::detail
