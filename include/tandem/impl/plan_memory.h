#pragma once
/// The heap memory of a plan. It is returned when the plan is destroyed, or when its construction fails.

#include <memory>
#include <utility>
#include <vector>

namespace tandem::detail {

/// The receiver of a PE's buffers: the backend of a world.
class HeapOwner {
 public:
  virtual ~HeapOwner() = default;
  /// Releases this PE's share of the symmetric buffer that begins there on PE 0. It is not collective and does not
  /// wait: the buffer is free when all PEs have released it and a later allocation needs it.
  virtual void release_symmetric(const void* memory) = 0;
  /// Frees a buffer of this PE.
  virtual void free_local(const void* memory) = 0;
};

/// The memory of one PE's part in a plan. The destructor returns it if the world still exists.
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

/// While it lives, it records this PE's allocations. If several live, the youngest does.
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
