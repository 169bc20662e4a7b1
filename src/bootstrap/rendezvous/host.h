#pragma once
/// The rendezvous of one world. Its thread admits processes that prove the secret, carries out the all-gathers, and
/// notifies all members at once when one of them is gone.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "bootstrap/local/local_rendezvous.h"
#include "bootstrap/protocol/connection.h"
#include "bootstrap/rendezvous/coordinator.h"
#include "bootstrap/rendezvous/id_contents.h"
#include "bootstrap/rendezvous/service.h"

namespace tandem::bootstrap {

class Host {
 public:
  /// Listens on a port that the system chooses, and on a local socket for this user's processes on this host. If
  /// `hand_off` has a listener, it also hands out the id. Throws InvalidArgument for an address of another host.
  Host(const Key& secret, const std::string& address, HandOff hand_off = {});
  /// Takes a listener at the port of `contents`, and passes it to `give_back` once it needs it no more. A constructor
  /// that throws leaves the listener to the caller.
  Host(const IdContents& contents, Fd& listener, std::function<void(Fd)> give_back);
  /// Waits a short time for members that are still connected.
  ~Host() { service_.stop(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Returns the contents of the world's id.
  const IdContents& contents() const { return contents_; }
  /// Returns whether all members have left and every socket is closed.
  bool is_over() const { return over_; }
  /// Returns whether this process made the host, and is not a child of that process.
  bool is_own_process() const { return service_.is_own_process(); }

 private:
  void run();
  void serve();
  /// Notifies the members why this thread ends.
  void report(const std::exception& error);
  void take_in(const Fd& listener);
  void make_room(const std::string& address);
  void read(int fd);
  void handle(Connection& connection, const Frame& frame);
  void join(Connection& connection, const Frame& frame);
  Bytes welcome(Connection& connection, int pe, int size, const std::string& host);
  void drop(int fd, const std::string& why);
  void send_messages();
  void flush();
  void close_listeners();
  void drop_late();
  std::string about_strangers() const;
  int poll_timeout_ms() const;

  IdContents contents_;
  std::function<void(Fd)> give_back_;
  Fd tcp_;
  Fd local_;
  HandOff hand_off_;
  std::atomic<bool> over_{false};
  Coordinator coordinator_;
  std::map<int, std::unique_ptr<Connection>> connections_;  // by file descriptor
  std::set<Key> nonces_;                                    // of all hellos so far
  std::set<int> takers_;                                    // connections that ask for the id
  std::size_t turned_away_ = 0;                             // unauthenticated connections
  bool is_full_ = false;                                    // no descriptor is left for another connection
  Service service_;
};

}  // namespace tandem::bootstrap
