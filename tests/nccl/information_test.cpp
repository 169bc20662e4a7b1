// Parameters, properties, teams, and collectives with a configuration of their own.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include "program.h"

namespace tandem::nccl_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Sets a variable while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(NcclParameters, AreTheVariablesThatTheLibraryReads) {
  const char** keys = nullptr;
  int count = 0;
  ASSERT_EQ(error_of(ncclParamGetAllParameterKeys(&keys, &count)), "");
  const std::set<std::string> all(keys, keys + count);
  EXPECT_TRUE(all.count("NCCL_DEBUG") == 1 && all.count("TANDEM_NCCL_VERSION") == 1);
  const Variable version("TANDEM_NCCL_VERSION", "23203");
  const char* value = nullptr;
  int length = 0;
  EXPECT_EQ(error_of(ncclParamGetParameter("TANDEM_NCCL_VERSION", &value, &length)), "");
  EXPECT_EQ(std::string_view(value), "23203");
  EXPECT_EQ(length, 5);
  EXPECT_THAT(error_of(ncclParamGetParameter("NCCL_ALGO", &value, &length)), StartsWith("4: key: 'NCCL_ALGO' given"));
  ncclParamDumpAll();
}

/// Reads the parameter by one function.
template <class T>
std::string read(ncclResult_t (*get)(ncclParamHandle_t, T*), const char* key) {
  ncclParamHandle_t handle = nullptr;
  EXPECT_EQ(error_of(ncclParamBind(&handle, key)), "");
  T value = 1;
  const std::string error = error_of(get(handle, &value));
  return error.empty() ? std::to_string(value) : error;
}

TEST(NcclParameters, HaveAValueOfEachType) {
  const Variable version("TANDEM_NCCL_VERSION", "-5"), debug("NCCL_DEBUG", "");
  constexpr const char* kKey = "TANDEM_NCCL_VERSION";
  EXPECT_EQ(read(&ncclParamGetI8, kKey), "-5");
  EXPECT_EQ(read(&ncclParamGetI16, kKey), "-5");
  EXPECT_EQ(read(&ncclParamGetI32, kKey), "-5");
  EXPECT_EQ(read(&ncclParamGetI64, kKey), "-5");
  EXPECT_THAT(read(&ncclParamGetU8, kKey), StartsWith("4: TANDEM_NCCL_VERSION: '-5' given, allowed"));
  EXPECT_THAT(read(&ncclParamGetU16, kKey), HasSubstr("are 0 to 65535"));
  EXPECT_THAT(read(&ncclParamGetU32, kKey), HasSubstr("are 0 to 4294967295"));
  EXPECT_THAT(read(&ncclParamGetU64, kKey), HasSubstr("are 0 to 18446744073709551615"));
  ncclParamHandle_t handle = nullptr;
  ASSERT_EQ(error_of(ncclParamBind(&handle, kKey)), "");
  const char* text = nullptr;
  EXPECT_EQ(error_of(ncclParamGetStr(handle, &text)), "");
  EXPECT_EQ(std::string_view(text), "-5");
  char bytes[2] = {};
  int length = 0;
  EXPECT_EQ(error_of(ncclParamGet(handle, bytes, 2, &length)), "");
  EXPECT_EQ(std::string_view(bytes, static_cast<std::size_t>(length)), "-5");
  EXPECT_THAT(error_of(ncclParamGet(handle, bytes, 1, &length)), StartsWith("4: maxLen: 1 given, allowed is at least"));
  EXPECT_THAT(error_of(ncclParamGetStr(nullptr, &text)), StartsWith("4: h: "));
  EXPECT_THAT(error_of(ncclParamBind(&handle, nullptr)), StartsWith("4: key: NULL"));
  EXPECT_EQ(handle, nullptr);
}

TEST(NcclInformation, HasPropertiesForEachVersion) {
  run(3, [](const Rank& r) {
    ncclCommProperties_t all{};
    std::memset(static_cast<void*>(&all), 0x7f, sizeof(all));
    all.size = offsetof(ncclCommProperties_t, nLsaTeams);  // of an older version
    all.magic = kConfigMagic;
    ASSERT_EQ(error_of(ncclCommQueryProperties(r.comm, &all)), "");
    EXPECT_EQ(all.rank, r.rank);
    EXPECT_EQ(all.nRanks, 3);
    EXPECT_FALSE(all.deviceApiSupport);
    EXPECT_EQ(all.nLsaTeams, 0x7f7f7f7f);  // not written
    all.size = sizeof(all);
    ASSERT_EQ(error_of(ncclCommQueryProperties(r.comm, &all)), "");
    EXPECT_EQ(all.nLsaTeams, 1);
    std::uint64_t hashes[3] = {};
    ASSERT_EQ(error_of(ncclAllGather(&all.commHash, hashes, 1, ncclUint64, r.comm, nullptr)), "");
    EXPECT_THAT(hashes, ::testing::Each(all.commHash));
    all.magic = 1;
    EXPECT_THAT(error_of(ncclCommQueryProperties(r.comm, &all)), StartsWith("4: props.magic: 0x1 given"));
  });
}

TEST(NcclInformation, HasTeams) {
  run(3, [](const Rank& r) {
    const ncclTeam world = ncclTeamWorld(r.comm), near = ncclTeamLsa(r.comm), rail = ncclTeamRail(r.comm);
    for (const ncclTeam& team : {world, near}) {
      EXPECT_EQ(team.nRanks, 3);
      EXPECT_EQ(team.rank, r.rank);
      EXPECT_EQ(ncclTeamRankToWorld(r.comm, team, 2), 2);
      EXPECT_EQ(ncclTeamRankToLsa(r.comm, team, 0), 0);
    }
    EXPECT_EQ(rail.nRanks, 1);
    EXPECT_EQ(ncclTeamRankToWorld(r.comm, rail, 0), r.rank);
    EXPECT_EQ(ncclTeamRankToWorld(r.comm, rail, 1), -1);
    EXPECT_EQ(ncclTeamWorld(nullptr).nRanks, 0);
  });
}

TEST(NcclInformation, HasNoKeysOfTheProgram) {
  ncclEncryptionConfig_t config{sizeof(config), kConfigMagic, 23203, NCCL_ENCRYPTION_MODE_NONE, nullptr};
  EXPECT_EQ(error_of(ncclSetEncryption(&config)), "");
  config.mode = NCCL_ENCRYPTION_MODE_PSK;
  EXPECT_THAT(error_of(ncclSetEncryption(&config)), StartsWith("5: config.mode: a key of the program given"));
  config.mode = 2;
  EXPECT_THAT(error_of(ncclSetEncryption(&config)), StartsWith("4: config.mode: 2 given"));
  EXPECT_THAT(error_of(ncclSetEncryption(nullptr)), StartsWith("4: config: NULL"));
}

ncclCollConfig_t call_config() {
  constexpr int kNone = kConfigUndefined;
  return {
      sizeof(ncclCollConfig_t), kConfigMagic, 23203, nullptr, kNone, 8, kNone, kNone, nullptr, 1, kNone, 0, nullptr};
}

TEST(NcclConfigured, CallsAreThoseWithoutAConfiguration) {
  run(2, [](const Rank& r) {
    const ncclCollConfig_t some = call_config();
    for (const ncclCollConfig_t* const config : {&some, static_cast<const ncclCollConfig_t*>(nullptr)}) {
      const int in[2] = {r.rank + 1, r.rank + 3};
      int out[4] = {};
      const auto check = [&](ncclResult_t result, std::vector<int> expected) {
        ASSERT_EQ(error_of(result, r.comm), "");
        EXPECT_EQ(std::vector<int>(out, out + expected.size()), expected);
      };
      check(ncclAllReduceConfig(in, out, 2, ncclInt32, ncclSum, r.comm, nullptr, config), {3, 7});
      check(ncclBroadcastConfig(in, out, 2, ncclInt32, 1, r.comm, nullptr, config), {2, 4});
      check(ncclReduceScatterConfig(in, out, 1, ncclInt32, ncclSum, r.comm, nullptr, config), {r.rank == 0 ? 3 : 7});
      check(ncclAllGatherConfig(in, out, 2, ncclInt32, r.comm, nullptr, config), {1, 3, 2, 4});
      check(ncclAlltoAllConfig(in, out, 1, ncclInt32, r.comm, nullptr, config),
            r.rank == 0 ? std::vector<int>{1, 2} : std::vector<int>{3, 4});
      std::fill_n(out, 4, 0);
      check(ncclReduceConfig(in, out, 2, ncclInt32, ncclProd, 0, r.comm, nullptr, config),
            r.rank == 0 ? std::vector<int>{2, 12} : std::vector<int>{0, 0});
      check(ncclGatherConfig(in, out, 2, ncclInt32, 0, r.comm, nullptr, config),
            r.rank == 0 ? std::vector<int>{1, 3, 2, 4} : std::vector<int>{0, 0, 0, 0});
      check(ncclScatterConfig(in, out, 1, ncclInt32, 1, r.comm, nullptr, config), {r.rank == 0 ? 2 : 4});
    }
  });
}

TEST(NcclConfigured, CallsNameTheFieldThatIsWrong) {
  run(1, [](const Rank& r) {
    int data = 1;
    const auto error = [&](const auto& change) {
      ncclCollConfig_t config = call_config();
      change(config);
      return error_of(ncclAllReduceConfig(&data, &data, 1, ncclInt32, ncclSum, r.comm, nullptr, &config));
    };
    EXPECT_THAT(error([](auto& c) { c.magic = 1; }), StartsWith("4: config.magic: 0x1 given"));
    EXPECT_THAT(error([](auto& c) { c.size = 8; }), StartsWith("4: config.size: 8 given"));
    EXPECT_THAT(error([](auto& c) { c.minCTAs = 9; }), StartsWith("4: config.minCTAs: 9 given, allowed are 1 to 8"));
    EXPECT_THAT(error([](auto& c) { c.algSelection = "ring"; }), StartsWith("5: config.algSelection: 'ring' given"));
    EXPECT_EQ(error([](auto& c) { c.algSelection = "ring", c.forceAlgSelection = 0; }), "");
    EXPECT_THAT(error([](auto& c) { c.launchCompletionEvent = reinterpret_cast<cudaEvent_t>(8); }),
                StartsWith("5: config.launchCompletionEvent: "));
    // In a group the error is that of the group.
    ncclCollConfig_t wrong = call_config();
    wrong.magic = 2;
    EXPECT_EQ(error_of(ncclGroupStart()), "");
    EXPECT_EQ(ncclAllReduceConfig(&data, &data, 1, ncclInt32, ncclSum, r.comm, nullptr, &wrong), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  });
}

}  // namespace
}  // namespace tandem::nccl_test
