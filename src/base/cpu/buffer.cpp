#include "tandem/impl/cpu/buffer.h"

#include <fmt/format.h>

#include <bit>
#include <cstdlib>
#include <new>
#include <vector>

#include "tandem/error.h"

namespace tandem::cpu {

namespace {

constexpr int kClasses = 40;

struct FreeLists {
  std::vector<std::byte*> lists[kClasses];
  ~FreeLists() {
    for (auto& list : lists)
      for (std::byte* memory : list) std::free(memory);
  }
};

int class_of(Size bytes) { return std::bit_width(static_cast<std::uint64_t>(bytes - 1) | 63U); }

FreeLists& free_lists() {
  thread_local FreeLists lists;
  return lists;
}

[[noreturn]] void exhausted(Size bytes) {
  throw OutOfMemory(fmt::format("no memory for {} bytes of a fragment, or of data under way", bytes));
}

}  // namespace

std::byte* take_memory(Size bytes) {
  const int size_class = class_of(bytes);
  if (size_class >= kClasses) exhausted(bytes);
  auto& list = free_lists().lists[size_class];
  if (!list.empty()) {
    std::byte* memory = list.back();
    list.pop_back();
    return memory;
  }
  void* memory = std::aligned_alloc(64, std::size_t{1} << size_class);
  if (memory == nullptr) exhausted(bytes);
  return static_cast<std::byte*>(memory);
}

void give_memory(std::byte* memory, Size bytes) noexcept {
  try {
    free_lists().lists[class_of(bytes)].push_back(memory);
  } catch (const std::bad_alloc&) {
    std::free(memory);
  }
}

}  // namespace tandem::cpu
