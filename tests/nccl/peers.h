#pragma once
/// Ranks as processes.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "program.h"

extern char** environ;

namespace tandem::nccl_test {

/// A rank's process.
struct Peer {
  pid_t process = 0;
  int input = -1;  // closed: it goes on
  int output = -1;

  /// Waits for a line.
  std::string line() const {
    std::string all;
    for (char next = 0; next != '\n' && ::read(output, &next, 1) == 1;) all += next;
    return all;
  }
  /// Waits for all that follows.
  std::string text() const {
    std::string all;
    char part[4096];
    for (ssize_t got = 0; (got = ::read(output, part, sizeof(part))) > 0;) all.append(part, static_cast<size_t>(got));
    ::close(output);
    return all;
  }
  int wait() const {
    int status = 0;
    EXPECT_EQ(::waitpid(process, &status, 0), process);
    return status;
  }
};

inline Peer start(const std::string& id, int rank, int ranks, const std::string& deed) {
  int in[2], out[2];
  EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::vector<std::string> words{TANDEM_NCCL_PEER, id, std::to_string(rank), std::to_string(ranks), deed};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  Peer peer;
  EXPECT_EQ(::posix_spawn(&peer.process, TANDEM_NCCL_PEER, &actions, nullptr, arguments.data(), environ), 0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  peer.input = in[1];
  peer.output = out[0];
  return peer;
}

/// Runs one process a rank, each after `prepare`, which sets variables. Returns what each has printed.
inline std::vector<std::string> outputs(
    int ranks, const std::string& deed, const std::function<void(int rank)>& prepare = [](int) {}) {
  ncclUniqueId id;
  EXPECT_EQ(error_of(ncclGetUniqueId(&id)), "");
  std::string hex;
  for (const char byte : id.internal) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  std::vector<Peer> peers;
  peers.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    prepare(rank);
    peers.push_back(start(hex, rank, ranks, deed));
  }
  std::vector<std::string> texts(peers.size());
  if (deed == "leave" || deed == "late")
    for (std::size_t i = 0; i < peers.size(); ++i) texts[i] = peers[i].line();
  if (deed == "late")
    for (std::size_t i = 0; i + 1 < peers.size(); ++i) texts[i] += peers[i].line();
  if (deed == "leave") {
    ::close(peers.back().input);
    peers.back().wait();
    peers.back().input = -1;
  }
  for (const Peer& peer : peers)
    if (peer.input >= 0) ::close(peer.input);
  for (std::size_t i = 0; i < peers.size(); ++i) texts[i] += peers[i].text();
  for (const Peer& peer : peers)
    if (peer.input >= 0) peer.wait();
  return texts;
}

}  // namespace tandem::nccl_test
