// Messages along connections (FI_EP_MSG), which no layer of libfabric copies once more.
//
// Each PE listens, and opens a connection to each PE of another node, for its own messages. Who connects has to know
// the listener's pass, which is a part of its address and known to the PEs of the world alone. A PE to which all others
// have connected listens no more.
#if __has_include(<rdma/fabric.h>)

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"
#include "wire/fabric/arrivals.h"
#include "wire/fabric/events.h"

namespace tandem::wire {

namespace {

class Connections final : public Endpoint {
 public:
  Connections(Info found, std::chrono::microseconds search)
      : fabric_(std::move(found)),
        search_(search),
        departures_(fabric_.info(), fabric_.get(), kSends, 0),
        events_(make_events(fabric_.get())),
        no_receiver_(make_receiver(fabric_.info(), departures_)),
        arrivals_(fabric_.info(), fabric_.get()) {}

  std::string name() const override { return fabric_.name(); }
  Bytes address() const override { return arrivals_.address(); }
  void connect(const std::vector<Bytes>& addresses) override;
  Room room() const override {
    return {kFabricMessageBytes, arrivals_.lane().memory(), arrivals_.lane().memory_bytes()};
  }
  bool send(int pe, View header, View data, const OnSent& sent) override {
    Peer& peer = peers_[static_cast<std::size_t>(pe)];
    return peer.is_connected && departures_.send_by(peer.endpoint.get(), FI_ADDR_UNSPEC, pe, header, data, sent);
  }
  /// Looks that make a call to the system and hardly ever find anything are rare.
  bool poll(const Take& take) override {
    const bool looks = is_calling_ || ++polls_ % kPollsOfLook == 0;
    if (looks) read_events();
    if (looks || departures_.is_sending()) departures_.poll([](View) { return false; });
    return arrivals_.poll(take);
  }
  void release(View message) override { arrivals_.release(message); }
  void wait(int ms) override {
    const int sends = departures_.sleeping_descriptor();
    const auto receives = arrivals_.sleeping_descriptor();
    sleep_.wait({sends, receives.value_or(sends)}, is_calling_ || arrivals_.has_to_look() ? 1 : ms);
    polls_ = kPollsOfLook - 1;
  }
  void wake() override { sleep_.wake(); }
  std::vector<Break> breaks() override { return departures_.breaks(); }

 private:
  static constexpr std::size_t kSends = 16;
  static constexpr unsigned kPollsOfLook = 32;
  /// The thread that receives is woken by messages, so it need not look for them as long as the proxy of a GPU does.
  static constexpr std::chrono::microseconds kMostSearch{100};

  /// The connection to a PE.
  struct Peer {
    Owned<fid_ep> endpoint = {};
    bool is_connected = false;
  };

  void read_events();
  void note_connection(const fid* end);
  void note_end(const fid* end);
  void take_event_error(const fi_eq_err_entry& error);
  int pe_of(const fid* end) const;

  const Fabric fabric_;
  const std::chrono::microseconds search_;
  Sleep sleep_;
  Lane departures_;
  Owned<fid_eq> events_;
  Owned<fid_ep> no_receiver_;  // nothing comes along the connections for this PE's messages
  std::vector<Peer> peers_;    // by PE
  std::size_t missing_ = 0;    // of their connections
  bool is_calling_ = true;     // a connection is missing
  unsigned polls_ = 0;
  Arrivals arrivals_;
};

void Connections::connect(const std::vector<Bytes>& addresses) {
  peers_.resize(addresses.size());
  for (std::size_t pe = 0; pe < addresses.size(); ++pe) {
    if (addresses[pe].empty()) continue;
    check_address(addresses, pe, arrivals_.address().size());
    peers_[pe].endpoint = make_end(fabric_.info(), departures_, events_.get(), no_receiver_.get());
    ++missing_;
    const std::byte* const pass = addresses[pe].data();
    check_fabric(::fi_connect(peers_[pe].endpoint.get(), pass + Arrivals::pass_bytes(), pass, Arrivals::pass_bytes()),
                 fmt::format("connection to PE {}", pe));
  }
  is_calling_ = missing_ > 0;
  arrivals_.start(missing_, std::min(search_, kMostSearch), [this] { sleep_.wake(); });
}

/// Carries on with connections that are not there yet, and notes those that have ended.
void Connections::read_events() {
  for_each_event(
      events_.get(),
      [this](std::uint32_t kind, const fi_eq_cm_entry& entry, View) {
        if (kind == FI_CONNECTED) note_connection(entry.fid);
        if (kind == FI_SHUTDOWN) note_end(entry.fid);
      },
      [this](const fi_eq_err_entry& error) { take_event_error(error); });
}

int Connections::pe_of(const fid* end) const {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return peer.endpoint != nullptr && &peer.endpoint->fid == end;
  });
  return found == peers_.end() ? -1 : static_cast<int>(found - peers_.begin());
}

void Connections::note_connection(const fid* end) {
  const int pe = pe_of(end);
  if (pe < 0) return;
  peers_[static_cast<std::size_t>(pe)].is_connected = true;
  is_calling_ = --missing_ > 0;
}

void Connections::note_end(const fid* end) {
  if (const int pe = pe_of(end); pe >= 0) departures_.note_break(pe, FI_ECONNRESET);
}

void Connections::take_event_error(const fi_eq_err_entry& error) {
  const int pe = pe_of(error.fid);
  if (pe < 0) return;
  if (peers_[static_cast<std::size_t>(pe)].is_connected) return departures_.note_break(pe, error.err);
  check_fabric(-error.err, fmt::format("connection to PE {}", pe));
}

}  // namespace

std::unique_ptr<Endpoint> make_connected_endpoint(const std::string& provider, const std::string& address,
                                                  std::chrono::microseconds search) {
  return std::make_unique<Connections>(find_provider(provider, address, FI_EP_MSG), search);
}

}  // namespace tandem::wire

#endif
