// Every operator of the C API on CPUs, by threads and by processes, with an order of products that is seen.
#include "c_api/host/pes.h"
#include "tandem/numeric.h"

namespace tandem::c_test {
namespace {

constexpr size_t kColumns = 16, kDepth = 32, kRowsOfPe = 17;  // of a PE

/// Element (i, l) of A, and (l, j) of B. Each product of the depth has the same value, so all sums are exact.
float a_at(size_t i) { return static_cast<float>(i % 3); }
float b_at(size_t j) { return static_cast<float>(j % 5) - 2; }

template <class T>
std::vector<T> matrix(size_t rows, size_t columns, const auto& element) {
  std::vector<T> all(rows * columns + 8);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) all[i * columns + j] = convert<T>(element(i, j));
  return all;
}

/// A run of all rows, then one of fewer.
template <class T>
void check_operator(const Peer& p, tandem_operator op, tandem_dtype type, tandem_layout layout) {
  const auto n = static_cast<size_t>(p.n), pe = static_cast<size_t>(p.pe);
  const bool gathers = op == TANDEM_ALL_GATHER_GEMM;
  tandem_problem problem{};
  problem.m = kRowsOfPe * n;
  problem.n = gathers ? kColumns * n : kColumns;
  problem.k = gathers ? kDepth : kDepth * n;
  problem.type = type;
  problem.b_layout = layout;
  tandem_plan* plan = nullptr;
  ASSERT_EQ(error_of(tandem_plan_create(&plan, p.world, op, &problem)), "");
  for (const size_t rows_of_pe : {kRowsOfPe, size_t{5}}) {
    const size_t m = rows_of_pe * n;
    const size_t first_row = op == TANDEM_GEMM_ALL_REDUCE ? 0 : pe * rows_of_pe;
    const size_t first_column = gathers ? pe * kColumns : 0;
    const auto a = matrix<T>(gathers ? rows_of_pe : m, kDepth,
                             [&](size_t i, size_t) { return a_at(gathers ? first_row + i : i); });
    const auto b = layout == TANDEM_N_X_K
                       ? matrix<T>(kColumns, kDepth, [&](size_t j, size_t) { return b_at(first_column + j); })
                       : matrix<T>(kDepth, kColumns, [&](size_t, size_t j) { return b_at(first_column + j); });
    std::vector<T> c(m * kColumns + 8);
    const void* const bs[] = {b.data()};
    void* const cs[] = {c.data()};
    EXPECT_EQ(error_of(tandem_plan_run(plan, m, a.data(), bs, cs, nullptr)), "");
    EXPECT_EQ(error_of(tandem_synchronize(p.world, nullptr)), "");
    const size_t rows = op == TANDEM_GEMM_REDUCE_SCATTER ? rows_of_pe : m;
    const auto depth = static_cast<float>(problem.k);
    size_t wrong = 0;
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < kColumns; ++j) {
        const size_t row = op == TANDEM_GEMM_REDUCE_SCATTER ? first_row + i : i;
        wrong += convert<float>(c[i * kColumns + j]) != depth * a_at(row) * b_at(first_column + j) ? 1 : 0;
      }
    EXPECT_EQ(wrong, 0U) << "op " << op << ", type " << type << ", " << m << " rows on PE " << p.pe << " of " << p.n;
  }
  EXPECT_EQ(error_of(tandem_barrier(p.world)), "");
  EXPECT_EQ(error_of(tandem_plan_destroy(plan)), "");
}

void check_all(const Peer& p) {
  for (const tandem_operator op : {TANDEM_ALL_GATHER_GEMM, TANDEM_GEMM_REDUCE_SCATTER, TANDEM_GEMM_ALL_REDUCE})
    for (const tandem_layout layout : {TANDEM_N_X_K, TANDEM_K_X_N}) {
      check_operator<bf16>(p, op, TANDEM_BF16, layout);
      check_operator<f16>(p, op, TANDEM_F16, layout);
    }
}

class EveryOperator : public ::testing::TestWithParam<int> {};

TEST_P(EveryOperator, OfThreads) { run(GetParam(), check_all); }
TEST_P(EveryOperator, OfProcesses) { run_processes(GetParam(), check_all); }

INSTANTIATE_TEST_SUITE_P(Pes, EveryOperator, ::testing::Values(1, 2, 3, 5, 8));

}  // namespace
}  // namespace tandem::c_test
