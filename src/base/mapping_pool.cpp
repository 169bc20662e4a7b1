#include "base/mapping_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace tandem {

namespace {
thread_local MappingPool* innermost = nullptr;
}  // namespace

MappingPool::MappingPool() : outer_(innermost) { innermost = this; }

MappingPool::~MappingPool() {
  innermost = outer_;
  for (const Kept& kept : kept_) munmap(kept.mapping.address, kept.mapping.bytes);
}

std::byte* MappingPool::take(Use use, std::size_t bytes) {
  if (innermost == nullptr) return nullptr;
  auto& kept = innermost->kept_;
  // The latest one first: its pages are the likeliest to be in the caches.
  const auto at =
      std::find_if(kept.rbegin(), kept.rend(), [&](const Kept& k) { return k.use == use && k.mapping.bytes == bytes; });
  if (at == kept.rend()) return nullptr;
  std::byte* const address = at->mapping.address;
  kept.erase(std::next(at).base());
  return address;
}

void MappingPool::give(Use use, Mapping mapping) noexcept {
  try {
    if (innermost != nullptr) return innermost->kept_.push_back({use, mapping});
  } catch (const std::bad_alloc&) {  // then it is not kept
  }
  munmap(mapping.address, mapping.bytes);
}

}  // namespace tandem
