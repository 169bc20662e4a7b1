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
  /// Returns once no get writes to its destination any more. Any thread may call it, since the world is over.
  void end_gets();

 private:
  void carry_out_now(const Request& request);
  void run();
  bool is_held_up();
  void rest(bool is_held_up);
  bool step();
  bool take(View message);
  void release_messages(bool waits_for_more);
  void greet();
  void beat();
  void tell_news(int pe, std::uint64_t look);
  void watch_connections();
  void answer(Answer answer);
  bool send_answers();
  bool send_answer(Answer& answer);
  bool is_ready(Answer& answer);
  void end_reading(Answer& answer);
  bool gives_way(Answer& answer) const;
  bool take_request();
  void queue(const Request& request);
  void queue_for(int pe, const Current& current);
  bool send_requests();
  bool send_requests_to(Peer& to);
  bool drop_requests();
  bool begin_message(Peer& to);
  bool may_read_for(const Peer& to) const;
  bool waits_for_flush(const Current& current) const;
  Size piece_of(Size bytes) const;
  bool begin_put(Peer& to, Current& current);
  bool begin_get(Peer& to, Current& current);
  bool begin_flush(Peer& to, const Current& current);
  void ask(Peer& of, Header header, std::byte* to, std::uint64_t request);
  bool set_out(Outgoing& message);
  bool note_sent(Peer& to);
  void end_reading(Peer& to, const Reading& reading);
  bool send(Header header, View payload, const OnSent& sent = nullptr);
  void receive(View message);
  void keep(Peer& from, const Header& header, View message);
  void carry_out_next(Peer& from, const Header& header, View message);
  void carry_out(const Header& header, View data);
  void put(const Header& header, View data);
  void change_word(const Header& header);
  void answer_get(const Header& header);
  void take_answer(const Header& header, View data);
  bool write_answer(std::byte* to, View data);
  void note();
  void note_order(std::uint64_t request, int pe);
  void require_within(const Header& header, Size offset, Size bytes) const;
  /// Returns this PE's part of the symmetric memory.
  std::byte* own() const { return setup_.place.base + setup_.place.me * setup_.place.stride; }
  Peer& peer(int pe) { return peers_[static_cast<std::size_t>(pe)]; }
  /// Returns the record of a request that is not done.
  Progress& record(std::uint64_t request) { return records_[request - first_record_]; }

  const ProxySetup setup_;
  const Keys keys_;
  const std::unique_ptr<Endpoint> endpoint_;
  const Size piece_;
  const bool has_one_far_pe_;  // the world has one PE of another node
  std::atomic<Size> bytes_;
  std::vector<Peer> peers_;
  std::vector<int> busy_;    // PEs with requests, or messages of them
  std::size_t answers_ = 0;  // to all PEs
  int first_to_answer_ = 0;  // PE
  const std::size_t most_put_readings_, most_answer_readings_;
  std::size_t put_readings_ = 0;
  std::size_t answer_readings_ = 0;
  std::map<std::uint64_t, Asked> asked_;  // by the number that the answer repeats
  std::uint64_t questions_ = 0;
  std::vector<Ordering> orderings_;  // that are not answered
  std::deque<Progress> records_;     // of requests that are not done, nor all before them
  std::uint64_t first_record_ = 1;   // number of the first one's request
  std::size_t sent_records_ = 0;     // of them, from the first on: the requests that are sent
  bool has_news_ = false;            // for `note`
  bool stays_in_use_ = false;        // the message that is being carried out
  std::deque<KeptMessage> kept_;     // from which data is still written
  Counts taken_;
  Counts sent_;
  Counts answered_;
  std::uint64_t flushed_ = 0;                         // requests of the mailbox up to the last flush that is answered
  std::chrono::steady_clock::time_point moved_ = {};  // when there was last something to do
  Bytes plain_, sealed_;
  std::optional<Heartbeats> heartbeats_;
  std::vector<Broken> broken_;  // connections that are not reported
  bool has_dropped_ = false;    // a message that is not authentic
  std::atomic<bool> is_stopping_{false};
  std::atomic<bool> is_writing_answer_{false};
  std::atomic<bool> gets_are_over_{false};
  Mailbox mailbox_;
  std::thread thread_;
};

}  // namespace tandem::wire
