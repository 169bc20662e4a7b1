#include "bootstrap/fd_exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

/// The same for two processes where descriptors and abstract names reach from one to the other.
std::string name_of_host() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat space {};
  if (::stat("/proc/self/ns/net", &space) != 0) throw_errno("/proc/self/ns/net");
  return fmt::format("{} {}", boot, space.st_ino);
}

/// The descriptors of a message: closed unless they are taken.
std::vector<Fd> descriptors_of(msghdr& message) {
  std::vector<Fd> fds;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

struct FdExchange::Round {
  std::uint64_t number = 0;
  Team team;
  std::size_t count = 0;
  std::vector<std::vector<Fd>> received;  // by member
  std::vector<bool> has_come;             // likewise

  std::vector<int> missing() const {
    std::vector<int> pes;
    for (int i = 0; i < team.size; ++i)
      if (!has_come[static_cast<std::size_t>(i)]) pes.push_back(team.world_pe(i));
    return pes;
  }
};

FdExchange::FdExchange(Session& session)
    : session_(session), key_(derive(session.secret(), "descriptors")), listener_(listen_local("", SOCK_SEQPACKET)) {
  const Bytes own = Writer().text(name_of_host()).text(name_of(listener_)).result();
  for (const Bytes& blob : session.all_gather(own, "local sockets")) {
    Reader reader(blob);
    Arrival arrival;
    arrival.host = reader.text();
    arrival.socket = reader.text();
    arrivals_.push_back(std::move(arrival));
  }
}

Bytes FdExchange::letter(std::uint64_t number, int from, int to, std::size_t count) const {
  Writer writer;
  writer.u64(number).u32(static_cast<std::uint32_t>(from)).u32(static_cast<std::uint32_t>(to));
  Bytes bytes = writer.u32(static_cast<std::uint32_t>(count)).result();
  const Mac mac = seal(key_, bytes);
  bytes.insert(bytes.end(), mac.begin(), mac.end());
  return bytes;
}

bool FdExchange::send_to(const Round& round, int pe, const std::vector<int>& own) const {
  const Fd socket = connect_local(arrivals_[static_cast<std::size_t>(pe)].socket, SOCK_SEQPACKET);
  if (!socket) return false;
  if (!peer_of(socket).is_of_this_user())
    throw RuntimeFailure(fmt::format("PE {}'s local socket belongs to another user", pe));
  Bytes text = letter(round.number, session_.pe(), pe, own.size());
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMost * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(own.size() * sizeof(int));
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(own.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), own.data(), own.size() * sizeof(int));
  if (::sendmsg(socket.get(), &message, MSG_NOSIGNAL) >= 0) return true;
  if (errno == EAGAIN || errno == EINTR) return false;
  throw_errno(fmt::format("descriptors for PE {}", pe));
}

void FdExchange::receive(Round& round, const Fd& socket) const {
  std::array<std::byte, 128> text;
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMost * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (size < 0) return;
  std::vector<Fd> fds = descriptors_of(message);
  const View got = View(text).first(static_cast<std::size_t>(size));
  for (int i = 0; i < round.team.size; ++i) {
    const auto member = static_cast<std::size_t>(i);
    const Bytes expected = letter(round.number, round.team.world_pe(i), session_.pe(), fds.size());
    if (round.has_come[member] || fds.size() != round.count || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
      continue;
    if (!std::equal(got.begin(), got.end(), expected.begin(), expected.end())) continue;
    round.received[member] = std::move(fds);
    round.has_come[member] = true;
    return;
  }
}

void FdExchange::check_here(const Team& team) const {
  for (int i = 0; i < team.size; ++i)
    if (!is_here(team.world_pe(i)))
      throw Unsupported(
          fmt::format("PE {} runs on another host than PE {} (or in another network name space): memory "
                      "is not shared between them",
                      team.world_pe(i), session_.pe()));
}

FdExchange::Round FdExchange::begin(std::size_t count, const Team& team) {
  const auto members = static_cast<std::size_t>(team.size);
  Round round{0, team, count, std::vector<std::vector<Fd>>(members), std::vector<bool>(members, false)};
  round.has_come[static_cast<std::size_t>(team.me)] = true;
  // Agreed and growing, so that what was meant for an earlier exchange is not taken for this one.
  const Bytes own = Writer().u64(rounds_).u32(static_cast<std::uint32_t>(count)).result();
  for (const Bytes& other : session_.all_gather(own, "exchange of descriptors", team)) {
    Reader reader(other);
    round.number = std::max(round.number, reader.u64());
    if (reader.u32() != count) throw InvalidArgument("descriptors: the PEs give different numbers of them");
  }
  rounds_ = round.number + 1;
  return round;
}

/// Takes one turn: whoever called before and has something to say, and one new caller.
void FdExchange::take_turn(Round& round, std::map<int, Fd>& callers, int patience_ms) const {
  std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
  for (const auto& [fd, caller] : callers) polled.push_back({fd, POLLIN, 0});
  if (::poll(polled.data(), polled.size(), patience_ms) < 0 && errno != EINTR) throw_errno("poll");
  for (std::size_t i = 1; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    receive(round, callers[polled[i].fd]);
    callers.erase(polled[i].fd);
  }
  if (polled[0].revents == 0) return;
  Fd caller = accept_one(listener_);
  const int fd = caller.get();
  if (caller && peer_of(caller).is_of_this_user()) callers[fd] = std::move(caller);
}

std::vector<std::vector<Fd>> FdExchange::exchange(const std::vector<int>& own, const Team& team) {
  if (own.empty() || own.size() > kMost)
    throw InvalidArgument(fmt::format("descriptors: {} given, allowed are 1 to {}", own.size(), kMost));
  check_here(team);
  Round round = begin(own.size(), team);
  std::vector<int> to_send;
  for (int i = 1; i < team.size; ++i) to_send.push_back(team.world_pe((team.me + i) % team.size));
  std::map<int, Fd> callers;  // have connected and not yet spoken
  const Deadline deadline(session_.timeout_s());
  while (!to_send.empty() || !round.missing().empty()) {
    if (const auto failure = session_.failure()) failure->raise();
    if (deadline.passed())
      throw Timeout(
          fmt::format("PE {} sent no descriptors within {} s", list_of(round.missing()), session_.timeout_s()));
    if (!to_send.empty() && send_to(round, to_send.back(), own)) to_send.pop_back();
    constexpr int between_looks_ms = 20;
    take_turn(round, callers, to_send.empty() ? between_looks_ms : 0);
  }
  // Nobody closes its socket before all have been served.
  session_.barrier("exchange of descriptors ended", team);
  return std::move(round.received);
}

}  // namespace tandem::bootstrap
