// Messages along connections (FI_EP_MSG), which no layer of libfabric copies once more.
//
// Each PE listens, and opens a connection to each PE of another node, for its own messages. Who connects has to know
// the listener's pass, which is a part of its address and known to the PEs of the world alone. A PE that has all of its
// connections listens no more.
#if __has_include(<rdma/fabric.h>)

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>

#include "bootstrap/protocol/mac.h"
#include "tandem/error.h"
#include "wire/fabric/objects.h"

namespace tandem::wire {

namespace {

class Connections final : public SlotEndpoint {
 public:
  explicit Connections(Info found) : SlotEndpoint(std::move(found)), pass_(bootstrap::random_key()) {
    fi_eq_attr events{};
    events.wait_obj = FI_WAIT_FD;
    events_ = opened<fid_eq>("events", [&](auto** to) { return ::fi_eq_open(fabric(), &events, to, nullptr); });
    receiver_ = opened<fid_ep>(
        "messages", [&](auto** to) { return ::fi_srx_context(domain(), described()->rx_attr, to, nullptr); });
    receive_by(receiver_.get());
    listener_ =
        opened<fid_pep>("listener", [&](auto** to) { return ::fi_passive_ep(fabric(), described(), to, nullptr); });
    check_fabric(::fi_pep_bind(listener_.get(), &events_->fid, 0), "listener");
    check_fabric(::fi_listen(listener_.get()), "listener");
  }

  Bytes address() const override;
  void connect(const std::vector<Bytes>& addresses) override;
  bool send(int pe, View header, View data, const OnSent& sent) override;
  bool poll(const std::function<void(View)>& take) override {
    if (listener_ != nullptr) read_events();
    const bool has_message = SlotEndpoint::poll(take);
    if (!has_message) read_events();
    return has_message;
  }
  /// Nothing announces a PE that connects.
  void wait(int ms) override { SlotEndpoint::wait(listener_ != nullptr ? 1 : ms); }

 private:
  /// The connection to a PE.
  struct Peer {
    Owned<fid_ep> endpoint = {};
    bool is_connected = false;
  };

  fi_info* described() const { return const_cast<fi_info*>(&info()); }
  Owned<fid_ep> make_end(fi_info* description) const;
  void read_events();
  void admit(fi_info* caller, View pass);
  void note_connection(const fid* end);
  void note_end(const fid* end);
  int pe_of(const fid* end) const;
  void take_event_error();

  const bootstrap::Key pass_;
  Owned<fid_eq> events_;
  Owned<fid_ep> receiver_;
  Owned<fid_pep> listener_;             // null: all connections are there
  std::vector<Peer> peers_;             // by PE
  std::vector<Owned<fid_ep>> callers_;  // the ends of other PEs' connections to this one
  std::size_t missing_ = 0;             // connections of both directions
};

/// Returns where this PE listens, behind its pass.
Bytes Connections::address() const {
  Bytes address(256);
  std::size_t bytes = address.size();
  check_fabric(::fi_getname(&listener_->fid, address.data(), &bytes), "address");
  address.resize(bytes);
  address.insert(address.begin(), pass_.begin(), pass_.end());
  return address;
}

Owned<fid_ep> Connections::make_end(fi_info* description) const {
  auto end = opened<fid_ep>("endpoint", [&](auto** to) { return ::fi_endpoint(domain(), description, to, nullptr); });
  check_fabric(::fi_ep_bind(end.get(), &events_->fid, 0), "endpoint");
  check_fabric(::fi_ep_bind(end.get(), &completions()->fid, FI_TRANSMIT | FI_RECV), "endpoint");
  check_fabric(::fi_ep_bind(end.get(), &receiver_->fid, 0), "endpoint");
  check_fabric(::fi_enable(end.get()), "endpoint");
  return end;
}

void Connections::connect(const std::vector<Bytes>& addresses) {
  peers_.resize(addresses.size());
  for (std::size_t pe = 0; pe < addresses.size(); ++pe) {
    if (addresses[pe].empty()) continue;
    check_address(addresses, pe);
    peers_[pe].endpoint = make_end(described());
    missing_ += 2;
    check_fabric(::fi_connect(peers_[pe].endpoint.get(), addresses[pe].data() + pass_.size(), addresses[pe].data(),
                              pass_.size()),
                 fmt::format("connection to PE {}", pe));
  }
  if (missing_ == 0) listener_.reset();
}

bool Connections::send(int pe, View header, View data, const OnSent& sent) {
  Peer& peer = peers_[static_cast<std::size_t>(pe)];
  return peer.is_connected && send_by(peer.endpoint.get(), FI_ADDR_UNSPEC, pe, header, data, sent);
}

/// Carries on with connections that are not there yet, and notes those that have ended.
void Connections::read_events() {
  constexpr std::size_t most_pass = 256;
  union {
    fi_eq_cm_entry entry;
    std::array<std::byte, sizeof(fi_eq_cm_entry) + most_pass> room;
  } event{};
  for (std::uint32_t kind = 0;;) {
    const ssize_t bytes = ::fi_eq_read(events_.get(), &kind, &event, sizeof event, 0);
    if (bytes == -FI_EAGAIN) return;
    if (bytes == -FI_EAVAIL) {
      take_event_error();
      continue;
    }
    check_fabric(bytes, "events");
    const View behind = View(event.room).first(static_cast<std::size_t>(bytes)).subspan(sizeof(fi_eq_cm_entry));
    if (kind == FI_CONNREQ) admit(event.entry.info, behind);
    if (kind == FI_CONNECTED) note_connection(event.entry.fid);
    if (kind == FI_SHUTDOWN) note_end(event.entry.fid);
  }
}

void Connections::admit(fi_info* caller, View pass) {
  const Info description(caller);
  if (listener_ == nullptr) return;
  const bool is_of_world = pass.size() >= pass_.size() && sodium_memcmp(pass.data(), pass_.data(), pass_.size()) == 0;
  if (!is_of_world) {
    static_cast<void>(::fi_reject(listener_.get(), description->handle, nullptr, 0));
    return;
  }
  callers_.push_back(make_end(description.get()));
  check_fabric(::fi_accept(callers_.back().get(), nullptr, 0), "connection");
}

int Connections::pe_of(const fid* end) const {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return peer.endpoint != nullptr && &peer.endpoint->fid == end;
  });
  return found == peers_.end() ? -1 : static_cast<int>(found - peers_.begin());
}

void Connections::note_connection(const fid* end) {
  if (const int pe = pe_of(end); pe >= 0) peers_[static_cast<std::size_t>(pe)].is_connected = true;
  if (--missing_ == 0) listener_.reset();
}

/// The other end of another PE's connection to this one ends it too, and that PE knows whose it was.
void Connections::note_end(const fid* end) {
  if (const int pe = pe_of(end); pe >= 0) note_break(pe, FI_ECONNRESET);
}

/// Strangers who connect and leave are no error.
void Connections::take_event_error() {
  fi_eq_err_entry error{};
  check_fabric(::fi_eq_readerr(events_.get(), &error, 0), "events");
  const int pe = pe_of(error.fid);
  if (pe < 0) return;
  if (peers_[static_cast<std::size_t>(pe)].is_connected) return note_break(pe, error.err);
  check_fabric(-error.err, fmt::format("connection to PE {}", pe));
}

}  // namespace

std::unique_ptr<Endpoint> make_connected_endpoint(const std::string& provider, const std::string& address) {
  return std::make_unique<Connections>(find_provider(provider, address, FI_EP_MSG));
}

}  // namespace tandem::wire

#endif
