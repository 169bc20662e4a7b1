// The checks of the tool themselves: a wrong element is counted, a right one is not, and exact data is exact.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

// The tool is one executable and no library: its checks are compiled in here.
#include "tools/tandem/data/collective_data.cpp"
#include "tools/tandem/data/data.cpp"
#include "tools/tandem/data/moved_data.cpp"
#include "tools/tandem/data/quantised_data.cpp"
#include "tools/tandem/data/reduced_data.cpp"
#include "tools/tandem/options/parallel.cpp"

namespace tandem::cli {
namespace {

/// Reduces the inputs of all PEs in the order first, first + 1, ..., each partial sum rounded to the type, as a ring
/// does.
template <class T>
std::vector<T> reduce_from(const CollectiveCall& call, const CollectiveData& data, int first) {
  using A = Accumulator<T>;
  std::vector<T> total(static_cast<std::size_t>(call.count));
  std::vector<T> input(total.size());
  for (int step = 0; step < call.pes; ++step) {
    const int pe = (first + step) % call.pes;
    data.fill_input(pe, reinterpret_cast<std::byte*>(input.data()));
    for (std::size_t i = 0; i < input.size(); ++i) {
      A value = convert<A>(input[i]);
      if (call.op == ReduceOp::kPremulSum) value = premultiply(value, convert<A>(data.scale(pe)));
      total[i] = convert<T>(step == 0 ? value : apply(call.op, convert<A>(total[i]), value));
    }
  }
  for (T& value : total) value = convert<T>(finish(call.op, convert<A>(value), call.pes));
  return total;
}

TEST(CollectiveData, ExactDataIsExactWhateverTheOrder) {
  for (const DType type : kDTypes)
    for (const ReduceOp op : kReduceOps)
      for (const int pes : {1, 2, 9, 64})
        for (const int first : {0, pes / 2}) {
          const CollectiveCall call{Collective::kAllReduce, type, op, 300, pes, 0, 7, DataKind::kExact};
          const auto data = make_collective_data(call);
          Check check;
          dispatch(type, [&]<class T>() {
            const auto result = reduce_from<T>(call, *data, first);
            data->check_output(0, reinterpret_cast<const std::byte*>(result.data()), check);
          });
          EXPECT_EQ(check.checked, 300);
          EXPECT_EQ(check.wrong, 0) << name(type) << ' ' << name(op) << " over " << pes << " from " << first;
          EXPECT_EQ(check.max_error, 0.0);
        }
}

TEST(CollectiveData, NormalDataIsWithinItsToleranceWhateverTheOrder) {
  for (const DType type : {DType::kF32, DType::kBF16, DType::kE4M3})
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kPremulSum, ReduceOp::kMin}) {
      const CollectiveCall call{Collective::kAllReduce, type, op, 5000, 9, 0, 3, DataKind::kNormal};
      const auto data = make_collective_data(call);
      Check check;
      dispatch(type, [&]<class T>() {
        const auto result = reduce_from<T>(call, *data, 4);
        data->check_output(0, reinterpret_cast<const std::byte*>(result.data()), check);
      });
      EXPECT_EQ(check.wrong, 0) << name(type) << ' ' << name(op);
    }
}

TEST(CollectiveData, EveryPeMatters) {
  // Leaving out the last PE must show, in most elements where every PE adds something.
  for (const DType type : {DType::kF32, DType::kBF16, DType::kE5M2, DType::kI8}) {
    const CollectiveCall call{Collective::kAllReduce, type, ReduceOp::kSum, 1000, 4, 0, 7, DataKind::kExact};
    CollectiveCall without = call;
    without.pes = 3;
    Check check;
    dispatch(type, [&]<class T>() {
      const auto data = make_collective_data(call);
      const auto result = reduce_from<T>(without, *data, 0);
      data->check_output(0, reinterpret_cast<const std::byte*>(result.data()), check);
    });
    EXPECT_GT(check.wrong, 500) << name(type);
    EXPECT_GT(check.max_error.value_or(0), 0.0);
  }
}

TEST(CollectiveData, WrongElementsAreCounted) {
  const CollectiveCall call{Collective::kReduceScatter, DType::kF32, ReduceOp::kSum, 100, 1, 0, 7, DataKind::kExact};
  const auto data = make_collective_data(call);
  auto result = reduce_from<float>(call, *data, 0);
  result[3] += 1;
  result[99] = std::numeric_limits<float>::quiet_NaN();
  Check check;
  data->check_output(0, reinterpret_cast<const std::byte*>(result.data()), check);
  EXPECT_EQ(check.wrong, 2);
  EXPECT_FALSE(check.correct());
  EXPECT_FALSE(check.max_error.has_value());  // JSON has no NaN
}

TEST(CollectiveData, MovedBytesComeFromTheRightPlace) {
  // all_to_all of 3 PEs: chunk j of PE 1's output is chunk 1 of PE j's input. Three-byte-long chunks are unaligned.
  const CollectiveCall call{Collective::kAllToAll, DType::kU8, ReduceOp::kSum, 3, 3, 0, 7, DataKind::kExact};
  const auto data = make_collective_data(call);
  std::vector<std::byte> out(9), input(9);
  for (int pe = 0; pe < 3; ++pe) {
    data->fill_input(pe, input.data());
    std::memcpy(out.data() + 3 * pe, input.data() + 3, 3);
  }
  Check check;
  data->check_output(1, out.data(), check);
  EXPECT_EQ(check.checked, 9);
  EXPECT_EQ(check.wrong, 0);
  out[4] ^= std::byte{1};
  data->check_output(1, out.data(), check);
  EXPECT_EQ(check.wrong, 1);
  EXPECT_FALSE(check.max_error.has_value());
}

TEST(NormalData, HasTheMomentsOfTheStandardNormalDistribution) {
  const NormalData<float> data(1);
  std::vector<float> values(1 << 20);
  data.fill(5, 3, values.data(), static_cast<Size>(values.size()));
  double mean = 0, square = 0, fourth = 0;
  for (const float value : values) {
    mean += value;
    square += value * value;
    fourth += value * value * value * value;
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(mean / n, 0, 0.005);
  EXPECT_NEAR(square / n, 1, 0.01);
  EXPECT_NEAR(fourth / n, 3, 0.1);
  EXPECT_EQ(values[100], data(5, 103));  // one by one as all together
  EXPECT_NE(values[100], data(6, 103));
}

TEST(NormalData, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(normal_quantiles()[65536 * 975 / 1000], 1.959938, 1e-5);
  EXPECT_NEAR(normal_quantiles()[65535], 4.324919, 1e-5);  // of 1 - 1/131072
  EXPECT_EQ(normal_quantiles()[0], -normal_quantiles()[65535]);
}

TEST(ForChunks, CoversEverythingOnceAndRethrows) {
  std::vector<int> seen(1001);
  for_chunks(1001, 10, [&](Range piece) {
    for (Size i = piece.begin; i < piece.end; ++i) ++seen[static_cast<std::size_t>(i)];
  });
  EXPECT_EQ(seen, std::vector<int>(1001, 1));
  EXPECT_THROW(for_chunks(100, 1, [](Range) { throw InvalidArgument("no"); }), InvalidArgument);
}

}  // namespace
}  // namespace tandem::cli
