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
UniqueId id_of(const IdContents& contents);

/// UniqueId::create with a secret that others can derive.
UniqueId open_rendezvous(const std::string& address, const Key& secret);

}  // namespace tandem::bootstrap
