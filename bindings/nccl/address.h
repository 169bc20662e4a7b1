#pragma once
/// The address at which other hosts reach this one.

#include <string>

namespace tandem::nccl {

/// Returns the address of the interface that NCCL_SOCKET_IFNAME chooses. It has beginnings of names, with commas
/// between them; "=" in front asks for whole names, "^" for all others. Without the variable it is the first interface
/// that is up and is no loopback, else 127.0.0.1. Throws InvalidArgument if no interface has such a name and an
/// address.
std::string own_address();

}  // namespace tandem::nccl
