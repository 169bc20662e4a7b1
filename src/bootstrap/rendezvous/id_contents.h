#pragma once
/// The contents of a UniqueId.

#include <cstdint>
#include <memory>
#include <string>

#include "bootstrap/local/local_rendezvous.h"
#include "bootstrap/protocol/mac.h"
#include "tandem/advanced/unique_id.h"

namespace tandem::bootstrap {

struct IdContents {
  std::string address;
  std::uint16_t port = 0;
  Key secret{};
};

IdContents contents_of(const UniqueId& id);
UniqueId id_of(const IdContents& contents);

/// Name of the local socket at which the id's rendezvous is reached by processes of the same user and host.
std::string local_name(const IdContents& contents);

/// UniqueId::create with a secret that others can derive, and the id handed over to a job's processes where there is
/// one.
UniqueId open_rendezvous(const std::string& address, const Key& secret, HandOff hand_off = {});

class Host;
/// Keeps a rendezvous until its world is over or this process ends, and returns its id.
UniqueId keep_rendezvous(std::unique_ptr<Host> host);

}  // namespace tandem::bootstrap
