#pragma once
/// One process's place in a world: all-gathers and barriers between the world's processes, and word of who is gone.

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/protocol/handshake.h"
#include "bootstrap/protocol/socket.h"
#include "bootstrap/rendezvous/id_contents.h"
#include "bootstrap/rendezvous/meeting.h"
#include "bootstrap/rendezvous/service.h"
#include "tandem/advanced/unique_id.h"

namespace tandem::bootstrap {

/// Throws InvalidArgument where there is no such PE in a world of that size, or no such world.
void check_place(int pe, int pes);

class Session {
 public:
  /// Joins the world of `id` as PE `pe` of `size`, and returns when all have come. Throws Timeout (who never came),
  /// InvalidArgument (sizes that differ, a PE that came twice), RuntimeFailure (nobody listens, another secret).
  /// `timeout_s` bounds this and every later wait.
  Session(const UniqueId& id, int pe, int size, double timeout_s);
  /// Leaves. Others that still wait for this PE get an error; so do all where an exception is on its way.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int pe() const { return pe_; }
  int size() const { return size_; }
  /// This process's own, as the host of the rendezvous sees it: others that reach the host should reach it too.
  const std::string& address() const { return address_; }
  const Key& secret() const { return secret_; }
  /// How many splits of this world came before this one; the same on all PEs.
  std::uint64_t count_split() { return splits_++; }
  double timeout_s() const { return timeout_s_; }
  /// It is this process's, not that of which this is a child: whoever destroys it there leaves its world alone.
  bool is_here() const { return service_.is_here(); }
  Team world() const { return {0, 1, size_, pe_, size_}; }

  /// Every member's bytes (at most kMostContribution), by number in the team. Collective over `team`; members call with
  /// the same `name`. Throws why the world is over where it is: InvalidArgument (another name), Timeout (who is
  /// missing), RuntimeFailure (who is gone). One thread at a time.
  std::vector<Bytes> all_gather(View own, const std::string& name, const Team& team);
  std::vector<Bytes> all_gather(View own, const std::string& name) { return all_gather(own, name, world()); }
  void barrier(const std::string& name, const Team& team) { all_gather({}, name, team); }
  void barrier(const std::string& name) { barrier(name, world()); }

  /// If `work` throws on one PE, all throw that error, with the PE's number, and the world goes on. Collective; the
  /// members of the world must not throw before it, or the others wait for them.
  void together(const std::string& name, const std::function<void()>& work);
  /// If `work`, of this PE alone, throws, the world is over: all PEs get the error, and it is rethrown.
  template <class Work>
  auto or_fail(Work work) {
    try {
      return work();
    } catch (const std::exception& error) {
      fail(failure_of(error));
      throw;
    }
  }

  /// Tells all PEs that the world is over, and why; their waits end with this text.
  void fail(const Failure& failure);
  /// Why the world is over.
  std::optional<Failure> failure() const;
  /// Called once, on a thread of the session, as soon as the world is over. Set before it is needed.
  void on_failure(std::function<void()> callback);
  /// The world ends in good order: from here on nobody's going is a failure, and nothing is called any more.
  void expect_end();

 private:
  using Call = std::tuple<int, int, int, std::uint64_t>;

  void join(const UniqueId& id);
  void connect(const IdContents& contents, const Deadline& deadline);
  void listen();
  void take(const Frame& frame);
  void end(Failure failure);
  void send(Kind kind, View payload);
  void send_more();
  bool flush();
  bool has_unsent();
  void finish_sending();

  int pe_;
  int size_;
  int exceptions_before_;
  double timeout_s_;
  Key secret_{};
  Fd socket_;
  std::string address_;
  std::mutex sending_;  // never held during a wait
  FrameWriter out_{Key{}};
  Bytes unsent_;  // what the socket has not taken yet
  FrameReader in_{Key{}, kMostHandshake};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::tuple<int, int, int>, std::uint64_t> calls_;  // of each team, so far
  std::uint64_t splits_ = 0;
  std::map<Call, std::vector<Bytes>> results_;
  std::optional<Failure> failure_;
  std::function<void()> callback_;
  bool ending_ = false;
  bool is_calling_ = false;
  Service service_;
};

}  // namespace tandem::bootstrap
