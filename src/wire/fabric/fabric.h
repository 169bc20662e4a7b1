#pragma once
/// Messages between processes by libfabric, which is loaded at run time.

#include <chrono>
#include <memory>
#include <string>

#include "wire/endpoint.h"

namespace tandem::wire {

/// Returns an endpoint at an address of this host ("10.0.0.1"). TANDEM_FABRIC in the environment names the provider.
/// With a `search` above 0, connections have a thread that receives. It looks for messages for so long before it
/// sleeps, and for 100 us at most. Throws Unsupported, with what to install or set, if libfabric or the provider is
/// missing.
std::unique_ptr<Endpoint> make_fabric_endpoint(const std::string& address, std::chrono::microseconds search = {});

}  // namespace tandem::wire
