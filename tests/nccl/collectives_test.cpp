// Every collective, type and operation through NCCL's interface.
#include <cstring>
#include <numeric>

#include "program.h"
#include "tandem/numeric.h"

namespace tandem::nccl_test {
namespace {

constexpr DType kTypes[] = {DType::kI8,  DType::kU8,  DType::kI32, DType::kU32,  DType::kI64,  DType::kU64,
                            DType::kF16, DType::kF32, DType::kF64, DType::kBF16, DType::kE4M3, DType::kE5M2};

DType of_nccl(int type) { return kTypes[type]; }

/// Values of any type, as bytes.
struct Data {
  DType type;
  std::vector<std::byte> bytes;

  Data(DType of, std::size_t count, const std::function<float(std::size_t)>& value)
      : type(of), bytes(count * static_cast<std::size_t>(size_of(of))) {
    dispatch(type, [&]<class T>() {
      for (std::size_t i = 0; i < count; ++i) {
        const T element = convert<T>(value(i));
        std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
      }
    });
  }
  void* at(std::size_t i) { return bytes.data() + i * static_cast<std::size_t>(size_of(type)); }
  bool operator==(const Data& other) const { return bytes == other.bytes; }
};

float zero(std::size_t) { return 0; }

/// Inputs and their reduction that are exact in every type, whatever the order.
struct Case {
  ncclRedOp_t op;
  int n;

  float input(int rank, std::size_t i) const {
    const bool is_mine = (i + static_cast<std::size_t>(rank)) % static_cast<std::size_t>(n) == 0;
    if (op == ncclAvg) return is_mine ? static_cast<float>(n) * result(i) : 0;
    return is_mine ? static_cast<float>(i % 3 + 1) : op == ncclProd ? 1 : 0;
  }
  float result(std::size_t i) const {
    if (op == ncclAvg) return static_cast<float>(i % 2 + 1);
    return op == ncclMin && n > 1 ? 0 : static_cast<float>(i % 3 + 1);
  }
};

class NcclCollectives : public ::testing::TestWithParam<int> {};

void reduce_all_ways(const Rank& r, int nccl_type, ncclRedOp_t op, std::size_t count) {
  const Case data{op, r.n};
  const DType type = of_nccl(nccl_type);
  const auto n = static_cast<std::size_t>(r.n), me = static_cast<std::size_t>(r.rank);
  const auto nccl = static_cast<ncclDataType_t>(nccl_type);
  const Data expected(type, n * count, [&](std::size_t i) { return data.result(i); });
  Data in(type, n * count, [&](std::size_t i) { return data.input(r.rank, i); });
  const std::string what =
      "type " + std::to_string(nccl_type) + " op " + std::to_string(op) + " count " + std::to_string(count);
  Data out(type, n * count, zero);
  EXPECT_EQ(error_of(ncclAllReduce(in.at(0), out.at(0), n * count, nccl, op, r.comm, nullptr)), "");
  EXPECT_TRUE(out == expected) << "all_reduce " << what;
  const int root = r.n - 1;
  Data at_root(type, n * count, zero);
  void* const there = r.rank == root ? at_root.at(0) : nullptr;
  EXPECT_EQ(error_of(ncclReduce(in.at(0), there, n * count, nccl, op, root, r.comm, nullptr)), "");
  EXPECT_TRUE(r.rank != root || at_root == expected) << "reduce " << what;
  // In place.
  EXPECT_EQ(error_of(ncclReduceScatter(in.at(0), in.at(me * count), count, nccl, op, r.comm, nullptr)), "");
  const auto bytes = count * static_cast<std::size_t>(size_of(type));
  EXPECT_EQ(std::memcmp(in.at(me * count), expected.bytes.data() + me * bytes, bytes), 0) << "reduce_scatter " << what;
}

TEST_P(NcclCollectives, ReduceEveryTypeByEveryOperation) {
  run(GetParam(), [](const Rank& r) {
    constexpr std::size_t kCounts[] = {1, 37, 1037, 5};
    for (int type = 0; type < ncclNumTypes; ++type)
      for (int op = 0; op < ncclNumOps; ++op)
        reduce_all_ways(r, type, static_cast<ncclRedOp_t>(op), kCounts[(type + op) % 4]);
  });
}

void move_all_ways(const Rank& r, ncclDataType_t nccl, std::size_t count) {
  const DType type = of_nccl(nccl);
  const auto n = static_cast<std::size_t>(r.n), me = static_cast<std::size_t>(r.rank);
  const int root = r.n / 2;
  const bool is_root = r.rank == root;
  const auto value = [count](std::size_t of, std::size_t i) { return static_cast<float>((of * count + i) % 7); };
  const auto of_me = [&](std::size_t i) { return value(me, i); };
  const Data everything(type, n * count, [&](std::size_t i) { return value(i / count, i % count); });
  Data mine(type, count, of_me), all(type, n * count, zero), gathered(type, n * count, zero);
  EXPECT_EQ(error_of(ncclAllGather(mine.at(0), all.at(0), count, nccl, r.comm, nullptr)), "");
  EXPECT_TRUE(all == everything) << "all_gather " << count;
  void* const at_root = is_root ? gathered.at(0) : nullptr;
  EXPECT_EQ(error_of(ncclGather(mine.at(0), at_root, count, nccl, root, r.comm, nullptr)), "");
  EXPECT_TRUE(!is_root || gathered == everything) << "gather " << count;
  Data part(type, count, zero);
  EXPECT_EQ(error_of(ncclScatter(is_root ? all.at(0) : nullptr, part.at(0), count, nccl, root, r.comm, nullptr)), "");
  EXPECT_TRUE(part == mine) << "scatter " << count;
  Data swapped(type, n * count, zero);
  EXPECT_EQ(error_of(ncclAlltoAll(all.at(0), swapped.at(0), count, nccl, r.comm, nullptr)), "");
  const Data same(type, n * count, [&](std::size_t i) { return value(me, i % count); });
  EXPECT_TRUE(swapped == same) << "all_to_all " << count;
  const Data of_root(type, count, [&](std::size_t i) { return value(static_cast<std::size_t>(root), i); });
  Data out(type, count, zero);
  EXPECT_EQ(error_of(ncclBroadcast(is_root ? mine.at(0) : nullptr, out.at(0), count, nccl, root, r.comm, nullptr)), "");
  EXPECT_TRUE(out == of_root) << "broadcast " << count;
  EXPECT_EQ(error_of(ncclBcast(mine.at(0), count, nccl, root, r.comm, nullptr)), "");
  EXPECT_TRUE(mine == of_root) << "bcast " << count;
}

TEST_P(NcclCollectives, MoveElementsOfEverySize) {
  run(GetParam(), [](const Rank& r) {
    for (const ncclDataType_t type : {ncclInt8, ncclBfloat16, ncclFloat32, ncclInt64})
      for (const std::size_t count : {std::size_t{1}, std::size_t{37}, std::size_t{1037}})
        move_all_ways(r, type, count);
    EXPECT_EQ(error_of(ncclAllGather(nullptr, nullptr, 0, ncclInt8, r.comm, nullptr)), "");
    EXPECT_EQ(error_of(ncclAllReduce(nullptr, nullptr, 0, ncclInt8, ncclSum, r.comm, nullptr)), "");
  });
}

/// Sums of products by each reducing collective. The operation is gone before the call runs.
void multiply_all_ways(const Rank& r, int type, ncclScalarResidence_t where, std::size_t count) {
  const auto nccl = static_cast<ncclDataType_t>(type);
  const auto n = static_cast<std::size_t>(r.n), me = static_cast<std::size_t>(r.rank);
  const Case data{ncclSum, r.n};
  Data scalar(of_nccl(type), 1, [&](std::size_t) { return static_cast<float>(r.rank % 2 + 1); });
  // The rank whose value counts has the factor in its result.
  const Data expected(of_nccl(type), n * count,
                      [&](std::size_t i) { return static_cast<float>((n - i % n) % n % 2 + 1) * data.result(i); });
  const std::string what = "type " + std::to_string(type) + " where " + std::to_string(where);
  const auto result_of = [&](const auto& call) {
    Data in(of_nccl(type), n * count, [&](std::size_t i) { return data.input(r.rank, i); });
    ncclRedOp_t op;
    EXPECT_EQ(error_of(ncclRedOpCreatePreMulSum(&op, scalar.at(0), nccl, where, r.comm)), "");
    EXPECT_EQ(error_of(ncclGroupStart()), "");
    EXPECT_EQ(error_of(call(in, op)), "");
    EXPECT_EQ(error_of(ncclRedOpDestroy(op, r.comm)), "");
    EXPECT_EQ(error_of(ncclGroupEnd()), "") << what;
    return in;
  };
  EXPECT_TRUE(expected == result_of([&](Data& in, ncclRedOp_t op) {
                return ncclAllReduce(in.at(0), in.at(0), n * count, nccl, op, r.comm, nullptr);
              }))
      << "all_reduce " << what;
  Data out(of_nccl(type), n * count, zero);
  result_of([&](Data& in, ncclRedOp_t op) {
    return ncclReduce(in.at(0), r.rank == 0 ? out.at(0) : nullptr, n * count, nccl, op, 0, r.comm, nullptr);
  });
  EXPECT_TRUE(r.rank != 0 || out == expected) << "reduce " << what;
  const Data in = result_of([&](Data& all, ncclRedOp_t op) {
    return ncclReduceScatter(all.at(0), all.at(me * count), count, nccl, op, r.comm, nullptr);
  });
  const auto bytes = count * static_cast<std::size_t>(size_of(of_nccl(type)));
  EXPECT_EQ(std::memcmp(in.bytes.data() + me * bytes, expected.bytes.data() + me * bytes, bytes), 0)
      << "reduce_scatter " << what;
}

TEST_P(NcclCollectives, MultiplyBeforeTheSum) {
  run(GetParam(), [](const Rank& r) {
    for (int type = 0; type < ncclNumTypes; ++type)
      multiply_all_ways(r, type, type % 2 == 0 ? ncclScalarHostImmediate : ncclScalarDevice, 37);
    multiply_all_ways(r, ncclFloat32, ncclScalarDevice, 5);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclCollectives, ::testing::Values(1, 2, 3, 5, 8));

TEST(NcclCollective, RunsInPiecesBeyondTheStaging) {
  run(3, [](const Rank& r) {
    constexpr std::size_t kHalf = (std::size_t{2} << 20) / 8;  // of the staging; a call has several parts
    move_all_ways(r, ncclInt64, kHalf + 1);
    reduce_all_ways(r, ncclInt64, ncclSum, kHalf + 1);
    multiply_all_ways(r, ncclInt64, ncclScalarDevice, kHalf + 1);
  });
}

}  // namespace
}  // namespace tandem::nccl_test
