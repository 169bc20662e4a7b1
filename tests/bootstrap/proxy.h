#pragma once
/// Listens to what a world's processes and their rendezvous send each other.

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bootstrap/protocol/socket.h"
#include "bootstrap/rendezvous/id_contents.h"

namespace tandem::bootstrap::testing {

/// A man in the middle of all connections to the rendezvous of an id.
class Proxy {
 public:
  explicit Proxy(const UniqueId& id) : contents_(contents_of(id)), listener_(listen_tcp("127.0.0.1")) {
    thread_ = std::thread([this] { run(); });
  }
  ~Proxy() { heard(); }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  /// For those who shall connect through it.
  UniqueId id() const { return id_of({"127.0.0.1", port_of(listener_), contents_.secret}); }
  /// All bytes, after the last connection.
  std::string heard() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
    return heard_;
  }

 private:
  void run() {
    while (!done_) {
      std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
      for (const auto& [fd, other] : others_) polled.push_back({fd, POLLIN, 0});
      ::poll(polled.data(), polled.size(), 10);
      for (std::size_t i = 1; i < polled.size(); ++i)
        if (polled[i].revents != 0) pass_on(polled[i].fd);
      if (polled[0].revents != 0) take_in();
    }
  }
  void take_in() {
    Fd one = accept_one(listener_);
    if (!one) return;
    Fd other = connect_tcp(contents_.address, contents_.port, Deadline(30));
    others_[one.get()] = other.get();
    others_[other.get()] = one.get();
    sockets_.push_back(std::move(one));
    sockets_.push_back(std::move(other));
  }
  void pass_on(int from) {
    std::array<char, 4096> chunk;
    const ssize_t got = ::recv(from, chunk.data(), chunk.size(), 0);
    if (got > 0) {
      heard_.append(chunk.data(), static_cast<std::size_t>(got));
      ::send(others_[from], chunk.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
      return;
    }
    ::shutdown(others_[from], SHUT_WR);
    others_.erase(from);
  }

  IdContents contents_;
  Fd listener_;
  std::map<int, int> others_;
  std::vector<Fd> sockets_;
  std::string heard_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace tandem::bootstrap::testing
