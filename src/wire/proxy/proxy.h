#pragma once
/// The proxy of a PE: a thread that sends the PE's requests as messages, and carries out those of other PEs.
///
/// Messages of a PE are carried out in the order of their numbers, whatever order they arrive in. Data is placed before
/// the word of its signal changes. A message that comes twice is carried out once. One that is not authentic is
/// dropped, and one that reaches beyond this PE's memory ends the world before a byte is placed.

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "wire/endpoint.h"
#include "wire/proxy/records.h"
#include "wire/proxy/setup.h"

namespace tandem::wire {

class Proxy {
 public:
  /// `endpoint` is connected. The PE's memory has `bytes` bytes.
  Proxy(ProxySetup setup, std::unique_ptr<Endpoint> endpoint, Size bytes);
  /// Stops the thread. No PE may need an answer of this one any more, unless the world is over.
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  Mailbox& mailbox() { return mailbox_; }
  Access& access() { return *setup_.access; }
  /// Notes that the PE's memory has grown.
  void set_bytes(Size bytes) { bytes_.store(bytes, std::memory_order_release); }
  /// Copies between memory of this process and another node, for the host program. Returns once the copy is complete or
  /// the world is over. Returns false, and copies nothing, if neither address is on another node.
  bool copy(void* to, const void* from, Size bytes);
  /// Returns the PEs of other nodes that were never heard. Any thread may call it.
  std::vector<int> unheard() const;
  /// Returns how far the requests of kernels have come, for reports. Any thread may call it.
  Requests requests() const;
  /// Blocks until other PEs have carried out all requests so far, or the world is over.
  void settle();

 private:
  void carry_out_now(const Request& request);
  void run();
  void rest(bool is_held_up);
  bool step();
  void greet();
  void beat();
  void send_beat(const Header& header, bool is_over);
  void tell_news(int pe, std::uint64_t look);
  void answer(Answer answer);
  bool send_answers();
  bool send_answer(Answer& answer);
  bool is_ready(Answer& answer);
  bool take_request();
  bool send_requests();
  bool drop_requests();
  bool begin_message();
  Size piece_of(Size bytes) const;
  bool begin_put(Current& current);
  bool begin_get(Current& current);
  bool begin_flush(Current& current);
  void ask(Header header, std::byte* to);
  bool set_out(Outgoing& message);
  bool note_sent();
  bool send(Header header, View payload, const OnSent& sent = nullptr);
  void receive(View message);
  void carry_out_next(Peer& from, const Header& header, View message);
  void carry_out(const Header& header, View data);
  void put(const Header& header, View data);
  void change_word(const Header& header);
  void answer_get(const Header& header);
  void take_answer(const Header& header, View data);
  void note();
  void require_within(const Header& header, Size offset, Size bytes) const;
  /// Returns this PE's part of the symmetric memory.
  std::byte* own() const { return setup_.place.base + setup_.place.me * setup_.place.stride; }
  Peer& peer(int pe) { return peers_[static_cast<std::size_t>(pe)]; }

  const ProxySetup setup_;
  const Keys keys_;
  const std::unique_ptr<Endpoint> endpoint_;
  const Size piece_;
  std::atomic<Size> bytes_;
  std::vector<Peer> peers_;
  std::optional<Current> current_;
  std::deque<Outgoing> outgoing_;            // messages of requests, in their order
  std::size_t under_way_ = 0;                // of them, from the first on
  std::size_t answers_ = 0;                  // to all PEs
  std::map<std::uint64_t, Asked> asked_;     // by the number that the answer repeats
  std::map<std::uint64_t, Open> open_;       // by request
  std::map<std::uint64_t, Counts> flushes_;  // requests that are sent and not answered, with all up to them
  std::uint64_t questions_ = 0;
  std::uint64_t taken_requests_ = 0;
  Counts taken_;
  Counts sent_;
  std::uint64_t flushed_ = 0;                         // requests of the mailbox up to the last flush that is answered
  std::chrono::steady_clock::time_point moved_ = {};  // when there was last something to do
  Bytes plain_, sealed_;
  std::optional<Heartbeats> heartbeats_;
  bool has_dropped_ = false;  // a message that is not authentic
  std::atomic<bool> is_stopping_{false};
  Mailbox mailbox_;
  std::thread thread_;
};

}  // namespace tandem::wire
