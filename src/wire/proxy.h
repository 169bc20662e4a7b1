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

#include "wire/access.h"
#include "wire/endpoint.h"
#include "wire/heartbeats.h"
#include "wire/mailbox.h"
#include "wire/message.h"

namespace tandem::wire {

/// The parts of a world that a proxy needs. The functions are called on the proxy's thread.
struct ProxySetup {
  Place place;
  bootstrap::Key secret;
  Seal seal = Seal::kHeaders;
  /// Wakes the PE's waits, whose words or requests may have changed.
  std::function<void()> ring;
  /// Returns whether the world is over: requests are dropped then, and nothing is written any more.
  std::function<bool()> is_over;
  /// Ends the world.
  std::function<void(const std::exception_ptr&)> on_error;
  std::optional<Heartbeat> heartbeat = {};
  /// Reaches the PE's memory.
  std::shared_ptr<Access> access = std::make_shared<HostAccess>();
};

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
  /// The messages to and from one PE.
  struct Peer {
    std::uint64_t sent = 0;                ///< number of the last message to it
    std::uint64_t received = 0;            ///< number of the last message of it that was carried out
    std::atomic<bool> was_heard{false};    ///< a message of it has arrived
    bool is_unflushed = false;             ///< a put was sent since the last flush
    std::map<std::uint64_t, Bytes> early;  ///< messages by number that wait for earlier ones
  };
  /// Numbers of requests of the mailbox, and of those that kernels post in memory.
  struct Counts {
    std::uint64_t mailbox = 0;
    std::uint64_t kernels = 0;
  };
  /// The request that is being made to messages.
  struct Current {
    Request request;
    std::uint64_t number = 0;
    Counts before;      ///< requests before it
    Size done = 0;      ///< bytes that are in messages, or asked for
    int next_peer = 0;  ///< of a flush
  };
  /// A message of a request. It waits for its data, which is read beside that of others, and for room. Then it is under
  /// way, until its data is sent.
  struct Outgoing {
    Header header;
    std::optional<Reading> reading = {};
    std::optional<Counts> ends = {};  ///< requests up to which all is sent with it
    bool is_sent = false;
  };
  /// An answer to a PE that asked, or news for it.
  struct Answer {
    Header header;
    const std::byte* data = nullptr;  ///< null: `own`
    Bytes own = {};
    std::optional<Reading> reading = {};
    std::uint64_t writes = 0;  ///< the mark of writes that have to be in memory before
  };
  /// The answers that a request waits for.
  struct Open {
    int answers = 0;
    Counts before;  ///< requests before it
  };
  /// Bytes of a get that were asked for.
  struct Asked {
    std::byte* to = nullptr;
    Size bytes = 0;
    int pe = 0;
    std::uint64_t request = 0;
  };

  void carry_out_now(const Request& request);
  void run();
  void rest(bool is_held_up);
  bool step();
  void greet();
  void beat();
  void tell_news(int pe, std::uint64_t look);
  bool send_answers();
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
  View data_of(const std::optional<Reading>& reading) const { return reading ? reading->data : View{}; }
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
  std::deque<Outgoing> outgoing_;  // messages of requests, in their order
  std::size_t under_way_ = 0;      // of them, from the first on
  std::deque<Answer> answers_;
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
