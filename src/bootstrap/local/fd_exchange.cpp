#include "bootstrap/local/fd_exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "bootstrap/local/environment.h"
#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

/// Returns the same text for two processes if descriptors and abstract names reach from one to the other, and
/// TANDEM_HOST does not divide them.
std::string identity_of_host() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat space {};
  if (::stat("/proc/self/ns/net", &space) != 0) throw_errno("/proc/self/ns/net");
  return fmt::format("{} {} {}", boot, space.st_ino, variable_of_process("TANDEM_HOST").value_or(""));
}

/// A message over a local socket: the fields of an exchange between two PEs, a code over them, and descriptors.
struct Message {
  std::uint64_t round = 0;
  int from = 0;
  int to = 0;
  std::vector<Fd> descriptors;
};

void send_message(const Fd& socket, const Key& key, const Message& message, const std::vector<int>& descriptors) {
  Writer fields;
  fields.u64(message.round).u32(static_cast<std::uint32_t>(message.from)).u32(static_cast<std::uint32_t>(message.to));
  Bytes text = fields.u32(static_cast<std::uint32_t>(descriptors.size())).result();
  const Mac mac = authenticate(key, text);
  text.insert(text.end(), mac.begin(), mac.end());
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(FdExchange::kMost * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
  }
  while (::sendmsg(socket.get(), &header, MSG_NOSIGNAL) < 0)
    if (errno != EINTR) throw_errno(fmt::format("descriptors for PE {}", message.to));
}

/// Returns the descriptors of a message, which are closed with their owners.
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

/// Returns nothing if the packet is no message under the key.
std::optional<Message> receive_message(const Fd& socket, const Key& key) {
  constexpr std::size_t fields = 20;
  std::array<std::byte, fields + sizeof(Mac)> text;
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(FdExchange::kMost * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket.get(), &header, MSG_CMSG_CLOEXEC);
  if (size < 0) return std::nullopt;
  Message message;
  message.descriptors = descriptors_of(header);
  const View got(text);
  if (static_cast<std::size_t>(size) != got.size() || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
      !is_authentic(key, got.first(fields), got.subspan(fields)))
    return std::nullopt;
  Reader reader(got.first(fields));
  message.round = reader.u64();
  message.from = static_cast<int>(reader.u32());
  message.to = static_cast<int>(reader.u32());
  if (reader.u32() != message.descriptors.size()) return std::nullopt;
  return message;
}

/// Most callers that have sent nothing yet. If there are more, the oldest is closed.
constexpr std::size_t kMostCallers = 64;
/// Most members that are asked at the same time.
constexpr std::size_t kMostRequests = 16;
/// A PE that has too many callers may close one that has not been served.
constexpr int kMostAttempts = 10;

}  // namespace

struct FdExchange::Round {
  struct Member {
    bool has_come = false;  ///< its descriptors have arrived
    bool is_served = false;
    bool is_asked = false;
    int attempts = 0;
    std::vector<Fd> descriptors;
  };

  std::uint64_t number = 0;
  Team team;
  std::size_t count = 0;
  std::vector<Member> members;
  std::map<int, std::pair<int, Fd>> requests;  ///< requests under way, by the connection's descriptor
  std::deque<Fd> callers;                      ///< connected, but no message yet

  std::vector<int> missing(bool Member::*done) const {
    std::vector<int> pes;
    for (int i = 0; i < team.size; ++i)
      if (!(members[static_cast<std::size_t>(i)].*done)) pes.push_back(team.world_pe(i));
    return pes;
  }
  bool is_over() const { return missing(&Member::has_come).empty() && missing(&Member::is_served).empty(); }
};

FdExchange::FdExchange(WorldMember& member)
    : member_(member),
      asking_(derive(member.secret(), "descriptors asked")),
      giving_(derive(member.secret(), "descriptors given")),
      listener_(listen_local("", SOCK_SEQPACKET)) {
  const Bytes own = Writer().text(identity_of_host()).text(name_of_host()).text(name_of(listener_)).result();
  for (const Bytes& blob : member.all_gather(own, "local sockets")) {
    Reader reader(blob);
    Arrival arrival;
    arrival.host = reader.text();
    arrival.host_name = reader.text();
    arrival.socket = reader.text();
    arrivals_.push_back(std::move(arrival));
  }
}

int FdExchange::pes_of_computer() const {
  const auto computer = [](const Arrival& of) { return of.host.substr(0, of.host.find(' ')); };
  const std::string own = computer(arrivals_[me()]);
  return static_cast<int>(
      std::count_if(arrivals_.begin(), arrivals_.end(), [&](const Arrival& other) { return computer(other) == own; }));
}

/// Asks members that have not been asked, as many as may be asked at once.
void FdExchange::ask(Round& round) const {
  for (int i = 1; i < round.team.size && round.requests.size() < kMostRequests; ++i) {
    const int number = (round.team.me + i) % round.team.size;
    Round::Member& member = round.members[static_cast<std::size_t>(number)];
    if (member.is_asked) continue;
    const int pe = round.team.world_pe(number);
    Fd socket = connect_local(socket_of(pe), SOCK_SEQPACKET);
    if (!socket) continue;  // its queue is full
    if (!peer_of(socket).is_of_this_user())
      throw RuntimeFailure(fmt::format("PE {}'s local socket belongs to another user", pe));
    if (++member.attempts > kMostAttempts)
      throw RuntimeFailure(fmt::format("PE {}'s local socket hands over no descriptors", pe));
    send_message(socket, asking_, {round.number, member_.pe(), pe, {}}, {});
    member.is_asked = true;
    const int fd = socket.get();
    round.requests.emplace(fd, std::pair(number, std::move(socket)));
  }
}

/// Serves a member that proves the secret, once.
void FdExchange::answer(Round& round, const Fd& caller, const std::vector<int>& own) const {
  const auto request = receive_message(caller, asking_);
  if (!request || request->round != round.number || request->to != member_.pe()) return;
  for (int i = 0; i < round.team.size; ++i) {
    Round::Member& member = round.members[static_cast<std::size_t>(i)];
    if (round.team.world_pe(i) != request->from || member.is_served) continue;
    send_message(caller, giving_, {round.number, member_.pe(), request->from, {}}, own);
    member.is_served = true;
  }
}

void FdExchange::receive(Round& round, int fd) const {
  const auto [number, socket] = std::move(round.requests.at(fd));
  round.requests.erase(fd);
  Round::Member& member = round.members[static_cast<std::size_t>(number)];
  auto given = receive_message(socket, giving_);
  member.has_come = given && given->round == round.number && given->from == round.team.world_pe(number) &&
                    given->to == member_.pe() && given->descriptors.size() == round.count;
  member.is_asked = member.has_come;
  if (member.has_come) member.descriptors = std::move(given->descriptors);
}

Team FdExchange::host_team() const {
  int first = member_.pe();
  int end = first + 1;
  while (first > 0 && is_on_this_host(first - 1)) --first;
  while (end < member_.size() && is_on_this_host(end)) ++end;
  return {first, 1, end - first, member_.pe() - first, end - first};
}

void FdExchange::check_here(const Team& team) const {
  for (int i = 0; i < team.size; ++i)
    if (!is_on_this_host(team.world_pe(i)))
      throw Unsupported(
          fmt::format("PE {} runs on another host than PE {} (or in another network name space): memory "
                      "is not shared between them",
                      team.world_pe(i), member_.pe()));
}

FdExchange::Round FdExchange::begin(std::size_t count, const Team& team) {
  Round round;
  round.team = team;
  round.count = count;
  round.members.resize(static_cast<std::size_t>(team.size));
  Round::Member& own_part = round.members[static_cast<std::size_t>(team.me)];
  own_part.has_come = own_part.is_served = own_part.is_asked = true;
  // The number is agreed and grows, so that messages of an earlier exchange are not accepted in this one.
  const Bytes own = Writer().u64(rounds_).u32(static_cast<std::uint32_t>(count)).result();
  for (const Bytes& other : member_.all_gather(own, "exchange of descriptors", team)) {
    Reader reader(other);
    round.number = std::max(round.number, reader.u64());
    if (reader.u32() != count) throw InvalidArgument("descriptors: the PEs give different numbers of them");
  }
  rounds_ = round.number + 1;
  return round;
}

void FdExchange::take_in(Round& round) const {
  for (std::size_t i = 0; i < kMostCallers; ++i) {
    Fd caller = accept_one(listener_);
    if (!caller) return;
    if (!peer_of(caller).is_of_this_user()) continue;
    if (round.callers.size() == kMostCallers) round.callers.pop_front();
    round.callers.push_back(std::move(caller));
  }
}

/// Waits a little for an answer, a caller's message or a new caller.
void FdExchange::take_turn(Round& round, const std::vector<int>& own) const {
  constexpr int between_looks_ms = 20;
  std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
  for (const Fd& caller : round.callers) polled.push_back({caller.get(), POLLIN, 0});
  for (const auto& [fd, request] : round.requests) polled.push_back({fd, POLLIN, 0});
  if (::poll(polled.data(), polled.size(), between_looks_ms) < 0 && errno != EINTR) throw_errno("poll");
  std::size_t at = 1;
  std::deque<Fd> silent;
  for (Fd& caller : std::exchange(round.callers, {})) {
    if (polled[at++].revents == 0)
      silent.push_back(std::move(caller));
    else
      answer(round, caller, own);
  }
  round.callers = std::move(silent);
  for (; at < polled.size(); ++at)
    if (polled[at].revents != 0) receive(round, polled[at].fd);
  if (polled[0].revents != 0) take_in(round);
}

void FdExchange::check_progress(const Round& round, const Deadline& deadline) const {
  if (const auto failure = member_.failure()) failure->raise();
  if (!deadline.passed()) return;
  const std::vector<int> missing = round.missing(&Round::Member::has_come);
  if (!missing.empty())
    throw Timeout(fmt::format("PE {} sent no descriptors within {} s", list_of(missing), member_.timeout_s()));
  throw Timeout(fmt::format("PE {} took no descriptors within {} s", list_of(round.missing(&Round::Member::is_served)),
                            member_.timeout_s()));
}

std::vector<std::vector<Fd>> FdExchange::exchange(const std::vector<int>& own, const Team& team) {
  if (own.empty() || own.size() > kMost)
    throw InvalidArgument(fmt::format("descriptors: {} given, allowed are 1 to {}", own.size(), kMost));
  check_here(team);
  Round round = begin(own.size(), team);
  const Deadline deadline(member_.timeout_s());
  while (!round.is_over()) {
    check_progress(round, deadline);
    ask(round);
    take_turn(round, own);
  }
  // All members are served before any of them closes its socket.
  member_.barrier("exchange of descriptors ended", team);
  std::vector<std::vector<Fd>> received;
  for (Round::Member& member : round.members) received.push_back(std::move(member.descriptors));
  return received;
}

}  // namespace tandem::bootstrap
