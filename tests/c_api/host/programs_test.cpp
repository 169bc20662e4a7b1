// Programs in C on CPUs: the shared library as it is installed, PEs as threads, data that really moves.
#include <fcntl.h>
#include <sys/mman.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "c_api/host/pes.h"

namespace tandem::c_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class CProgramsOnHost : public ::testing::TestWithParam<int> {};

TEST_P(CProgramsOnHost, ReduceInMemoryOfTheHeapAndOfTheirOwn) {
  run(GetParam(), [](const Peer& p) {
    constexpr size_t kCount = 40'003;  // more than the staging memory holds
    void* heap = nullptr;
    ASSERT_EQ(error_of(tandem_alloc(p.world, kCount * 4, &heap)), "");
    std::vector<float> own(kCount, static_cast<float>(p.pe + 1));
    const int total = p.n * (p.n + 1) / 2;
    const auto sum = static_cast<float>(total);
    auto* const shared = static_cast<float*>(heap);
    std::copy(own.begin(), own.end(), shared);
    EXPECT_EQ(error_of(tandem_all_reduce(p.world, shared, shared, kCount, TANDEM_F32, TANDEM_SUM, nullptr)), "");
    EXPECT_EQ(error_of(tandem_all_reduce(p.world, own.data(), own.data(), kCount, TANDEM_F32, TANDEM_SUM, nullptr)),
              "");
    EXPECT_EQ(error_of(tandem_synchronize(p.world, nullptr)), "");
    EXPECT_THAT(own, Each(sum));
    EXPECT_THAT(std::vector<float>(shared, shared + kCount), Each(sum));
    EXPECT_EQ(error_of(tandem_barrier(p.world)), "");
    EXPECT_EQ(error_of(tandem_free(p.world, heap)), "");
  });
}

TEST_P(CProgramsOnHost, GatherScatterAndSend) {
  run(GetParam(), [](const Peer& p) {
    const auto n = static_cast<size_t>(p.n);
    const std::vector<int> mine{p.pe * 10, p.pe * 10 + 1};
    std::vector<int> all(2 * n), swapped(n), out(n), got(2);
    EXPECT_EQ(error_of(tandem_all_gather(p.world, mine.data(), all.data(), 2, TANDEM_F32, nullptr)), "");
    std::iota(out.begin(), out.end(), p.pe * 1000);
    EXPECT_EQ(error_of(tandem_all_to_all(p.world, out.data(), swapped.data(), 1, TANDEM_F32, nullptr)), "");
    std::vector<int> sent = mine;
    tandem_message to{sent.data(), 2, TANDEM_F32, (p.pe + 1) % p.n};
    tandem_message from{got.data(), 2, TANDEM_F32, (p.pe + p.n - 1) % p.n};
    EXPECT_EQ(error_of(tandem_send_recv(p.world, &to, 1, &from, 1, nullptr)), "");
    EXPECT_EQ(error_of(tandem_synchronize(p.world, nullptr)), "");
    for (int other = 0; other < p.n; ++other) {
      EXPECT_EQ(all[2 * static_cast<size_t>(other) + 1], other * 10 + 1);
      EXPECT_EQ(swapped[static_cast<size_t>(other)], other * 1000 + p.pe);
    }
    EXPECT_EQ(got[0], (p.pe + p.n - 1) % p.n * 10);
  });
}

TEST_P(CProgramsOnHost, RunAnOverlappedOperator) {
  run(GetParam(), [](const Peer& p) {
    const auto n = static_cast<size_t>(p.n);
    const size_t m = 16 * n, k = 32, columns = 16;
    tandem_problem problem{};
    problem.m = m;
    problem.n = columns * n;
    problem.k = k;
    problem.type = TANDEM_BF16;
    tandem_plan* plan = nullptr;
    ASSERT_EQ(error_of(tandem_plan_create(&plan, p.world, TANDEM_ALL_GATHER_GEMM, &problem)), "");
    constexpr unsigned short kOne = 0x3F80, k32 = 0x4200;  // of bf16
    alignas(16) static thread_local unsigned short a[16 * 32], b[16 * 32], c[16 * 8 * 16];
    std::fill(std::begin(a), std::end(a), kOne);
    std::fill(std::begin(b), std::end(b), kOne);
    const void* const bs[] = {b};
    void* const cs[] = {c};
    EXPECT_EQ(error_of(tandem_plan_run(plan, m, a, bs, cs, nullptr)), "");
    EXPECT_EQ(error_of(tandem_synchronize(p.world, nullptr)), "");
    EXPECT_THAT(std::vector<unsigned short>(c, c + m * columns), Each(k32));
    EXPECT_EQ(error_of(tandem_barrier(p.world)), "");
    EXPECT_EQ(error_of(tandem_plan_destroy(plan)), "");
  });
}

TEST_P(CProgramsOnHost, PutToPeersAndSignal) {
  run(GetParam(), [](const Peer& p) {
    const int next = (p.pe + 1) % p.n;
    void* memory = nullptr;
    ASSERT_EQ(error_of(tandem_alloc(p.world, 64, &memory)), "");
    auto* const word = static_cast<uint64_t*>(memory);
    auto* const values = reinterpret_cast<int*>(word + 1);
    *word = 0;
    EXPECT_EQ(error_of(tandem_barrier(p.world)), "");
    const std::vector<int> mine{p.pe, p.pe * 2};
    EXPECT_EQ(error_of(tandem_put(p.world, values, mine.data(), 8, next, nullptr)), "");
    EXPECT_EQ(error_of(tandem_write_signal(p.world, word, 7, next, nullptr)), "");
    EXPECT_EQ(error_of(tandem_wait_signal(p.world, word, 7, nullptr)), "");
    EXPECT_EQ(error_of(tandem_synchronize(p.world, nullptr)), "");
    const int before = (p.pe + p.n - 1) % p.n;
    EXPECT_EQ(values[1], before * 2);
    void* theirs = nullptr;
    EXPECT_EQ(error_of(tandem_peer_pointer(p.world, values + 1, next, &theirs)), "");
    EXPECT_EQ(*static_cast<int*>(theirs), p.pe * 2);
    EXPECT_EQ(error_of(tandem_barrier(p.world)), "");
    EXPECT_EQ(error_of(tandem_free(p.world, memory)), "");
  });
}

TEST_P(CProgramsOnHost, MeetInAStream) {
  run(GetParam(), [](const Peer& p) {
    void* memory = nullptr;
    ASSERT_EQ(error_of(tandem_alloc(p.world, sizeof(int), &memory)), "");
    auto* const value = static_cast<int*>(memory);
    *value = -1;
    EXPECT_EQ(error_of(tandem_barrier(p.world)), "");
    for (int round = 0; round < 3; ++round) {
      const int sent = p.pe + 100 * round;
      // The last PE is late, so that its data is missing where nothing waits.
      if (p.pe == p.n - 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(error_of(tandem_put(p.world, value, &sent, sizeof(sent), (p.pe + 1) % p.n, nullptr)), "");
      EXPECT_EQ(error_of(tandem_barrier_on(p.world, nullptr)), "");
      EXPECT_EQ(error_of(tandem_synchronize(p.world, nullptr)), "");
      EXPECT_EQ(*value, (p.pe + p.n - 1) % p.n + 100 * round);
      EXPECT_EQ(error_of(tandem_barrier_on(p.world, nullptr)), "");
      EXPECT_EQ(error_of(tandem_synchronize(p.world, nullptr)), "");
    }
    EXPECT_EQ(error_of(tandem_barrier(p.world)), "");
    EXPECT_EQ(error_of(tandem_free(p.world, memory)), "");
  });
}

TEST_P(CProgramsOnHost, RefusePlacesThatAreNotSymmetric) {
  run(GetParam(), [](const Peer& p) {
    void* memory = nullptr;
    ASSERT_EQ(error_of(tandem_alloc(p.world, 64, &memory)), "");
    auto* const word = static_cast<uint64_t*>(memory);
    void* peer = nullptr;
    int own = 0;
    EXPECT_THAT(error_of(tandem_peer_pointer(p.world, memory, p.n, &peer)),
                HasSubstr("pe: " + std::to_string(p.n) + " given, allowed is 0 to"));
    EXPECT_THAT(error_of(tandem_peer_pointer(p.world, &own, 0, &peer)), HasSubstr("allowed is memory of tandem_alloc"));
    EXPECT_THAT(error_of(tandem_put(p.world, memory, &own, 65, 0, nullptr)), HasSubstr("to: "));
    EXPECT_THAT(error_of(tandem_put(p.world, memory, nullptr, 4, 0, nullptr)), HasSubstr("from: NULL given"));
    auto* const askew = reinterpret_cast<uint64_t*>(static_cast<char*>(memory) + 4);
    EXPECT_THAT(error_of(tandem_write_signal(p.world, askew, 1, 0, nullptr)), HasSubstr("a multiple of 8"));
    EXPECT_THAT(error_of(tandem_wait_signal(p.world, word + 8, 1, nullptr)), HasSubstr("word: "));
    EXPECT_EQ(error_of(tandem_barrier(p.world)), "");
    EXPECT_EQ(error_of(tandem_free(p.world, memory)), "");
  });
}

INSTANTIATE_TEST_SUITE_P(Pes, CProgramsOnHost, ::testing::Values(1, 2, 3, 5));

TEST(CProgram, SplitTheirWorld) {
  run(4, [](const Peer& p) {
    tandem_world* pair = nullptr;
    ASSERT_EQ(error_of(tandem_world_split(&pair, p.world, p.pe / 2, 0, nullptr)), "");
    EXPECT_EQ(tandem_device_of(pair), TANDEM_HOST);
    EXPECT_EQ(tandem_num_pes(pair), 2);
    float value = static_cast<float>(p.pe);
    EXPECT_EQ(error_of(tandem_all_reduce(pair, &value, &value, 1, TANDEM_F32, TANDEM_MAX, nullptr)), "");
    EXPECT_EQ(error_of(tandem_synchronize(pair, nullptr)), "");
    const int odd_one = p.pe / 2 * 2 + 1;
    EXPECT_EQ(value, static_cast<float>(odd_one));
    EXPECT_EQ(error_of(tandem_world_destroy(pair)), "");
  });
}

TEST(CProgram, HearOfEachOthersCalls) {
  run(2, [](const Peer& p) {
    std::vector<float> data(1000);
    const size_t count = p.pe == 0 ? 1000 : 500;
    std::string text =
        error_of(tandem_all_reduce(p.world, data.data(), data.data(), count, TANDEM_F32, TANDEM_SUM, nullptr));
    if (text.empty()) text = error_of(tandem_synchronize(p.world, nullptr));
    EXPECT_THAT(text, HasSubstr("status 1: "));
    EXPECT_THAT(text, HasSubstr("count"));
  });
}

TEST(CProgram, UseRegisteredMemoryInPlace) {
  run(3, [](const Peer& p) {
    constexpr size_t kBytes = size_t{1} << 20, kCount = 100'000;
    const int file = ::memfd_create("of the program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(file, kBytes), 0);
    void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ASSERT_EQ(error_of(tandem_register(p.world, memory, kBytes)), "");
    ::close(file);
    auto* const data = static_cast<float*>(memory);
    std::fill(data, data + kCount, static_cast<float>(p.pe + 1));
    EXPECT_EQ(error_of(tandem_all_reduce(p.world, data, data, kCount, TANDEM_F32, TANDEM_SUM, nullptr)), "");
    EXPECT_EQ(error_of(tandem_synchronize(p.world, nullptr)), "");
    EXPECT_THAT(std::vector<float>(data, data + kCount), Each(6.0F));
    EXPECT_EQ(error_of(tandem_barrier(p.world)), "");
    EXPECT_EQ(error_of(tandem_unregister(p.world, memory)), "");
    ::munmap(memory, kBytes);
  });
}

TEST(CProgram, AreRefusedWhatCpusHaveNot) {
  run(1, [](const Peer& p) {
    std::vector<float> data(4);
    EXPECT_THAT(error_of(tandem_register(p.world, data.data(), 16)), HasSubstr("status 2: "));
    EXPECT_THAT(error_of(tandem_all_reduce(p.world, data.data(), data.data(), 4, TANDEM_F32, TANDEM_SUM, data.data())),
                HasSubstr("allowed are streams of this PE and NULL"));
  });
}

TEST(CProgram, NameTheDeviceThatIsNotThere) {
  std::vector<char> id(TANDEM_UNIQUE_ID_BYTES);
  ASSERT_EQ(error_of(tandem_unique_id_create(id.data(), nullptr)), "");
  tandem_world* world = nullptr;
  tandem_options options = {};
  options.device = static_cast<tandem_device>(7);
  EXPECT_THAT(error_of(tandem_world_create(&world, id.data(), 0, 1, &options)), HasSubstr("device: 7 given"));
  EXPECT_EQ(tandem_device_of(nullptr), TANDEM_ANY_DEVICE);
}

}  // namespace
}  // namespace tandem::c_test
