#pragma once
/// The records that a proxy keeps of requests and messages.

#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "wire/access.h"
#include "wire/endpoint.h"
#include "wire/mailbox.h"
#include "wire/message.h"

namespace tandem::wire {

/// Numbers of requests of the mailbox, and of those that kernels post in memory.
struct Counts {
  std::uint64_t mailbox = 0;
  std::uint64_t kernels = 0;
};

/// How far a request has come.
struct Progress {
  Counts until;         ///< the requests up to this one
  Size unsent = 0;      ///< messages whose data is not sent yet
  Size unanswered = 0;  ///< questions
  bool is_flush = false;
};

/// A request that becomes messages to one PE.
struct Current {
  Request request;
  std::uint64_t number = 0;
  Size done = 0;  ///< bytes that are in messages, or asked for
};

/// A message of a request. It waits for its data, which is read beside that of others, and for room. Then it is under
/// way, until its data is sent.
struct Outgoing {
  Header header;
  std::uint64_t request = 0;  ///< its number
  std::optional<Reading> reading = {};
  std::optional<Held> held = {};    ///< the data of a put that its request held
  std::optional<View> beside = {};  ///< the data of a put that stays until its request is answered
  bool is_sent = false;

  /// Returns the data, which has been read.
  View data() const {
    if (held) return View(*held).first(static_cast<std::size_t>(header.bytes));
    if (beside) return *beside;
    return reading ? reading->data : View{};
  }
};

/// An answer to a PE that asked, or news for it.
struct Answer {
  Header header;
  const std::byte* data = nullptr;  ///< null: `own`
  Bytes own = {};
  std::optional<Reading> reading = {};
  std::uint64_t writes = 0;  ///< the mark of writes that have to be in memory before
  std::optional<std::chrono::steady_clock::time_point> held_up = {};  ///< since when it finds no room

  /// Returns the data, which has been read.
  View data_to_send() const {
    if (data == nullptr) return own;
    return reading ? reading->data : View{};
  }
};

/// The messages to and from one PE.
struct Peer {
  std::uint64_t sent = 0;                ///< number of the last message to it
  std::uint64_t received = 0;            ///< number of the last message of it that was carried out
  std::atomic<bool> was_heard{false};    ///< a message of it has arrived
  bool is_unflushed = false;             ///< a put was taken since the last flush
  bool is_busy = false;                  ///< it has requests or messages of them
  std::deque<Current> requests;          ///< of which messages are still to be made
  std::deque<Outgoing> outgoing;         ///< messages of requests, in their order
  std::size_t under_way = 0;             ///< of them, from the first on
  std::size_t readings = 0;              ///< for them
  std::deque<Answer> answers;            ///< to it
  std::map<std::uint64_t, Bytes> early;  ///< messages by number that wait for earlier ones
  std::size_t early_bytes = 0;           ///< of them
};

/// A message from which data is still written to the PE's memory.
struct KeptMessage {
  View message;
  std::optional<std::uint64_t> writes = {};  ///< the mark of its writes, once there is one
};

/// A flush that some PEs have not answered.
struct Ordering {
  std::uint64_t request = 0;  ///< its number
  std::vector<int> pes;       ///< those PEs
  /// Requests with greater numbers wait for these PEs, unless they go to one of them alone.
  std::uint64_t binds_behind = std::numeric_limits<std::uint64_t>::max();
};

/// A connection that has broken.
struct Broken {
  Break it;
  std::chrono::steady_clock::time_point since;  ///< when it was found
};

/// Bytes of a get that were asked for.
struct Asked {
  std::byte* to = nullptr;
  Size bytes = 0;
  int pe = 0;
  std::uint64_t request = 0;
};

}  // namespace tandem::wire
