// Strangers at the door of a rendezvous: nothing that they send gets them in or disturbs the world.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "bootstrap/local/environment.h"
#include "bootstrap/local/fd_exchange.h"
#include "bootstrap/protocol/handshake.h"
#include "bootstrap/rendezvous/id_contents.h"
#include "bootstrap/share.h"
#include "bootstrap/timeout.h"
#include "tandem/error.h"

namespace tandem::bootstrap {
namespace {

using ::testing::HasSubstr;

/// A connection by hand.
class Stranger {
 public:
  explicit Stranger(const UniqueId& id)
      : contents_(contents_of(id)), socket_(connect_tcp(contents_.address, contents_.port, Deadline(kTimeout))) {}

  /// Both messages of somebody who knows `secret`.
  void shake_hands(const Key& secret, std::uint32_t pe, std::uint32_t size) {
    const Key nonce = random_key();
    FrameWriter out(hello_key(secret));
    send(out.frame(Kind::kHello, nonce));
    FrameReader in(challenge_key(contents_.secret, nonce), kMostHandshake);
    const auto challenge = receive(in);
    if (!challenge) return;
    const SessionKeys keys = session_keys(secret, nonce, nonce_of(*challenge));
    out.set_key(keys.to_host);
    send(out.frame(Kind::kJoin, Writer().u32(pe).u32(size).text(name_of_host()).result()));
    writer_ = out;
  }
  void send(View bytes) {
    ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    sent_.insert(sent_.end(), bytes.begin(), bytes.end());
  }
  FrameWriter& writer() { return writer_; }
  const Bytes& sent() const { return sent_; }
  /// Whether the host closes the connection (having answered or not).
  bool is_dropped() {
    std::array<std::byte, 4096> chunk;
    while (wait_for(socket_.get(), POLLIN, Deadline(kTimeout)))
      if (::recv(socket_.get(), chunk.data(), chunk.size(), 0) <= 0) return true;
    return false;
  }
  /// Whether it closes the connection without an answer.
  bool is_ignored() {
    std::byte one{};
    return wait_for(socket_.get(), POLLIN, Deadline(kTimeout)) && ::recv(socket_.get(), &one, 1, 0) <= 0;
  }
  std::optional<Frame> receive(FrameReader& in) {
    std::array<std::byte, 4096> chunk;
    for (;;) {
      if (auto frame = in.next()) return frame;
      if (!wait_for(socket_.get(), POLLIN, Deadline(kTimeout))) return std::nullopt;
      const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
      if (got <= 0) return std::nullopt;
      in.feed(View(chunk).first(static_cast<std::size_t>(got)));
    }
  }
  /// Nothing more follows.
  void finish() { ::shutdown(socket_.get(), SHUT_WR); }

 private:
  IdContents contents_;
  Fd socket_;
  FrameWriter writer_{Key{}};
  Bytes sent_;
};

/// Returns a message of a process without the secret, by seed.
Bytes message_of(std::mt19937& random, const Bytes& recorded) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Bytes bytes;
  switch (random() % 6) {
    case 0:  // noise
      bytes.resize(below(600));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      break;
    case 1:  // truncated
      bytes.assign(recorded.begin(), recorded.begin() + static_cast<std::ptrdiff_t>(below(recorded.size())));
      break;
    case 2:  // one bit is wrong
      bytes = recorded;
      bytes[below(bytes.size())] ^= static_cast<std::byte>(1U << random() % 8);
      break;
    case 3:  // replayed as it was
      bytes = recorded;
      break;
    case 4: {  // oversized, or of another kind, under a key of its own
      FrameWriter writer(random_key());
      bytes = writer.frame(static_cast<Kind>(random() % 12), Bytes(below(3 * kMostHandshake)));
      break;
    }
    default:  // a length that is not there
      bytes.assign(recorded.begin(), recorded.begin() + kFrameHeader);
      for (int i = 0; i < 4; ++i)
        bytes[kFrameHeader - 1 - static_cast<std::size_t>(i)] = static_cast<std::byte>(random());
      bytes.resize(bytes.size() + below(200));
  }
  return bytes;
}

TEST(Strangers, DoNotGetInAndDoNotDisturb) {
  const UniqueId id = UniqueId::create();
  // A handshake as somebody may have listened to it.
  Stranger listened_to(id);
  listened_to.shake_hands(contents_of(id).secret, 9, 1);
  std::mt19937 random(7);
  const int strangers = 3000;
  for (int i = 0; i < strangers; ++i) {
    Stranger stranger(id);
    stranger.send(message_of(random, listened_to.sent()));
    stranger.finish();
    if (i % 10 == 0) {
      EXPECT_TRUE(stranger.is_dropped()) << i;
    }
  }
  // The world has two PEs and none of them has come: both still can.
  std::thread other([&] {
    WorldMember member(id, 1, 2, kTimeout);
    for (int i = 0; i < 100; ++i) member.barrier("still here");
  });
  WorldMember member(id, 0, 2, kTimeout);
  for (int i = 0; i < 100; ++i) member.barrier("still here");
  other.join();
}

TEST(Strangers, WhoKnowAnotherSecretAreNotToldAnything) {
  const UniqueId id = UniqueId::create();
  Stranger stranger(id);
  stranger.shake_hands(random_key(), 0, 1);
  EXPECT_TRUE(stranger.is_dropped());
  const WorldMember member(id, 0, 1, kTimeout);  // the place is still free
}

TEST(Strangers, WhoRepeatAnotherProcessesHelloAreNotToldAnything) {
  const UniqueId id = UniqueId::create();
  Stranger listened_to(id);
  listened_to.shake_hands(contents_of(id).secret, 0, 2);
  Stranger stranger(id);
  stranger.send(View(listened_to.sent()).first(kFrameOverhead + sizeof(Key)));
  EXPECT_TRUE(stranger.is_ignored());
}

TEST(Strangers, AreRefusedOnceAllHaveCome) {
  const UniqueId id = UniqueId::create();
  const WorldMember member(id, 0, 1, kTimeout);
  EXPECT_THROW(WorldMember(id, 0, 1, kTimeout), RuntimeFailure);
}

TEST(Members, OneThatBreaksTheRulesIsGone) {
  for (const bool oversized : {false, true}) {
    const UniqueId id = UniqueId::create();
    Stranger stranger(id);
    stranger.shake_hands(contents_of(id).secret, 1, 2);
    const Contribution first{0, 1, 2, 0, "the world's beginning", 60000, {}};
    stranger.send(stranger.writer().frame(Kind::kContribute, first.encode()));
    WorldMember member(id, 0, 2, kTimeout);
    Bytes bad = stranger.writer().frame(Kind::kContribute, Bytes(oversized ? 3 * kMostContribution : 10));
    if (!oversized) bad.back() ^= std::byte{1};
    stranger.send(bad);
    try {
      member.barrier("the end");
      ADD_FAILURE() << "no error";
    } catch (const RuntimeFailure& error) {
      EXPECT_THAT(error.what(), HasSubstr("PE 1 is gone"));
      EXPECT_THAT(error.what(), HasSubstr(oversized ? "oversized" : "not authenticated"));
    }
  }
}

/// A message of noise, with a descriptor as a real one has it.
void call_with_noise(const std::string& name, std::mt19937& random) {
  const Fd socket = connect_local(name, SOCK_SEQPACKET);
  if (!socket) return;
  const Fd useless(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = useless.get();
  std::array<std::byte, 300> noise;
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
  iovec part{noise.data(), random() % noise.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &number, sizeof(int));
  ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
}

/// Callers of a PE's local socket that send no message of this world, while an exchange goes on.
TEST(Strangers, AtTheLocalSocketDoNotDisturbTheExchange) {
  const UniqueId id = UniqueId::create();
  const auto stranger = [&](int pe) {
    WorldMember member(id, pe, 2, kTimeout);
    FdExchange exchange(member);
    std::atomic<bool> done{false};
    std::mt19937 random(static_cast<unsigned>(pe));
    std::thread caller([&] {
      while (!done) call_with_noise(exchange.socket_of(1 - pe), random);
    });
    for (int i = 0; i < 20; ++i) testing::share(member, exchange, member.world());
    done = true;
    caller.join();
  };
  std::thread other(stranger, 1);
  stranger(0);
  other.join();
}

TEST(FrameReaderTest, TakesFramesByteByByteAndNothingElse) {
  const Key key = random_key();
  FrameWriter writer(key);
  FrameReader reader(key, 100);
  const Bytes first = writer.frame(Kind::kLeave, {});
  const Bytes second = writer.frame(Kind::kJoin, Bytes(100, std::byte{3}));
  for (const Bytes& frame : {first, second})
    for (std::size_t i = 0; i < frame.size(); ++i) {
      reader.feed(View(frame).subspan(i, 1));
      EXPECT_EQ(reader.next().has_value(), i + 1 == frame.size());
    }
  reader.feed(second);
  EXPECT_THROW(reader.next(), BadMessage);  // repeated
  FrameReader fresh(key, 99);
  fresh.feed(first);
  EXPECT_EQ(fresh.next()->kind, Kind::kLeave);
  fresh.feed(second);
  EXPECT_THROW(fresh.next(), BadMessage);  // oversized
}

TEST(ReaderTest, RefusesFieldsThatAreNotThere) {
  const Bytes bytes = Writer().u32(7).text("abc").result();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Reader reader(View(bytes).first(size));
    EXPECT_THROW(
        {
          reader.u32();
          reader.text();
        },
        BadMessage);
  }
  Reader reader(bytes);
  EXPECT_EQ(reader.u32(), 7U);
  EXPECT_THROW(reader.end(), BadMessage);
  EXPECT_EQ(reader.text(), "abc");
  reader.end();
}

}  // namespace
}  // namespace tandem::bootstrap
