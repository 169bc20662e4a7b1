#if __has_include(<rdma/fabric.h>)

#include "wire/fabric/objects.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "bootstrap/protocol/socket.h"
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

SlotEndpoint::SlotEndpoint(Info info) : info_(std::move(info)), woken_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!woken_) bootstrap::throw_errno("eventfd");
  fabric_ =
      opened<fid_fabric>("fabric", [&](auto** to) { return Libfabric::get().fabric(info_->fabric_attr, to, nullptr); });
  domain_ =
      opened<fid_domain>("domain", [&](auto** to) { return ::fi_domain(fabric_.get(), info_.get(), to, nullptr); });
  fi_cq_attr done{};
  done.format = FI_CQ_FORMAT_MSG;
  done.wait_obj = FI_WAIT_FD;
  done.size = kSends + kReceives;
  done_ = opened<fid_cq>("completions", [&](auto** to) { return ::fi_cq_open(domain_.get(), &done, to, nullptr); });
  check_fabric(::fi_control(&done_->fid, FI_GETWAIT, &done_fd_), "completions");
  most_injected_ = std::min(info_->tx_attr->inject_size, small_.size());
  make_slots();
}

std::string SlotEndpoint::name() const {
  const std::uint32_t version = Libfabric::get().version();
  return fmt::format("libfabric {}.{} {}", FI_MAJOR(version), FI_MINOR(version), info_->fabric_attr->prov_name);
}

void SlotEndpoint::make_slots() {
  constexpr std::size_t bytes = (kSends + kReceives) * kRoom;
  memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);  // a page that no message needs is never touched
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0)
    region_ = opened<fid_mr>("memory", [&](auto** to) {
      return ::fi_mr_reg(domain_.get(), memory_.get(), bytes, FI_SEND | FI_RECV, 0, 0, 0, to, nullptr);
    });
  for (std::size_t i = 0; i < kSends + kReceives; ++i) {
    slots_.push_back({{}, memory_.get() + i * kRoom, -1});
    if (i < kSends)
      free_.push_back(&slots_.back());
    else
      unposted_.push_back(&slots_.back());
  }
}

void SlotEndpoint::check_address(const std::vector<Bytes>& addresses, std::size_t pe) const {
  const std::size_t own = address().size();
  if (addresses[pe].size() != own)
    throw RuntimeFailure(
        fmt::format("libfabric: the address of PE {} has {} bytes, this PE's has {}", pe, addresses[pe].size(), own));
}

void SlotEndpoint::receive_by(fid_ep* receiver) {
  receiver_ = receiver;
  receive_again();
}

SlotEndpoint::Share& SlotEndpoint::share(int pe) {
  const auto at = static_cast<std::size_t>(pe);
  if (at >= shares_.size()) shares_.resize(at + 1);
  return shares_[at];
}

void SlotEndpoint::note_break(int pe, int error) {
  if (std::exchange(share(pe).is_broken, true)) return;
  breaks_.push_back({pe, Libfabric::get().strerror(error != 0 ? error : FI_EOTHER)});
}

/// The messages to a PE hold no more slots than are free. So a PE that takes them slowly leaves some to others.
bool SlotEndpoint::send_by(fid_ep* sender, fi_addr_t to, int pe, View header, View data, const OnSent& sent) {
  Share& own = share(pe);
  if (own.is_broken || own.slots >= free_.size()) return false;
  const std::size_t bytes = header.size() + data.size();
  const bool is_injected = bytes <= most_injected_ && ++small_sends_ % kInjectedInARow != 0;
  Slot& slot = *free_.back();
  slot.pe = pe;
  const long result =
      is_injected ? inject(sender, to, header, data, sent) : send_slot(sender, to, slot, header, data, sent);
  if (result == -FI_EAGAIN) return false;
  if (result != 0) {
    note_break(pe, static_cast<int>(-result));
    return false;
  }
  if (is_injected) return true;
  free_.pop_back();
  ++own.slots;
  return true;
}

/// Sends a message that is short before the call returns.
long SlotEndpoint::inject(fid_ep* sender, fi_addr_t to, View header, View data, const OnSent& sent) {
  std::copy(data.begin(), data.end(), std::copy(header.begin(), header.end(), small_.begin()));
  const ssize_t result = ::fi_inject(sender, small_.data(), header.size() + data.size(), to);
  if (result == 0 && sent) sent();
  return result;
}

/// Sends the data from where it is if it stays, and if the provider reads memory that is not registered.
long SlotEndpoint::send_slot(fid_ep* sender, fi_addr_t to, Slot& slot, View header, View data, const OnSent& sent) {
  std::memcpy(slot.bytes, header.data(), header.size());
  const bool is_in_parts = sent && region_ == nullptr && info_->tx_attr->iov_limit >= 2;
  if (is_in_parts) {
    const std::array<iovec, 2> parts{{{slot.bytes, header.size()}, {const_cast<std::byte*>(data.data()), data.size()}}};
    const ssize_t result = ::fi_sendv(sender, parts.data(), nullptr, parts.size(), to, &slot.context);
    if (result == 0) on_sent(slot) = sent;
    return result;
  }
  if (!data.empty()) std::memcpy(slot.bytes + header.size(), data.data(), data.size());
  const ssize_t result = ::fi_send(sender, slot.bytes, header.size() + data.size(), descriptor(), to, &slot.context);
  if (result == 0 && sent) sent();
  return result;
}

void SlotEndpoint::end_send(Slot& slot) {
  free_.push_back(&slot);
  --share(slot.pe).slots;
  if (const OnSent sent = std::exchange(on_sent(slot), nullptr)) sent();
}

bool SlotEndpoint::poll(const std::function<void(View)>& take) {
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
      end_send(slot);
      continue;
    }
    take(View(slot.bytes, entry.len));
    unposted_.push_back(&slot);
    return true;
  }
}

/// A message that does not fit a slot is no PE's, and its slot is used again.
void SlotEndpoint::take_error() {
  fi_cq_err_entry error{};
  check_fabric(::fi_cq_readerr(done_.get(), &error, 0), "completions");
  auto* const slot = static_cast<Slot*>(error.op_context);
  if (slot == nullptr) return;
  if (slot->pe < 0) return unposted_.push_back(slot);
  const int pe = slot->pe;
  end_send(*slot);
  note_break(pe, error.err);
}

bool SlotEndpoint::receive_into(Slot& slot) {
  slot.pe = -1;
  const ssize_t result = ::fi_recv(receiver_, slot.bytes, kRoom, descriptor(), FI_ADDR_UNSPEC, &slot.context);
  if (result == -FI_EAGAIN) return false;
  check_fabric(result, "messages");
  return true;
}

void SlotEndpoint::receive_again() {
  while (!unposted_.empty() && receive_into(*unposted_.front())) unposted_.pop_front();
}

void SlotEndpoint::wait(int ms) {
  fid* const done = &done_->fid;
  fid* all[] = {done};
  if (::fi_trywait(fabric_.get(), all, 1) != FI_SUCCESS) return;
  Rest before = Rest::kNone;
  if (!rest_.compare_exchange_strong(before, Rest::kAsleep)) {
    rest_.exchange(Rest::kNone);
    return;
  }
  std::array<pollfd, 2> polled{{{done_fd_, POLLIN, 0}, {woken_.get(), POLLIN, 0}}};
  if (::poll(polled.data(), polled.size(), ms) < 0 && errno != EINTR) bootstrap::throw_errno("poll");
  std::uint64_t count = 0;
  if (rest_.exchange(Rest::kNone) == Rest::kWoken || polled[1].revents != 0)
    static_cast<void>(!::read(woken_.get(), &count, sizeof count));
}

/// Makes no call to the system unless the other thread sleeps. A wait that begins later ends at once.
void SlotEndpoint::wake() {
  if (rest_.exchange(Rest::kWoken) != Rest::kAsleep) return;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(woken_.get(), &one, sizeof one));
}

}  // namespace tandem::wire

#endif
