// Buffers whose kind differs between PEs. A buffer that no peer accesses may lie anywhere on every PE. Buffers that
// peers access must be alike on all PEs. Otherwise the call is refused at once, by an error with the buffer of each PE.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "c_api/simulated/memory.h"
#include "tandem/collectives.h"
#include "tandem/error.h"
#include "trace/temporary_folder.h"

namespace tandem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

enum class Where { kAllocation, kOtherAllocation, kOwn };
enum class Side { kIn, kOut };
using WhereOf = std::function<Where(int pe, Side side)>;

struct Program {
  Collective collective;
  int pes = 2;
  size_t count = 1;
  std::vector<WhereOf> calls;  ///< where the buffers of each lie
  bool any_memory = false;
  std::function<const char*(int pe)> algorithms = {};
};

tandem_status call(CPeer& peer, Collective collective, const void* in, void* out, size_t count, int root) {
  const auto u32 = TANDEM_U32;
  tandem_world* const w = peer.world;
  switch (collective) {
    case Collective::kAllReduce:
      return tandem_all_reduce(w, in, out, count, u32, TANDEM_SUM, peer.stream);
    case Collective::kAllGather:
      return tandem_all_gather(w, in, out, count, u32, peer.stream);
    case Collective::kReduceScatter:
      return tandem_reduce_scatter(w, in, out, count, u32, TANDEM_SUM, peer.stream);
    case Collective::kAllToAll:
      return tandem_all_to_all(w, in, out, count, u32, peer.stream);
    case Collective::kBroadcast:
      return tandem_broadcast(w, in, out, count, u32, root, peer.stream);
    case Collective::kReduce:
      return tandem_reduce(w, in, out, count, u32, TANDEM_SUM, root, peer.stream);
    case Collective::kGather:
      return tandem_gather(w, in, out, count, u32, root, peer.stream);
    default:
      return tandem_scatter(w, in, out, count, u32, root, peer.stream);
  }
}

/// PE `pe`'s input, and what its output is to be.
Words input(Collective collective, int pe, int pes, int root, size_t count) {
  std::vector<Words> parts;
  const auto elements = input_elements(collective, 1, pes, pe, root);
  parts.reserve(static_cast<size_t>(elements));
  for (int i = 0; i < elements; ++i) parts.push_back(words(pe, i, count));
  return joined(parts);
}
Words result(Collective collective, int pe, int pes, int root, size_t count) {
  const auto part = [&](int from, int to) { return words(from, to, count); };
  const auto sum = [&](int to) {
    Words all(count);
    for (int from = 0; from < pes; ++from) {
      const Words given = part(from, to);
      for (size_t i = 0; i < count; ++i) all[i] += given[i];
    }
    return all;
  };
  std::vector<Words> parts;
  switch (collective) {
    case Collective::kAllReduce:
      return sum(0);
    case Collective::kReduceScatter:
      return sum(pe);
    case Collective::kBroadcast:
      return part(root, 0);
    case Collective::kScatter:
      return part(root, pe);
    case Collective::kReduce:
      return pe == root ? sum(0) : Words();
    case Collective::kGather:
      if (pe != root) return {};
      [[fallthrough]];
    case Collective::kAllGather:
      for (int from = 0; from < pes; ++from) parts.push_back(part(from, 0));
      return joined(parts);
    default:
      for (int from = 0; from < pes; ++from) parts.push_back(part(from, pe));
      return joined(parts);
  }
}

/// "": all went well, and the results are right; else the error of the PE that got one.
std::string outcome(const Program& program) {
  const Collective collective = program.collective;
  const int root = program.pes - 1;
  try {
    run_in_c(program.pes,
             [&](CPeer& peer) {
               const size_t size = program.count * static_cast<size_t>(peer.n);
               const auto memories = [&] {
                 return std::array{Memory(peer, true, Words(size)), Memory(peer, true, Words(size)),
                                   Memory(peer, false, Words(size))};
               };
               const auto ins = memories();
               const auto outs = memories();
               Words given = input(collective, peer.pe, peer.n, root, program.count);
               const Words wanted = result(collective, peer.pe, peer.n, root, program.count);
               given.resize(size);
               for (const WhereOf& where : program.calls) {
                 const Memory& in = ins[static_cast<size_t>(where(peer.pe, Side::kIn))];
                 const Memory& out = outs[static_cast<size_t>(where(peer.pe, Side::kOut))];
                 in.fill(given);
                 out.fill(Words(size));
                 if (call(peer, collective, in.at(), out.at(), program.count, root) != TANDEM_SUCCESS)
                   throw InvalidArgument(tandem_last_error());
                 Words found = out.contents();
                 found.resize(wanted.size());
                 EXPECT_EQ(found, wanted);
               }
             },
             {.any_memory = program.any_memory, .algorithms = program.algorithms});
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

WhereOf all(Where in, Where out) {
  return [=](int, Side side) { return side == Side::kIn ? in : out; };
}
/// All alike, but for one side of PE `odd`.
WhereOf all_but(int odd, Side odd_side, Where its, Where all_others) {
  return [=](int pe, Side side) { return pe == odd && side == odd_side ? its : all_others; };
}

/// An algorithm, and the buffers that peers access in it.
struct Touched {
  Collective collective;
  const char* algorithm;
  bool in, out;
};
constexpr Touched kTouched[] = {
    {Collective::kAllReduce, "two_shot", true, true}, {Collective::kAllReduce, "one_shot_ll", false, false},
    {Collective::kAllGather, "push", false, true},    {Collective::kReduceScatter, "pull", true, false},
    {Collective::kAllToAll, "push", false, true},     {Collective::kBroadcast, "direct", false, true},
    {Collective::kReduce, "direct", true, false},     {Collective::kGather, "direct", false, true},
    {Collective::kScatter, "direct", true, false},
};
constexpr size_t kLarge = 70'000;

class MixedMemory : public ::testing::TestWithParam<int> {};

/// One PE's buffer lies elsewhere than all others': in the first call, where the others have made their plan, and where
/// all plans are there.
TEST_P(MixedMemory, WorksWhereNoPeerTouchesItAndElseIsNamed) {
  const int pes = GetParam();
  int turn = 0;
  for (const Touched& touched : kTouched)
    for (const size_t count : {size_t{1}, kLarge})
      for (const auto& [others, its] : {std::pair{Where::kAllocation, Where::kOwn},
                                        {Where::kOwn, Where::kAllocation},
                                        {Where::kAllocation, Where::kOtherAllocation}})
        for (const Side side : {Side::kIn, Side::kOut}) {
          ++turn;
          const int odd = turn / 3 % pes;
          Program program{touched.collective, pes, count, {}};
          const std::string algorithms = std::string(name(touched.collective)) + "=" + touched.algorithm;
          program.algorithms = [&](int) { return algorithms.c_str(); };
          if (turn % 3 > 0) program.calls.push_back(all(others, others));
          if (turn % 3 > 1) program.calls.push_back(all(its, its));
          program.calls.push_back(all_but(odd, side, its, others));
          const std::string text = outcome(program);
          const bool is_touched = side == Side::kIn ? touched.in : touched.out;
          SCOPED_TRACE(::testing::Message() << name(touched.collective) << " of " << count << ", turn " << turn);
          if (is_touched)
            EXPECT_THAT(text, AllOf(HasSubstr(name(touched.collective)), HasSubstr("; peers read or write there"),
                                    HasSubstr(side == Side::kIn ? ", in = " : ", out = "),
                                    HasSubstr("PE " + std::to_string(odd))));
          else
            EXPECT_EQ(text, "");
        }
}

INSTANTIATE_TEST_SUITE_P(Pes, MixedMemory, ::testing::Values(2, 3, 4));

TEST(AnyMemory, MayDifferInEveryWay) {
  for (const Touched& touched : kTouched)
    for (const int pes : {2, 3}) {
      const auto where = [](int pe, Side side) { return static_cast<Where>((pe + (side == Side::kIn ? 0 : 2)) % 3); };
      EXPECT_EQ(outcome({touched.collective, pes, kLarge, {where, all(Where::kOwn, Where::kAllocation), where}, true}),
                "")
          << name(touched.collective);
    }
}

TEST(MixedMemoryText, SaysWhereEachLies) {
  const auto text = [](Where its, Where others) {
    return outcome({Collective::kGather, 2, kLarge, {all_but(1, Side::kOut, its, others)}});
  };
  EXPECT_THAT(text(Where::kOwn, Where::kOtherAllocation),
              AllOf(HasSubstr("call 1 of the world's collectives"), HasSubstr("gather u32 root 1 with count 70000"),
                    HasSubstr("out = memory of its own; "), HasSubstr("out = allocation 4 at byte 0")));
}

/// As many as a place has room for are there at a time, not in the world's whole life.
TEST(MixedMemoryText, NumbersOfFreedAllocationsComeAgain) {
  std::string text;
  try {
    run_in_c(2, [](CPeer& peer) {
      const Memory first(peer, true, Words(8)), second(peer, true, Words(8));
      for (int i = 0; i < 3; ++i) {
        void* passing = nullptr;
        EXPECT_EQ(unlike(tandem_alloc(peer.world, 64, &passing), TANDEM_SUCCESS), "");
        EXPECT_EQ(unlike(tandem_free(peer.world, passing), TANDEM_SUCCESS), "");
      }
      const Memory third(peer, true, Words(8)), fourth(peer, true, Words(8));
      const Memory& out = peer.pe == 0 ? third : fourth;
      if (call(peer, Collective::kGather, first.at(), out.at(), 4, 0) != TANDEM_SUCCESS)
        throw InvalidArgument(tandem_last_error());
      synchronize(peer);
    });
  } catch (const std::exception& error) {
    text = error.what();
  }
  EXPECT_THAT(text, AllOf(HasSubstr("out = allocation 3 at byte 0"), HasSubstr("out = allocation 4 at byte 0")));
}

TEST(OrderOfCalls, IsOneForAllPlans) {
  std::string text;
  try {
    run_in_c(2, [](CPeer& peer) {
      const Memory a(peer, true, Words(8)), b(peer, true, Words(8));
      const auto make = [&](Collective collective) {
        if (call(peer, collective, a.at(), b.at(), 4, 0) != TANDEM_SUCCESS) throw InvalidArgument(tandem_last_error());
      };
      for (const Collective collective : {Collective::kAllReduce, Collective::kBroadcast}) make(collective);
      const bool first = peer.pe == 0;
      make(first ? Collective::kAllReduce : Collective::kBroadcast);
      make(first ? Collective::kBroadcast : Collective::kAllReduce);
      synchronize(peer);
    });
  } catch (const std::exception& error) {
    text = error.what();
  }
  EXPECT_THAT(text, AllOf(HasSubstr("call 3 of the world's collectives"), HasSubstr("all_reduce u32 sum with count 4"),
                          HasSubstr("broadcast u32 with count 4"), HasSubstr("same calls in the same order")));
}

/// Whatever is refused before it is enqueued is no call that others compare theirs with.
TEST(OrderOfCalls, HasNoCallsThatWereRefused) {
  const auto program = [](CPeer& peer) {
    const Memory memory(peer, false, Words(32));
    auto* const at = static_cast<unsigned*>(memory.at());
    const auto make = [&](const void* in, void* out, size_t count) {
      return tandem_all_reduce(peer.world, in, out, count, TANDEM_U32, TANDEM_SUM, peer.stream);
    };
    EXPECT_EQ(unlike(make(at, at + 2, 4), TANDEM_INVALID_ARGUMENT, "buffers that overlap"), "");
    if (peer.pe == 1) {
      EXPECT_EQ(unlike(make(reinterpret_cast<std::byte*>(at) + 1, at + 16, 8), TANDEM_INVALID_ARGUMENT, "multiples of"),
                "");
    }
    for (const size_t count : {8, 5}) {
      EXPECT_EQ(unlike(make(at, at + 16, count), TANDEM_SUCCESS), "");
      EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
    }
  };
  // Its input is not copied, so an input at any address is refused when the call's kernel is prepared.
  run_in_c(2, program, {.algorithms = [](int) { return "all_reduce=one_shot_ll"; }});
}

TEST(OrderOfCalls, OfNoElementsNeedsNoMemory) {
  run_in_c(2, [](CPeer& peer) {
    const Memory memory(peer, true, Words(8));
    void* const at = peer.pe == 0 ? memory.at() : nullptr;
    EXPECT_EQ(unlike(tandem_gather(peer.world, at, at, 0, TANDEM_U32, 0, peer.stream), TANDEM_SUCCESS), "");
    EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
  });
}

/// Every PE in place, with an output (or input) that begins where the other one's part of it is.
void check_in_place(CPeer& peer, Collective collective, size_t count, bool symmetric) {
  const Words given = input(collective, peer.pe, peer.n, 0, count);
  const Words wanted = result(collective, peer.pe, peer.n, 0, count);
  const size_t own = static_cast<size_t>(peer.pe) * count;
  const size_t in = wanted.size() > given.size() ? own : 0;
  const size_t out = given.size() > wanted.size() ? own : 0;
  Words contents(std::max(given.size(), wanted.size()));
  std::copy(given.begin(), given.end(), contents.begin() + static_cast<std::ptrdiff_t>(in));
  const Memory both(peer, symmetric, contents);
  auto* const begin = static_cast<unsigned*>(both.at());
  EXPECT_EQ(unlike(call(peer, collective, begin + in, begin + out, count, 0), TANDEM_SUCCESS), "");
  const Words found = both.contents();
  const auto at = found.begin() + static_cast<std::ptrdiff_t>(out);
  EXPECT_EQ(Words(at, at + static_cast<std::ptrdiff_t>(wanted.size())), wanted) << name(collective);
}

TEST(InPlace, PlacesDifferByDesign) {
  for (const auto collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter})
    for (const size_t count : {size_t{1}, size_t{3000}, kLarge})
      for (const bool symmetric : {true, false})
        run_in_c(3, [&](CPeer& peer) { check_in_place(peer, collective, count, symmetric); });
}

TEST(InPlace, WherePeersReadTheInput) {
  const trace::testing::TemporaryFolder folder;
  const std::string table = folder / "table.json";
  std::ofstream(table) << R"({"name": "t", "description": "made up", "machines": [], "groups": [
      {"op": "all_gather", "nodes": "one", "source": "made up", "sizes": [{"algorithm": "copy_engine_pull"}]}]})";
  ASSERT_EQ(setenv("TANDEM_SELECTION", table.c_str(), 1), 0);
  run_in_c(3, [&](CPeer& peer) { check_in_place(peer, Collective::kAllGather, 100, true); });
  EXPECT_THAT(outcome({Collective::kAllGather, 2, 100, {all_but(1, Side::kIn, Where::kOwn, Where::kAllocation)}}),
              HasSubstr(", in = memory of its own"));
  // In place on PE 0 alone: it would look for its peers' inputs within their outputs.
  try {
    run_in_c(3, [&](CPeer& peer) {
      const Memory both(peer, true, Words(300)), other(peer, true, Words(300));
      const bool fails =
          call(peer, Collective::kAllGather, both.at(), (peer.pe == 0 ? both : other).at(), 100, 0) != TANDEM_SUCCESS;
      if (fails) throw InvalidArgument(tandem_last_error());
      synchronize(peer);
    });
    ADD_FAILURE() << "was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("out = allocation 1 at byte 0"));
  }
  unsetenv("TANDEM_SELECTION");
}

}  // namespace
}  // namespace tandem::test
