#if __has_include(<rdma/fabric.h>)

#include "wire/fabric/lane.h"

#include <algorithm>
#include <cstring>

#include "tandem/error.h"

namespace tandem::wire {

Lane::Lane(const fi_info& info, fid_fabric* fabric, std::size_t sends, std::size_t receives)
    : info_(info), fabric_(fabric), sends_(sends) {
  auto* const described = const_cast<fi_info*>(&info_);
  domain_ = opened<fid_domain>("domain", [&](auto** to) { return ::fi_domain(fabric_, described, to, nullptr); });
  fi_cq_attr done{};
  done.format = FI_CQ_FORMAT_MSG;
  done.wait_obj = FI_WAIT_FD;
  done.size = sends + receives;
  done_ = opened<fid_cq>("completions", [&](auto** to) { return ::fi_cq_open(domain_.get(), &done, to, nullptr); });
  check_fabric(::fi_control(&done_->fid, FI_GETWAIT, &done_fd_), "completions");
  most_injected_ = std::min(info_.tx_attr->inject_size, small_.size());
  const std::size_t bytes = (sends + receives) * kRoom;
  memory_.reset(new std::byte[bytes]);  // a page is touched by its first message, or where a GPU registers all
  if ((info_.domain_attr->mr_mode & FI_MR_LOCAL) != 0)
    region_ = opened<fid_mr>("memory", [&](auto** to) {
      return ::fi_mr_reg(domain_.get(), memory_.get(), bytes, FI_SEND | FI_RECV, 0, 0, 0, to, nullptr);
    });
  for (std::size_t i = 0; i < sends + receives; ++i) {
    slots_.push_back({{}, memory_.get() + i * kRoom, -1, {}});
    if (i < sends)
      free_.push_back(&slots_.back());
    else
      unposted_.push_back(&slots_.back());
  }
}

void Lane::receive_by(fid_ep* receiver) {
  receiver_ = receiver;
  receive_again();
}

Lane::Share& Lane::share(int pe) {
  const auto at = static_cast<std::size_t>(pe);
  if (at >= shares_.size()) shares_.resize(at + 1);
  return shares_[at];
}

void Lane::note_break(int pe, int error) {
  if (std::exchange(share(pe).is_broken, true)) return;
  breaks_.push_back({pe, Libfabric::get().strerror(error != 0 ? error : FI_EOTHER)});
}

/// The messages to a PE hold no more slots than are free. So a PE that takes them slowly leaves some to others.
bool Lane::send_by(fid_ep* sender, fi_addr_t to, int pe, View header, View data, const OnSent& sent) {
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
long Lane::inject(fid_ep* sender, fi_addr_t to, View header, View data, const OnSent& sent) {
  std::copy(data.begin(), data.end(), std::copy(header.begin(), header.end(), small_.begin()));
  const ssize_t result = ::fi_inject(sender, small_.data(), header.size() + data.size(), to);
  if (result == 0 && sent) sent();
  return result;
}

/// Sends the data from where it is if it stays, and if the provider reads memory that is not registered.
long Lane::send_slot(fid_ep* sender, fi_addr_t to, Slot& slot, View header, View data, const OnSent& sent) {
  std::memcpy(slot.bytes, header.data(), header.size());
  const bool is_in_parts = sent && region_ == nullptr && info_.tx_attr->iov_limit >= 2;
  if (is_in_parts) {
    const std::array<iovec, 2> parts{{{slot.bytes, header.size()}, {const_cast<std::byte*>(data.data()), data.size()}}};
    const ssize_t result = ::fi_sendv(sender, parts.data(), nullptr, parts.size(), to, &slot.context);
    if (result == 0) slot.sent = sent;
    return result;
  }
  if (!data.empty()) std::memcpy(slot.bytes + header.size(), data.data(), data.size());
  const ssize_t result = ::fi_send(sender, slot.bytes, header.size() + data.size(), descriptor(), to, &slot.context);
  if (result == 0 && sent) sent();
  return result;
}

void Lane::end_send(Slot& slot) {
  free_.push_back(&slot);
  --share(slot.pe).slots;
  if (const OnSent sent = std::exchange(slot.sent, nullptr)) sent();
}

bool Lane::poll(const Take& take) {
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
    if (!take(View(slot.bytes, entry.len))) unposted_.push_back(&slot);
    return true;
  }
}

void Lane::release(View message) {
  unposted_.push_back(&slots_[static_cast<std::size_t>(message.data() - memory_.get()) / kRoom]);
}

/// A message that does not fit a slot is no PE's, and its slot is used again.
void Lane::take_error() {
  fi_cq_err_entry error{};
  check_fabric(::fi_cq_readerr(done_.get(), &error, 0), "completions");
  auto* const slot = static_cast<Slot*>(error.op_context);
  if (slot == nullptr) return;
  if (slot->pe < 0) return unposted_.push_back(slot);
  const int pe = slot->pe;
  end_send(*slot);
  note_break(pe, error.err);
}

bool Lane::receive_into(Slot& slot) {
  slot.pe = -1;
  const ssize_t result = ::fi_recv(receiver_, slot.bytes, kRoom, descriptor(), FI_ADDR_UNSPEC, &slot.context);
  if (result == -FI_EAGAIN) return false;
  check_fabric(result, "messages");
  return true;
}

void Lane::receive_again() {
  while (!unposted_.empty() && receive_into(*unposted_.front())) unposted_.pop_front();
}

int Lane::sleeping_descriptor() const {
  fid* all[] = {&done_->fid};
  return ::fi_trywait(fabric_, all, 1) == FI_SUCCESS ? done_fd_ : -1;
}

}  // namespace tandem::wire

#endif
