#pragma once
/// Two hosts of network name spaces, joined by a link. Their processes share no network, no local sockets and, to the
/// library, no memory. It needs the rights of root, and iproute2.

#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/processes.h"
#include "tandem/range.h"

namespace tandem::test {

class TwoHosts {
 public:
  TwoHosts() {
    for (int host = 0; host < 2; ++host) keepers_.emplace_back("/usr/bin/env", words("unshare -n sleep 100000"));
    is_made_ = is_apart(0) && is_apart(1) &&
               run("ip link add name link_a netns " + id(0) + " type veth peer name link_b netns " + id(1));
    for (int host = 0; host < 2; ++host)
      is_made_ = is_made_ && run_on(host, "ip addr add " + address(host) + "/24 dev " + link(host)) &&
                 run_on(host, "ip link set lo up") && set_link(host, true);
  }

  /// Returns whether this system has let them be made.
  bool are_made() const { return is_made_; }
  static std::string address(int host) { return host == 0 ? "10.77.0.1" : "10.77.0.2"; }
  /// Takes the host's end of the link up or down. Neither host gets a message about it.
  bool set_link(int host, bool is_up) const {
    return run_on(host, "ip link set " + link(host) + (is_up ? " up" : " down"));
  }
  /// Sets the largest packet of the host's end of the link.
  bool set_mtu(int host, int bytes) const {
    return run_on(host, "ip link set " + link(host) + " mtu " + std::to_string(bytes));
  }
  /// Limits the rate of both ends of the link ("1gbit"). Returns false if this system cannot.
  bool limit_rate(const std::string& rate) const {
    bool is_limited = true;
    for (int host = 0; host < 2; ++host)
      is_limited = is_limited && run_on(host, "tc qdisc add dev " + link(host) + " root tbf rate " + rate +
                                                  " burst 64kb latency 400ms");
    return is_limited;
  }
  /// Drops what the hosts send from these TCP ports, as a firewall before the ports does. Returns false if this system
  /// cannot.
  bool drop_ports(const std::string& first_to_last) const {
    return run_on(0, "ip rule add ipproto tcp sport " + first_to_last + " blackhole") &&
           run_on(1, "ip rule add ipproto tcp sport " + first_to_last + " blackhole");
  }
  /// Drops what arrives at these TCP ports, by rules of nftables. Returns false if this system cannot.
  bool drop_ports_by_nft(const std::string& first_to_last) const {
    bool is_dropped = true;
    for (int host = 0; host < 2; ++host)
      is_dropped = is_dropped && run_on(host, "nft add table inet wall") &&
                   run_on(host, "nft add chain inet wall arrivals { type filter hook input priority 0 ; }") &&
                   run_on(host, "nft add rule inet wall arrivals tcp dport " + first_to_last + " drop");
    return is_dropped;
  }
  /// Returns the bytes that the host has sent over the link.
  Size sent(int host) const {
    auto cat = start(host, "cat", {"/proc/net/dev"}, {});
    std::istringstream lines(cat.wait().output);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t at = line.find(link(host) + ":");
      if (at == std::string::npos) continue;
      std::istringstream numbers(line.substr(at + link(host).size() + 1));
      std::vector<Size> all{std::istream_iterator<Size>(numbers), {}};
      return all.at(8);
    }
    return 0;
  }
  /// Returns whether processes can have a clock of their own here: a time name space.
  static bool have_clocks() { return run(kOtherClock + std::string(" 1 true")); }
  /// Starts a program on a host whose clock is some seconds ahead.
  bootstrap::testing::Process start_ahead(int host, int seconds, const std::string& program,
                                          const std::vector<std::string>& arguments,
                                          const std::vector<std::string>& variables) const {
    std::vector<std::string> all = words(kOtherClock + std::string(" ") + std::to_string(seconds));
    all.push_back(program);
    all.insert(all.end(), arguments.begin(), arguments.end());
    return start(host, all.front(), {all.begin() + 1, all.end()}, variables);
  }
  /// Starts a program on a host.
  bootstrap::testing::Process start(int host, const std::string& program, const std::vector<std::string>& arguments,
                                    const std::vector<std::string>& variables) const {
    std::vector<std::string> all = words("nsenter -n -t " + id(host) + " " + program);
    all.insert(all.end(), arguments.begin(), arguments.end());
    return {"/usr/bin/env", all, variables};
  }

 private:
  static std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> all(1);
    for (const char letter : text) letter == ' ' ? all.emplace_back() : all.back() += letter;
    return all;
  }
  static constexpr const char* kOtherClock = "unshare --fork --time --monotonic";
  static std::string link(int host) { return host == 0 ? "link_a" : "link_b"; }
  std::string id(int host) const { return std::to_string(keepers_[static_cast<std::size_t>(host)].id()); }
  static bool run(const std::string& command) {
    return bootstrap::testing::Process("/usr/bin/env", words(command)).wait().code == 0;
  }
  bool run_on(int host, const std::string& command) const { return run("nsenter -n -t " + id(host) + " " + command); }
  /// Waits for the name space of a host.
  bool is_apart(int host) const {
    namespace fs = std::filesystem;
    const std::string process = "/proc/" + id(host);
    std::error_code error;
    const fs::path own = fs::read_symlink("/proc/self/ns/net", error);
    for (int i = 0; i < 1000 && !error; ++i) {
      if (fs::read_symlink(process + "/ns/net", error) != own) return !error;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  std::vector<bootstrap::testing::Process> keepers_;
  bool is_made_ = false;
};

}  // namespace tandem::test
