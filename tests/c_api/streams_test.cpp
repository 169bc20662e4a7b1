// Calls in several streams: each runs behind the one before, whatever has become of that one's stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "c_api/simulated/memory.h"
#include "tandem/advanced/unique_id.h"

namespace tandem::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Calls of every kind that share the world's memory, on the same data.
class Caller {
 public:
  explicit Caller(CPeer& peer)
      : peer_(peer), in_(peer, false, words(peer.pe, 0, kCount)), out_(peer, false, Words(2 * kCount)) {}

  tandem_status reduce(CStream& stream) { return reduce_in(stream.handle()); }
  tandem_status reduce_in(void* stream) {
    return tandem_all_reduce(peer_.world, in_.at(), out_.at(), kCount, TANDEM_U32, TANDEM_SUM, stream);
  }
  tandem_status send_recv(CStream& stream) {
    const tandem_message to{in_.at(), kCount, TANDEM_U32, 1 - peer_.pe},
        from{out_.at(), kCount, TANDEM_U32, 1 - peer_.pe};
    return tandem_send_recv(peer_.world, &to, 1, &from, 1, stream.handle());
  }
  tandem_status gather_v(CStream& stream) {
    const size_t counts[] = {kCount, kCount}, offsets[] = {0, kCount};
    return tandem_all_gather_v(peer_.world, in_.at(), out_.at(), counts, offsets, TANDEM_U32, stream.handle());
  }

 private:
  static constexpr size_t kCount = 1000;
  CPeer& peer_;
  Memory in_, out_;
};

using Call = tandem_status (Caller::*)(CStream&);
constexpr Call kCalls[] = {&Caller::reduce, &Caller::send_recv, &Caller::gather_v};

TEST(Streams, EachWaitsForTheOneBefore) {
  for (const Call call : kCalls)
    run_in_c(2, [&](CPeer& peer) {
      Caller caller(peer);
      CStream first, second;
      for (CStream* const stream : {&first, &first, &second, &first})
        EXPECT_EQ(unlike((caller.*call)(*stream), TANDEM_SUCCESS), "");
      EXPECT_THAT(second.waited_for, ElementsAre(first.number));
      EXPECT_THAT(first.waited_for, ElementsAre(second.number));
      for (CStream* const stream : {&first, &second})
        EXPECT_EQ(unlike(tandem_synchronize(peer.world, stream->handle()), TANDEM_SUCCESS), "");
    });
}

TEST(Streams, OneThatWasDestroyedIsNotTouched) {
  for (const Call call : kCalls)
    run_in_c(2, [&](CPeer& peer) {
      Caller caller(peer);
      CStream first, second;
      EXPECT_EQ(unlike((caller.*call)(first), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(tandem_synchronize(peer.world, first.handle()), TANDEM_SUCCESS), "");
      first.destroy();
      EXPECT_EQ(unlike((caller.*call)(second), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(tandem_synchronize(peer.world, second.handle()), TANDEM_SUCCESS), "");
    });
}

/// Work enqueued in a stream continues after the stream is destroyed, and the next stream may get its address.
TEST(Streams, ANewOneOfTheSameAddressWaitsToo) {
  run_in_c(2, [](CPeer& peer) {
    Caller caller(peer);
    CStream stream, other;
    for (CStream* const each : {&stream, &other, &stream}) EXPECT_EQ(unlike(caller.reduce(*each), TANDEM_SUCCESS), "");
    const unsigned long long before = stream.number;
    stream.make_again();
    EXPECT_EQ(unlike(caller.reduce(stream), TANDEM_SUCCESS), "");
    EXPECT_THAT(stream.waited_for, ElementsAre(before));
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, stream.handle()), TANDEM_SUCCESS), "");
  });
}

/// One handle is another stream in every thread, in plain calls and in branches of one graph.
TEST(Streams, ThreadsHaveTheirOwnBehindOneHandle) {
  for (const unsigned long long capture : {0ULL, 7ULL})
    run_in_c(1, [&](CPeer& peer) {
      Caller caller(peer);
      CStream first, second;
      for (CStream* const own : {&first, &second}) {
        own->capture(capture);
        stream_of_thread() = own;
        EXPECT_EQ(unlike(caller.reduce_in(handle_of_thread()), TANDEM_SUCCESS), "");
      }
      EXPECT_THAT(first.waited_for, IsEmpty());
      EXPECT_THAT(second.waited_for, ElementsAre(first.number)) << "capture " << capture;
      second.capture(0);
      EXPECT_EQ(unlike(tandem_synchronize(peer.world, handle_of_thread()), TANDEM_SUCCESS), "");
      stream_of_thread() = nullptr;
    });
}

TEST(Streams, OthersAreNotDrawnIntoACapture) {
  for (const Call call : kCalls)
    run_in_c(2, [&](CPeer& peer) {
      Caller caller(peer);
      CStream first, second;
      EXPECT_EQ(unlike((caller.*call)(second), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike((caller.*call)(first), TANDEM_SUCCESS), "");
      EXPECT_THAT(first.waited_for, ElementsAre(second.number));
      first.capture(7);
      EXPECT_EQ(unlike((caller.*call)(first), TANDEM_SUCCESS), "");
      EXPECT_THAT(first.waited_for, ElementsAre(second.number)) << "a graph waits for nothing outside of it";
      EXPECT_EQ(unlike((caller.*call)(second), TANDEM_SUCCESS), "");
      EXPECT_EQ(second.captured_in, 0U);
      EXPECT_THAT(second.waited_for, ElementsAre(first.number)) << "the plain call there";
      first.capture(0);
      for (CStream* const stream : {&first, &second})
        EXPECT_EQ(unlike(tandem_synchronize(peer.world, stream->handle()), TANDEM_SUCCESS), "");
    });
}

/// Without an event behind each call: the next one in the same stream may start early.
TEST(Streams, TheOnlyOneIsSynchronizedBeforeItsCapture) {
  for (const bool is_synchronized : {false, true})
    run_in_c(2, [&](CPeer& peer) {
      Caller caller(peer);
      CStream first, second;
      EXPECT_EQ(unlike(caller.reduce(first), TANDEM_SUCCESS), "");
      if (is_synchronized) {
        EXPECT_EQ(unlike(tandem_synchronize(peer.world, first.handle()), TANDEM_SUCCESS), "");
      }
      first.capture(7);
      EXPECT_EQ(unlike(caller.reduce(second), is_synchronized ? TANDEM_SUCCESS : TANDEM_INVALID_ARGUMENT), "");
      EXPECT_EQ(second.captured_in, 0U);
      EXPECT_THAT(second.waited_for, IsEmpty());
      first.capture(0);
      for (CStream* const stream : {&first, &second})
        EXPECT_EQ(unlike(tandem_synchronize(peer.world, stream->handle()), TANDEM_SUCCESS), "");
    });
}

/// Branches of one graph share the world's memory as streams do; another capture is another graph.
TEST(Streams, CallsOfOneCaptureFollowEachOther) {
  for (const Call call : kCalls)
    run_in_c(2, [&](CPeer& peer) {
      Caller caller(peer);
      CStream first, second, other, third;
      for (CStream* const stream : {&first, &second, &third}) stream->capture(7);
      other.capture(8);
      for (CStream* const stream : {&first, &second, &other, &third})
        EXPECT_EQ(unlike((caller.*call)(*stream), TANDEM_SUCCESS), "");
      EXPECT_THAT(second.waited_for, ElementsAre(first.number));
      EXPECT_THAT(other.waited_for, IsEmpty());
      EXPECT_THAT(third.waited_for, ElementsAre(second.number));
      for (CStream* const stream : {&first, &second, &other, &third}) {
        stream->capture(0);
        EXPECT_EQ(unlike(tandem_synchronize(peer.world, stream->handle()), TANDEM_SUCCESS), "");
      }
    });
}

/// Messages of one world take all SMs, and the other one's collective would share them.
TEST(Streams, OfTwoWorldsOnAGpuFollowEachOther) {
  run_in_c(1, [](CPeer& peer) {
    const UniqueId id = UniqueId::create();
    const tandem_options options{.heap_bytes = std::size_t{32} << 20};
    CPeer other = peer;
    ASSERT_EQ(unlike(tandem_world_create(&other.world, id.bytes().data(), 0, 1, &options), TANDEM_SUCCESS), "");
    {
      Caller caller(other);
      CStream first, second;
      EXPECT_EQ(unlike(tandem_send_recv(peer.world, nullptr, 0, nullptr, 0, first.handle()), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(caller.reduce(second), TANDEM_SUCCESS), "");
      EXPECT_THAT(second.waited_for, ElementsAre(first.number));
      EXPECT_EQ(unlike(tandem_send_recv(peer.world, nullptr, 0, nullptr, 0, first.handle()), TANDEM_SUCCESS), "");
      EXPECT_THAT(first.waited_for, ElementsAre(second.number));
      EXPECT_EQ(unlike(tandem_synchronize(peer.world, first.handle()), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(tandem_synchronize(other.world, second.handle()), TANDEM_SUCCESS), "");
    }
    EXPECT_EQ(unlike(tandem_world_destroy(other.world), TANDEM_SUCCESS), "");
  });
}

/// The part that stays on its PE is the call's too.
TEST(Streams, ACallEndsWithItsOwnPart) {
  run_in_c(1, [](CPeer& peer) {
    const Memory in(peer, false, words(0, 0, 100)), middle(peer, false, Words(100)), out(peer, false, Words(100));
    CStream first, second;
    const size_t count = 100, offset = 0;
    EXPECT_EQ(unlike(tandem_all_gather_v(peer.world, in.at(), middle.at(), &count, &offset, TANDEM_U32, first.handle()),
                     TANDEM_SUCCESS),
              "");
    EXPECT_EQ(
        unlike(tandem_all_gather_v(peer.world, middle.at(), out.at(), &count, &offset, TANDEM_U32, second.handle()),
               TANDEM_SUCCESS),
        "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, second.handle()), TANDEM_SUCCESS), "");
    EXPECT_EQ(out.contents(), words(0, 0, 100));
  });
}

}  // namespace
}  // namespace tandem::test
