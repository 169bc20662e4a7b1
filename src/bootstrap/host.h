#pragma once
/// The rendezvous of one world: a thread that lets in who proves the secret, carries the all-gathers, and tells
/// everybody at once when somebody is gone.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "bootstrap/connection.h"
#include "bootstrap/meeting.h"
#include "bootstrap/service.h"

namespace tandem::bootstrap {

class Host {
 public:
  /// Listens on a port that the system chooses. Throws InvalidArgument for an address that is not this host's.
  Host(const Key& secret, const std::string& address);
  /// Waits for those who are still there, but not long.
  ~Host() { service_.stop(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  std::uint16_t port() const { return port_; }
  /// The world has come and gone; no socket is open.
  bool is_over() const { return over_; }
  /// It is this process's, not that of which this is a child.
  bool is_here() const { return service_.is_here(); }

 private:
  void run();
  void serve();
  /// Tells the members why this thread ends.
  void report(const std::exception& error);
  void take_in();
  void read(int fd);
  void handle(Connection& connection, const Frame& frame);
  void join(Connection& connection, const Frame& frame);
  void drop(int fd, const std::string& why);
  void send_letters();
  void flush();
  void drop_late_strangers();
  int patience_ms() const;

  Key secret_;
  Fd listener_;
  std::uint16_t port_;
  std::atomic<bool> over_{false};
  Meeting meeting_;
  std::map<int, std::unique_ptr<Connection>> connections_;  // by file descriptor
  Service service_;
};

}  // namespace tandem::bootstrap
