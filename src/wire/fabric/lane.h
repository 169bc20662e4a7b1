#pragma once
/// Messages in slots of memory that is registered once, and their completions.

#include <array>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "wire/endpoint.h"
#include "wire/fabric/objects.h"

namespace tandem::wire {

/// One thread uses a lane.
class Lane {
 public:
  /// The lane has slots for so many messages that are sent, and that are received, at a time.
  Lane(const fi_info& info, fid_fabric* fabric, std::size_t sends, std::size_t receives);

  fid_domain* domain() const { return domain_.get(); }
  fid_cq* completions() const { return done_.get(); }
  const std::shared_ptr<std::byte[]>& memory() const { return memory_; }
  std::size_t memory_bytes() const { return slots_.size() * kRoom; }

  /// Gives slots to an endpoint that receives. It lives as long as this object.
  void receive_by(fid_ep* receiver);
  /// Sends a message by an endpoint that is connected or has the address `to`. Returns false if there is no room, or
  /// the connection has broken.
  bool send_by(fid_ep* sender, fi_addr_t to, int pe, View header, View data, const OnSent& sent);
  /// Notes that no message reaches a PE any more. The proxy reports it, unless the PE has gone and others know why.
  void note_break(int pe, int error);
  std::vector<Break> breaks() { return std::exchange(breaks_, {}); }
  /// As Endpoint::poll.
  bool poll(const Take& take);
  /// Returns whether a message holds a slot until it is sent.
  bool is_sending() const { return free_.size() < sends_; }
  /// Takes back a message that was kept.
  void release(View message);
  /// Returns a descriptor that is readable once there is something to poll; -1 if there is now.
  int sleeping_descriptor() const;

 private:
  static constexpr auto kRoom = static_cast<std::size_t>(kFabricMessageBytes);  // bytes of a slot
  /// The next small message takes a slot, so that a receiver that stands still holds up the sender.
  static constexpr std::size_t kInjectedInARow = 16;

  /// Room for one message. The context comes first: libfabric gives it back.
  struct Slot {
    fi_context2 context;
    std::byte* bytes;
    int pe;       ///< of a message to a PE; -1 of one that is received
    OnSent sent;  ///< of a message whose data is elsewhere
  };

  /// The messages to a PE.
  struct Share {
    std::size_t slots = 0;  ///< that they hold
    bool is_broken = false;
  };

  Share& share(int pe);
  long inject(fid_ep* sender, fi_addr_t to, View header, View data, const OnSent& sent);
  long send_slot(fid_ep* sender, fi_addr_t to, Slot& slot, View header, View data, const OnSent& sent);
  void end_send(Slot& slot);
  bool receive_into(Slot& slot);
  void receive_again();
  void take_error();
  void* descriptor() const { return region_ == nullptr ? nullptr : ::fi_mr_desc(region_.get()); }

  const fi_info& info_;
  fid_fabric* fabric_;
  const std::size_t sends_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> done_;
  std::shared_ptr<std::byte[]> memory_;
  Owned<fid_mr> region_;
  std::deque<Slot> slots_;
  std::vector<Slot*> free_;     // for sends, which have the first slots
  std::deque<Slot*> unposted_;  // for receives
  std::vector<Share> shares_;   // by PE, as far as messages were sent
  std::vector<Break> breaks_;   // that nobody knows yet
  fid_ep* receiver_ = nullptr;
  std::array<std::byte, 128> small_ = {};  // a message that is sent before a call returns, without a completion
  std::size_t most_injected_ = 0;
  std::size_t small_sends_ = 0;
  int done_fd_ = -1;
};

}  // namespace tandem::wire
