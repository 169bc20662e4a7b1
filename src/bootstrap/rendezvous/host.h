#pragma once
/// The rendezvous of one world: a thread that lets in who proves the secret, carries the all-gathers, and tells
/// everybody at once when somebody is gone.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "bootstrap/local/offer.h"
#include "bootstrap/protocol/connection.h"
#include "bootstrap/rendezvous/id_contents.h"
#include "bootstrap/rendezvous/meeting.h"
#include "bootstrap/rendezvous/service.h"

namespace tandem::bootstrap {

class Host {
 public:
  /// Listens on a port that the system chooses, and on a local socket for this user's processes on this host. Hands the
  /// id out, too, where `hand_off` has a listener. Throws InvalidArgument for an address that is not this host's.
  Host(const Key& secret, const std::string& address, HandOff hand_off = {});
  /// Waits for those who are still there, but not long.
  ~Host() { service_.stop(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// The contents of the world's id.
  const IdContents& contents() const { return contents_; }
  /// The world has come and gone; no socket is open.
  bool is_over() const { return over_; }
  /// It is this process's, not that of which this is a child.
  bool is_here() const { return service_.is_here(); }

 private:
  void run();
  void serve();
  /// Tells the members why this thread ends.
  void report(const std::exception& error);
  void take_in(const Fd& listener);
  void make_room(const std::string& address);
  void read(int fd);
  void handle(Connection& connection, const Frame& frame);
  void join(Connection& connection, const Frame& frame);
  Bytes welcome(Connection& connection, int pe, int size);
  void drop(int fd, const std::string& why);
  void send_messages();
  void flush();
  void close_listeners();
  void drop_late();
  std::string about_strangers() const;
  int patience_ms() const;

  IdContents contents_;
  Fd tcp_;
  Fd local_;
  HandOff hand_off_;
  std::atomic<bool> over_{false};
  Coordinator coordinator_;
  std::map<int, std::unique_ptr<Connection>> connections_;  // by file descriptor
  std::set<Key> nonces_;                                    // of all hellos so far
  std::set<int> takers_;                                    // those of the connections that ask for the id
  std::size_t turned_away_ = 0;                             // strangers
  bool is_full_ = false;                                    // no descriptor is left for another connection
  Service service_;
};

}  // namespace tandem::bootstrap
