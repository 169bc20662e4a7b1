#pragma once
/// Objects of libfabric, which close themselves, and messages in slots of memory that is registered once.

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/protocol/fd.h"
#include "wire/endpoint.h"
#include "wire/fabric/libfabric.h"

namespace tandem::wire {

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

/// Returns the object that `open` makes. Throws RuntimeFailure, with `what` in its text.
template <class Object, class Open>
Owned<Object> opened(const char* what, const Open& open) {
  Object* object = nullptr;
  check_fabric(open(&object), what);
  return Owned<Object>(object);
}

/// Returns the provider's description of messages at this host's address. Throws Unsupported.
Info find_provider(const std::string& provider, const std::string& address, fi_ep_type type);

/// The part of an endpoint that does not depend on how PEs are connected: slots, completions, and waits.
class SlotEndpoint : public Endpoint {
 public:
  explicit SlotEndpoint(Info info);

  std::string name() const override;
  Size most_bytes() const override { return kFabricMessageBytes; }
  bool poll(const std::function<void(View)>& take) override;
  void wait(int ms) override;
  void wake() override;
  std::vector<Break> breaks() override { return std::exchange(breaks_, {}); }

 protected:
  /// Room for one message. The context comes first: libfabric gives it back.
  struct Slot {
    fi_context2 context;
    std::byte* bytes;
    int pe;  ///< of a message to a PE; -1 of one that is received
  };

  /// Requires the length of this PE's own address, which has the same format. Libfabric takes no length.
  void check_address(const std::vector<Bytes>& addresses, std::size_t pe) const;
  /// Gives slots to an endpoint that receives. It lives as long as this object.
  void receive_by(fid_ep* receiver);
  /// Sends a message by an endpoint that is connected or has the address `to`. Returns false if there is no room, or
  /// the connection has broken.
  bool send_by(fid_ep* sender, fi_addr_t to, int pe, View header, View data, const OnSent& sent);
  /// Notes that no message reaches a PE any more. The proxy reports it, unless the PE has gone and others know why.
  void note_break(int pe, int error);

  const fi_info& info() const { return *info_; }
  fid_fabric* fabric() const { return fabric_.get(); }
  fid_domain* domain() const { return domain_.get(); }
  fid_cq* completions() const { return done_.get(); }

 private:
  static constexpr std::size_t kSends = 16;
  static constexpr std::size_t kReceives = 32;
  static constexpr auto kRoom = static_cast<std::size_t>(kFabricMessageBytes);  // bytes of a slot
  /// The next small message takes a slot, so that a receiver that stands still holds up the sender.
  static constexpr std::size_t kInjectedInARow = 16;

  /// The messages to a PE.
  struct Share {
    std::size_t slots = 0;  ///< that they hold
    bool is_broken = false;
  };

  Share& share(int pe);
  void make_slots();
  long inject(fid_ep* sender, fi_addr_t to, View header, View data, const OnSent& sent);
  long send_slot(fid_ep* sender, fi_addr_t to, Slot& slot, View header, View data, const OnSent& sent);
  void end_send(Slot& slot);
  OnSent& on_sent(const Slot& slot) { return on_sent_[static_cast<std::size_t>(slot.bytes - memory_.get()) / kRoom]; }
  bool receive_into(Slot& slot);
  void receive_again();
  void take_error();
  void* descriptor() const { return region_ == nullptr ? nullptr : ::fi_mr_desc(region_.get()); }

  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> done_;
  std::unique_ptr<std::byte[]> memory_;
  Owned<fid_mr> region_;
  std::deque<Slot> slots_;
  std::vector<Slot*> free_;             // for sends, which have the first slots
  std::vector<Share> shares_;           // by PE, as far as messages were sent
  std::vector<Break> breaks_;           // that nobody knows yet
  std::array<OnSent, kSends> on_sent_;  // by slot, of messages whose data is elsewhere
  std::deque<Slot*> unposted_;          // for receives
  fid_ep* receiver_ = nullptr;
  std::array<std::byte, 128> small_ = {};  // a message that is sent before a call returns, without a completion
  std::size_t most_injected_ = 0;
  std::size_t small_sends_ = 0;
  int done_fd_ = -1;
  enum class Rest : std::uint8_t { kNone, kAsleep, kWoken };
  std::atomic<Rest> rest_{Rest::kNone};
  bootstrap::Fd woken_;
};

/// Endpoints that send messages to addresses: of every provider, perhaps by layers of libfabric.
std::unique_ptr<Endpoint> make_datagram_endpoint(const std::string& provider, const std::string& address);
/// Endpoints with a connection for each direction of two PEs: of a provider that has such connections.
std::unique_ptr<Endpoint> make_connected_endpoint(const std::string& provider, const std::string& address);

}  // namespace tandem::wire
