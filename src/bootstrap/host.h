#pragma once
/// The rendezvous of one world: a thread that lets in who proves the secret, carries the all-gathers, and tells
/// everybody at once when somebody is gone.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "bootstrap/connection.h"
#include "bootstrap/meeting.h"

namespace tandem::bootstrap {

class Host {
 public:
  /// Listens on a port that the system chooses. Throws InvalidArgument for an address that is not this host's.
  Host(const Key& secret, const std::string& address);
  /// Waits for those who are still there, but not long.
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  std::uint16_t port() const { return port_; }
  /// The world has come and gone; no socket is open.
  bool is_over() const { return over_; }

 private:
  void run();
  void serve();
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
  Fd wake_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> over_{false};
  Meeting meeting_;
  std::map<int, std::unique_ptr<Connection>> connections_;  // by file descriptor
  std::thread thread_;
};

}  // namespace tandem::bootstrap
