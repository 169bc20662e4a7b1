#pragma once
/// What a UniqueId holds.

#include <cstdint>
#include <string>

#include "bootstrap/seal.h"
#include "tandem/unique_id.h"

namespace tandem::bootstrap {

struct IdContents {
  std::string address;
  std::uint16_t port = 0;
  Key secret{};
};

IdContents contents_of(const UniqueId& id);

}  // namespace tandem::bootstrap
