#pragma once
/// Memory for fragments and for payloads under way, reused through free lists (one per power of two, one thread).

#include <cstddef>
#include <utility>

#include "tandem/range.h"

namespace tandem::cpu {

std::byte* take_memory(Size bytes);
void give_memory(std::byte* memory, Size bytes) noexcept;

/// Owns some bytes; empty in phantom mode, where only sizes travel.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Size bytes) : data_(bytes > 0 ? take_memory(bytes) : nullptr), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) give_memory(data_, bytes_);
  }

  std::byte* data() const { return data_; }
  Size bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::byte* data_ = nullptr;
  Size bytes_ = 0;
};

}  // namespace tandem::cpu
