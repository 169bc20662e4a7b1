#if __has_include(<rdma/fabric.h>)

#include "wire/fabric/objects.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "tandem/error.h"

namespace tandem::wire {

Info find_provider(const std::string& provider, const std::string& address, fi_ep_type type) {
  constexpr std::uint32_t api = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
  const Libfabric& library = Libfabric::get();
  const Info hints(library.dupinfo(nullptr));
  if (hints == nullptr) throw RuntimeFailure("libfabric: no memory");
  hints->caps = FI_MSG;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = type;
  if (type == FI_EP_MSG) hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  hints->domain_attr->mr_mode = FI_MR_LOCAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  fi_info* found = nullptr;
  const int result = library.getinfo(api, address.c_str(), nullptr, FI_SOURCE, hints.get(), &found);
  if (result != 0)
    throw Unsupported(
        fmt::format("several hosts: libfabric has no provider '{}' at {}: {}; TANDEM_FABRIC names another "
                    "one of those that fi_info lists",
                    provider, address, library.strerror(-result)));
  return Info(found);
}

Fabric::Fabric(Info info) : info_(std::move(info)) {
  fabric_ =
      opened<fid_fabric>("fabric", [&](auto** to) { return Libfabric::get().fabric(info_->fabric_attr, to, nullptr); });
}

std::string Fabric::name() const {
  const std::uint32_t version = Libfabric::get().version();
  return fmt::format("libfabric {}.{} {}", FI_MAJOR(version), FI_MINOR(version), info_->fabric_attr->prov_name);
}

void check_address(const std::vector<Bytes>& addresses, std::size_t pe, std::size_t own_bytes) {
  if (addresses[pe].size() != own_bytes)
    throw RuntimeFailure(fmt::format("libfabric: the address of PE {} has {} bytes, this PE's has {}", pe,
                                     addresses[pe].size(), own_bytes));
}

}  // namespace tandem::wire

#endif
