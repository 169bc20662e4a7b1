#include "wire/fabric.h"

#include "tandem/error.h"

#if !__has_include(<rdma/fabric.h>)

namespace tandem::wire {

std::unique_ptr<Endpoint> make_fabric_endpoint(const std::string&) {
  throw Unsupported(
      "several hosts: this library was built without libfabric's headers; install libfabric-dev and build it again");
}

}  // namespace tandem::wire

#else

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "bootstrap/protocol/fd.h"
#include "bootstrap/protocol/socket.h"
#include "wire/libfabric.h"

namespace tandem::wire {

namespace {

using bootstrap::Fd;

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

std::string provider_of_environment() {
  const char* const text = std::getenv("TANDEM_FABRIC");
  return text == nullptr || *text == '\0' ? "tcp;ofi_rxm" : text;
}

constexpr std::uint32_t kApi = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

Info find_provider(const std::string& address) {
  const Libfabric& library = Libfabric::get();
  const Info hints(library.dupinfo(nullptr));
  if (hints == nullptr) throw RuntimeFailure("libfabric: no memory");
  const std::string provider = provider_of_environment();
  hints->caps = FI_MSG;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  fi_info* found = nullptr;
  const int result = library.getinfo(kApi, address.c_str(), nullptr, FI_SOURCE, hints.get(), &found);
  if (result != 0)
    throw Unsupported(
        fmt::format("several hosts: libfabric has no provider '{}' at {}: {}; TANDEM_FABRIC names another "
                    "one of those that fi_info lists",
                    provider, address, library.strerror(-result)));
  return Info(found);
}

class Fabric final : public Endpoint {
 public:
  explicit Fabric(const std::string& host_address);

  std::string name() const override {
    const std::uint32_t version = Libfabric::get().version();
    return fmt::format("libfabric {}.{} {}", FI_MAJOR(version), FI_MINOR(version), info_->fabric_attr->prov_name);
  }
  Bytes address() const override;
  void connect(const std::vector<Bytes>& addresses) override;
  Size most_bytes() const override { return kSlotBytes; }
  bool send(int pe, View header, View data) override;
  bool poll(const std::function<void(View)>& take) override;
  void wait(int ms) override;
  void wake() override {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(woken_.get(), &one, sizeof one));
  }

 private:
  static constexpr Size kSlotBytes = kFabricMessageBytes;
  static constexpr std::size_t kSends = 16;
  static constexpr std::size_t kReceives = 32;

  /// Room for one message. The context comes first: libfabric gives it back.
  struct Slot {
    fi_context2 context;
    std::byte* bytes;
    int pe;  ///< of a message to a PE; -1 of one that is received
  };

  void make_slots();
  bool receive_into(Slot& slot);
  void receive_again();
  void take_error();
  void* descriptor() const { return region_ == nullptr ? nullptr : ::fi_mr_desc(region_.get()); }

  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> peers_;
  Owned<fid_cq> done_;
  std::unique_ptr<std::byte[]> memory_;
  Owned<fid_mr> region_;
  Owned<fid_ep> endpoint_;  // closed before all that it uses
  std::deque<Slot> slots_;
  std::vector<Slot*> free_;     // for sends
  std::deque<Slot*> unposted_;  // for receives
  std::vector<fi_addr_t> addresses_;
  int done_fd_ = -1;
  Fd woken_;
};

template <class Object, class Open>
Owned<Object> opened(const char* what, const Open& open) {
  Object* object = nullptr;
  check_fabric(open(&object), what);
  return Owned<Object>(object);
}

Fabric::Fabric(const std::string& host_address)
    : info_(find_provider(host_address)), woken_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!woken_) bootstrap::throw_errno("eventfd");
  fabric_ =
      opened<fid_fabric>("fabric", [&](auto** to) { return Libfabric::get().fabric(info_->fabric_attr, to, nullptr); });
  domain_ =
      opened<fid_domain>("domain", [&](auto** to) { return ::fi_domain(fabric_.get(), info_.get(), to, nullptr); });
  fi_av_attr peers{};
  peers.type = FI_AV_TABLE;
  peers_ = opened<fid_av>("addresses", [&](auto** to) { return ::fi_av_open(domain_.get(), &peers, to, nullptr); });
  fi_cq_attr done{};
  done.format = FI_CQ_FORMAT_MSG;
  done.wait_obj = FI_WAIT_FD;
  done.size = kSends + kReceives;
  done_ = opened<fid_cq>("completions", [&](auto** to) { return ::fi_cq_open(domain_.get(), &done, to, nullptr); });
  check_fabric(::fi_control(&done_->fid, FI_GETWAIT, &done_fd_), "completions");
  endpoint_ =
      opened<fid_ep>("endpoint", [&](auto** to) { return ::fi_endpoint(domain_.get(), info_.get(), to, nullptr); });
  check_fabric(::fi_ep_bind(endpoint_.get(), &done_->fid, FI_TRANSMIT | FI_RECV), "endpoint");
  check_fabric(::fi_ep_bind(endpoint_.get(), &peers_->fid, 0), "endpoint");
  check_fabric(::fi_enable(endpoint_.get()), "endpoint");
  make_slots();
}

void Fabric::make_slots() {
  constexpr std::size_t bytes = (kSends + kReceives) * static_cast<std::size_t>(kSlotBytes);
  memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);  // a page that no message needs is never touched
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0)
    region_ = opened<fid_mr>("memory", [&](auto** to) {
      return ::fi_mr_reg(domain_.get(), memory_.get(), bytes, FI_SEND | FI_RECV, 0, 0, 0, to, nullptr);
    });
  for (std::size_t i = 0; i < kSends + kReceives; ++i) {
    slots_.push_back({{}, memory_.get() + i * static_cast<std::size_t>(kSlotBytes), -1});
    if (i < kSends)
      free_.push_back(&slots_.back());
    else
      unposted_.push_back(&slots_.back());
  }
  receive_again();
}

Bytes Fabric::address() const {
  Bytes address(256);
  std::size_t bytes = address.size();
  check_fabric(::fi_getname(&endpoint_->fid, address.data(), &bytes), "address");
  address.resize(bytes);
  return address;
}

void Fabric::connect(const std::vector<Bytes>& addresses) {
  addresses_.assign(addresses.size(), FI_ADDR_UNSPEC);
  for (std::size_t pe = 0; pe < addresses.size(); ++pe) {
    if (addresses[pe].empty()) continue;
    if (::fi_av_insert(peers_.get(), addresses[pe].data(), 1, &addresses_[pe], 0, nullptr) != 1)
      throw RuntimeFailure(fmt::format("libfabric: the address of PE {} is none", pe));
  }
}

bool Fabric::send(int pe, View header, View data) {
  if (free_.empty()) return false;
  Slot& slot = *free_.back();
  slot.pe = pe;
  std::memcpy(slot.bytes, header.data(), header.size());
  if (!data.empty()) std::memcpy(slot.bytes + header.size(), data.data(), data.size());
  const ssize_t result = ::fi_send(endpoint_.get(), slot.bytes, header.size() + data.size(), descriptor(),
                                   addresses_[static_cast<std::size_t>(pe)], &slot.context);
  if (result == -FI_EAGAIN) return false;
  check_fabric(result, fmt::format("message to PE {}", pe));
  free_.pop_back();
  return true;
}

bool Fabric::poll(const std::function<void(View)>& take) {
  receive_again();
  for (;;) {
    fi_cq_msg_entry entry{};
    const ssize_t result = ::fi_cq_read(done_.get(), &entry, 1);
    if (result == -FI_EAGAIN) return false;
    if (result == -FI_EAVAIL) {
      take_error();
      continue;
    }
    check_fabric(result, "completions");
    auto& slot = *static_cast<Slot*>(entry.op_context);
    if (slot.pe >= 0) {
      free_.push_back(&slot);
      continue;
    }
    take(View(slot.bytes, entry.len));
    unposted_.push_back(&slot);
    return true;
  }
}

/// A message that does not fit a slot is no PE's, and its slot is used again.
void Fabric::take_error() {
  fi_cq_err_entry error{};
  check_fabric(::fi_cq_readerr(done_.get(), &error, 0), "completions");
  auto* const slot = static_cast<Slot*>(error.op_context);
  if (slot == nullptr) return;
  if (slot->pe < 0) return unposted_.push_back(slot);
  free_.push_back(slot);
  check_fabric(-error.err, fmt::format("message to PE {}", slot->pe));
}

bool Fabric::receive_into(Slot& slot) {
  slot.pe = -1;
  const ssize_t result = ::fi_recv(endpoint_.get(), slot.bytes, static_cast<std::size_t>(kSlotBytes), descriptor(),
                                   FI_ADDR_UNSPEC, &slot.context);
  if (result == -FI_EAGAIN) return false;
  check_fabric(result, "messages");
  return true;
}

void Fabric::receive_again() {
  while (!unposted_.empty() && receive_into(*unposted_.front())) unposted_.pop_front();
}

void Fabric::wait(int ms) {
  fid* const done = &done_->fid;
  fid* all[] = {done};
  if (::fi_trywait(fabric_.get(), all, 1) != FI_SUCCESS) return;
  std::array<pollfd, 2> polled{{{done_fd_, POLLIN, 0}, {woken_.get(), POLLIN, 0}}};
  if (::poll(polled.data(), polled.size(), ms) < 0 && errno != EINTR) bootstrap::throw_errno("poll");
  std::uint64_t count = 0;
  if (polled[1].revents != 0) static_cast<void>(!::read(woken_.get(), &count, sizeof count));
}

}  // namespace

std::unique_ptr<Endpoint> make_fabric_endpoint(const std::string& address) { return std::make_unique<Fabric>(address); }

}  // namespace tandem::wire

#endif
