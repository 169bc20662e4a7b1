#pragma once
/// Objects of libfabric, which close themselves.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "wire/endpoint.h"
#include "wire/fabric/libfabric.h"

namespace tandem::wire {

/// Closes an object of libfabric.
struct Close {
  template <class Object>
  void operator()(Object* object) const {
    ::fi_close(&object->fid);
  }
};
template <class Object>
using Owned = std::unique_ptr<Object, Close>;

struct FreeInfo {
  void operator()(fi_info* info) const { Libfabric::get().freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// Returns the object that `open` makes. Throws RuntimeFailure, with `what` in its text.
template <class Object, class Open>
Owned<Object> opened(const char* what, const Open& open) {
  Object* object = nullptr;
  check_fabric(open(&object), what);
  return Owned<Object>(object);
}

/// Returns the provider's description of messages at this host's address. Throws Unsupported.
Info find_provider(const std::string& provider, const std::string& address, fi_ep_type type);

/// A fabric, and the description of its messages.
class Fabric {
 public:
  explicit Fabric(Info info);

  const fi_info& info() const { return *info_; }
  fid_fabric* get() const { return fabric_.get(); }
  /// Returns engine, version and provider.
  std::string name() const;

 private:
  Info info_;
  Owned<fid_fabric> fabric_;
};

/// Requires that the address of a PE has as many bytes as this PE's own. Libfabric takes no length.
void check_address(const std::vector<Bytes>& addresses, std::size_t pe, std::size_t own_bytes);

/// Endpoints that send messages to addresses: of every provider, perhaps by layers of libfabric.
std::unique_ptr<Endpoint> make_datagram_endpoint(const std::string& provider, const std::string& address);
/// Endpoints with a connection for each direction of two PEs: of a provider that has such connections. With a `search`
/// above 0 a thread receives.
std::unique_ptr<Endpoint> make_connected_endpoint(const std::string& provider, const std::string& address,
                                                  std::chrono::microseconds search);

}  // namespace tandem::wire
