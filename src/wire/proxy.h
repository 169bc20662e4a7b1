#pragma once
/// The proxy of a PE: a thread that sends the PE's letters as messages, and carries out those of other PEs.
///
/// Messages of a PE are carried out in the order of their numbers, whatever order they arrive in. Data is placed before
/// the word of its signal changes. A message that comes twice is carried out once. One that is not authentic is
/// dropped, and one that reaches beyond this PE's memory ends the world before a byte is placed.

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "wire/endpoint.h"
#include "wire/mailbox.h"
#include "wire/message.h"

namespace tandem::wire {

/// Messages by which PEs of several hosts know that the others live, and whether they wait.
struct Heartbeat {
  double silence_s = 3;  ///< after which a PE that was heard before is lost
  /// Returns a value that changes while a wait of this PE lasts.
  std::function<std::uint64_t()> look;
  /// Takes that value of another PE.
  std::function<void(int pe, std::uint64_t look)> on_look;
  std::function<void(const std::vector<int>& pes)> on_silence;
  /// Returns at most so many bytes for a PE, which come with a heartbeat; empty: nothing new. May be null.
  std::function<Bytes(int pe, std::size_t most)> news = {};
  /// Takes the bytes of another PE.
  std::function<void(int pe, View news)> on_news = {};
};

/// The parts of a world that a proxy needs. The functions are called on the proxy's thread.
struct ProxySetup {
  Place place;
  bootstrap::Key secret;
  Seal seal = Seal::kHeaders;
  /// Wakes the PE's waits, whose words or letters may have changed.
  std::function<void()> ring;
  /// Returns whether the world is over: letters are dropped then, and nothing is written any more.
  std::function<bool()> is_over;
  /// Ends the world.
  std::function<void(const std::exception_ptr&)> on_error;
  std::optional<Heartbeat> heartbeat = {};
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
  /// Notes that the PE's memory has grown.
  void set_bytes(Size bytes) { bytes_.store(bytes, std::memory_order_release); }
  /// Copies between memory of this process and another node, for the host program. Returns once the copy is complete or
  /// the world is over. Returns false, and copies nothing, if neither address is on another node.
  bool copy(void* to, const void* from, Size bytes);
  /// Returns the PEs of other nodes that were never heard. Any thread may call it.
  std::vector<int> unheard() const;
  /// Blocks until other PEs have carried out all letters so far, or the world is over.
  void settle();

 private:
  using Clock = std::chrono::steady_clock;

  /// The messages to and from one PE.
  struct Peer {
    std::uint64_t sent = 0;                ///< number of the last message to it
    std::uint64_t received = 0;            ///< number of the last message of it that was carried out
    Clock::time_point heard = {};          ///< when a message of it last arrived; 0: never
    std::atomic<bool> was_heard{false};    ///< a message of it has arrived
    bool is_unflushed = false;             ///< a put was sent since the last flush
    std::map<std::uint64_t, Bytes> early;  ///< messages by number that wait for earlier ones
  };
  /// The letter that is being sent.
  struct Current {
    Letter letter;
    std::uint64_t number = 0;
    Size done = 0;      ///< bytes that are sent, or asked for
    int next_peer = 0;  ///< of a flush
  };
  /// An answer to a PE that asked, or news for it.
  struct Answer {
    Header header;
    const std::byte* data = nullptr;  ///< null: `own`
    Bytes own = {};
  };
  /// Bytes of a get that were asked for.
  struct Asked {
    std::byte* to = nullptr;
    Size bytes = 0;
    int pe = 0;
    std::uint64_t letter = 0;
  };

  void carry_out_now(const Letter& letter);
  void run();
  bool step();
  void beat();
  void tell_news(int pe, std::uint64_t look);
  void look_for_silence(Clock::time_point now);
  bool send_answers();
  bool send_letter();
  bool send_put(Current& current);
  bool send_get(Current& current);
  bool send_flush(Current& current);
  bool send(Header header, const std::byte* data);
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
  std::deque<Answer> answers_;
  std::map<std::uint64_t, Asked> asked_;  // by the number that the answer repeats
  std::map<std::uint64_t, int> open_;     // answers that letters wait for
  std::set<std::uint64_t> flushes_;       // letters that are sent and not answered
  std::uint64_t questions_ = 0;
  std::uint64_t sent_ = 0;     // letters
  std::uint64_t flushed_ = 0;  // the last flush that is answered
  Bytes plain_, sealed_;
  Clock::time_point beaten_ = {};  // when the last heartbeat was sent
  Clock::time_point looked_ = {};  // when this PE last looked for silence
  std::uint64_t look_ = 0;         // value of the last heartbeat
  bool has_dropped_ = false;       // a message that is not authentic
  std::atomic<bool> is_stopping_{false};
  Mailbox mailbox_;
  std::thread thread_;
};

}  // namespace tandem::wire
