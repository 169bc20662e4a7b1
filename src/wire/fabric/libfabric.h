#pragma once
/// The functions of libfabric that are no members of its objects, loaded at run time.

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <string>

#include "tandem/range.h"

namespace tandem::wire {

/// The most bytes of a message.
constexpr Size kFabricMessageBytes = Size{256} << 10;

struct Libfabric {
  decltype(&fi_getinfo) getinfo = nullptr;
  decltype(&fi_freeinfo) freeinfo = nullptr;
  decltype(&fi_dupinfo) dupinfo = nullptr;
  decltype(&fi_fabric) fabric = nullptr;
  decltype(&fi_strerror) strerror = nullptr;
  decltype(&fi_version) version = nullptr;

  /// Loads the library once and returns its functions. TANDEM_FABRIC_LIBRARY in the environment is its path. Throws
  /// Unsupported.
  static const Libfabric& get();
};

/// Throws RuntimeFailure for a negative result.
void check_fabric(long result, const std::string& what);

}  // namespace tandem::wire
