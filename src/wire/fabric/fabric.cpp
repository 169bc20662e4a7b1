#include "wire/fabric/fabric.h"

#include "tandem/error.h"

#if !__has_include(<rdma/fabric.h>)

namespace tandem::wire {

std::unique_ptr<Endpoint> make_fabric_endpoint(const std::string&, std::chrono::microseconds) {
  throw Unsupported(
      "several hosts: this library was built without libfabric's headers; install libfabric-dev and build it again");
}

}  // namespace tandem::wire

#else

#include <cstdlib>

#include "wire/fabric/objects.h"

namespace tandem::wire {

std::unique_ptr<Endpoint> make_fabric_endpoint(const std::string& address, std::chrono::microseconds search) {
  constexpr const char* connected = "tcp";
  const char* const text = std::getenv("TANDEM_FABRIC");
  const std::string provider = text == nullptr || *text == '\0' ? connected : text;
  return provider == connected ? make_connected_endpoint(provider, address, search)
                               : make_datagram_endpoint(provider, address);
}

}  // namespace tandem::wire

#endif
