#include "tools/tandem/gpu/measure/operator_benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gemm/contract/activation.h"
#include "gemm/host/reference.h"
#include "tandem/error.h"
#include "tools/tandem/data/block_scales.h"
#include "tools/tandem/data/normed_data.h"
#include "tools/tandem/options/parallel.h"

namespace tandem::cli {

namespace {

constexpr Size kSamples = 48;  // rows and columns whose elements are checked
constexpr std::uint64_t kStreamOfA = 0, kStreamOfB = 1;

bool is_part(Form form) { return form == Form::kComputeOnly || form == Form::kCommunicationOnly; }

/// Returns the columns of the product behind columns of C: with a gated activation as interleave_gates lays them out.
std::vector<Size> multiplied_columns(Activation activation, const std::vector<Size>& columns) {
  if (!is_gated(activation)) return columns;
  constexpr Size kPairs = 2 * kGateGroup;
  std::vector<Size> all;
  for (Size i = 0; i < 2 * static_cast<Size>(columns.size()); ++i) {
    const Size in_c = columns[static_cast<std::size_t>(i / kPairs * kGateGroup + i % kGateGroup)];
    all.push_back(column_of_gate(in_c) + (i % kPairs < kGateGroup ? 0 : kGateGroup));
  }
  return all;
}

/// Returns up to kSamples places of a range, including its ends.
std::vector<Size> samples(Range range) {
  const Size count = std::min(range.size(), kSamples);
  std::vector<Size> places;
  for (Size i = 0; i < count; ++i)
    places.push_back(range.begin + (count < 2 ? 0 : i * (range.size() - 1) / (count - 1)));
  return places;
}

}  // namespace

struct OperatorBenchmark::Program {
  std::string name;                   ///< empty: Tandem's plan
  const std::byte* result = nullptr;  ///< null: not checked
  std::function<void()> call;
  std::unique_ptr<TimedCalls> timed;
  std::vector<double> us;
};

/// Returns the bytes of this PE's C.
Size OperatorBenchmark::c_bytes(const OperatorShard& shard) const {
  return columns_after(run_.options.activation, shard.c_elements()) * size_of(run_.options.c_type());
}

Size operator_heap(const OperatorRun& run, int pes) {
  const auto& [m, n, k] = run.shape();
  const bool gather = run.op == Operator::kAllGatherGemm;
  const Size own = gather ? ceil_div(m, pes) * k + ceil_div(n, pes) * (k + m) : (m + n) * ceil_div(k, pes) + m * n;
  // The sequential plan and the two alternating overlapped plans each have gathered data, or partial sums, staging and
  // sums.
  const Size staged = 3 * (gather ? m * k : 4 * m * n) + (run.options.norm.any() ? 6 * (gather ? m * k : m * n) : 0);
  return (own + staged + (staged >> 3)) * size_of(run.options.result_type()) + (Size{1} << 30);
}

int calls_of(const OperatorRun& run, int pes) {
  constexpr double kFlopsPerUs = 680e6, kRoundUs = 60e3, kMost = 1000;
  const auto& [m, n, k] = run.shape();
  const double us = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / pes / kFlopsPerUs;
  return static_cast<int>(std::clamp(kRoundUs / std::max(us, 1.0), 2.0, kMost));
}

OperatorBenchmark::OperatorBenchmark(World& world, Shared& shared, NcclPeer* nccl, const GpuMethod& method,
                                     const OperatorRun& run)
    : world_(world),
      shared_(shared),
      nccl_(nccl),
      method_(method),
      run_(run),
      stream_(world.make_stream("measured")),
      cuda_stream_(static_cast<cudaStream_t>(stream_.native())),
      extras_(world, run_, method.seed) {
  const OperatorShard shard = operator_shard(run.op, run.shape(), world.num_pes(), world.pe());
  const Size element = size_of(run.options.type);
  a_ = world.heap().allocate_local<std::byte>(shard.a_elements() * size_of(run.a_type()), "a");
  b_ = world.heap().allocate_local<std::byte>(shard.b_elements() * element, "b");
  const Size c_element = size_of(run.options.result_type());
  c_ = world.heap().allocate_local<std::byte>(c_bytes(shard), "c");
  plan_ = make_operator(world, run.op, run.options);
  if (!is_part(run.options.form) && plan_->options().form != Form::kSequential) {
    OperatorOptions sequential = run.options;
    sequential.form = Form::kSequential;
    sequential_ = make_operator(world, run.op, sequential);
  }
  if (run.options.b_layout == BLayout::kNxK)
    fill(run.options.type, b_, kStreamOfB, run.options.k, shard.b_rows, shard.b_columns);
  else
    fill(run.options.type, b_, kStreamOfB, run.options.n, shard.b_columns, shard.b_rows);
  if (nccl == nullptr) return;
  cublas_ = std::make_unique<cuda::CublasLt>();
  const Size gathered = run.op == Operator::kAllGatherGemm ? run.options.m * run.options.k : 0;
  cuda::check(cudaMalloc(&whole_, static_cast<std::size_t>(std::max<Size>(gathered * element, 1))), "cudaMalloc");
  const Size product = run.options.m * shard.c_columns.size();
  cuda::check(cudaMalloc(&product_, static_cast<std::size_t>(std::max<Size>(product * c_element, 1))), "cudaMalloc");
}

OperatorBenchmark::~OperatorBenchmark() {
  cudaFree(whole_);
  cudaFree(product_);
}

void OperatorBenchmark::fill(DType type, std::byte* to, std::uint64_t stream, Size width, Range rows,
                             Range columns) const {
  dispatch(type, [&]<class T>() {
    if constexpr (is_float<T>) {
      const NormalData<T> data(method_.seed);
      const Size rows_at_once = std::max<Size>(1, (Size{64} << 20) / std::max<Size>(1, columns.size()));
      std::vector<T> values;
      for (Size first = rows.begin; first < rows.end; first += rows_at_once) {
        const Size count = std::min(rows_at_once, rows.end - first);
        values.resize(static_cast<std::size_t>(count * columns.size()));
        for_chunks(count, 16, [&](Range part) {
          for (Size row = part.begin; row < part.end; ++row)
            data.fill(stream, (first + row) * width + columns.begin, values.data() + row * columns.size(),
                      columns.size());
        });
        const Size bytes = static_cast<Size>(values.size() * sizeof(T));
        world_.copy_in(to + (first - rows.begin) * columns.size() * Size{sizeof(T)}, values.data(), bytes);
      }
    } else {
      throw InvalidArgument(fmt::format("--dtype: {} given, operators take floating-point types", name(type)));
    }
  });
}

void OperatorBenchmark::add_peers(std::vector<Program>& programs, const Local& local) {
  const bool gather = run_.op == Operator::kAllGatherGemm;
  const void* const a = gather ? whole_ : a_;
  auto* const product = static_cast<std::byte*>(product_);
  if (gather)
    fill(run_.options.type, static_cast<std::byte*>(whole_), kStreamOfA, run_.options.k, {0, local.gemm.m},
         {0, run_.options.k});
  cublas_->prepare(local.gemm);
  const auto multiply = [this, a, product, gemm = local.gemm] { cublas_->run(gemm, a, b_, product, cuda_stream_); };
  programs.push_back({"cublas", nullptr, multiply, nullptr, {}});
  if (local.gemm.m % world_.num_pes() != 0 && run_.op != Operator::kGemmAllReduce) return;  // NCCL needs equal parts
  CollectiveCall call;
  call.type = gather ? run_.options.type : run_.options.result_type();
  call.op = ReduceOp::kSum;
  call.pes = world_.num_pes();
  call.collective = gather ? Collective::kAllGather : Collective::kReduceScatter;
  if (run_.op == Operator::kGemmAllReduce) call.collective = Collective::kAllReduce;
  call.count = gather ? local.shard.a_elements() : local.shard.c_elements();
  programs.push_back({"nccl+cublas",
                      gather ? product : c_,
                      [this, call, multiply, gather, product] {
                        if (gather) nccl_->run(call, a_, whole_, cuda_stream_);
                        multiply();
                        if (!gather) nccl_->run(call, product, c_, cuda_stream_);
                      },
                      nullptr,
                      {}});
  programs.back().call();  // NCCL cannot connect during a capture
  stream_.synchronize();
}

GpuOperator OperatorBenchmark::measure(Size m) {
  Local local;
  local.shard = operator_shard(run_.op, {m, run_.options.n, run_.options.k}, world_.num_pes(), world_.pe());
  const bool gather = run_.op == Operator::kAllGatherGemm;
  local.gemm = {m,
                local.shard.c_columns.size(),
                local.shard.a_columns.size(),
                run_.options.type,
                run_.options.result_type(),
                run_.options.b_layout};
  fill(run_.a_type(), a_, kStreamOfA, run_.options.k, local.shard.a_rows, local.shard.a_columns);
  extras_.fill(m);
  if (gather) local.gemm.k = run_.options.k;
  std::vector<Program> programs;
  const bool meaningful = !is_part(run_.options.form);
  const auto add = [&](const char* name, const std::byte* result, OperatorPlan& plan) {
    programs.push_back(
        {name, result, [this, m, &plan] { plan.run(stream_, extras_.call(m, a_, b_, c_)); }, nullptr, {}});
  };
  add("", meaningful ? c_ : nullptr, *plan_);
  if (sequential_) add("sequential", c_, *sequential_);
  if (nccl_ != nullptr) add_peers(programs, local);
  OperatorRun run = run_;
  run.options.m = m;
  const int calls = std::min(calls_of(run, world_.num_pes()), method_.calls);
  for (Program& program : programs)
    program.timed = std::make_unique<TimedCalls>(stream_, program.call, calls, method_.graph);
  GpuOperator measured;
  measured.strategy = plan_->strategy(m);
  measured.choices = plan_->choices();
  measured.m = m;
  std::map<std::string, bool> right;
  for (Program& program : programs) {
    const Check result = check(program, local);
    right[program.name] = result.correct();
    if (program.name.empty() || (program.name == "sequential" && !result.correct())) measured.check = result;
  }
  constexpr int kRounds = 5;
  for (int round = -method_.warmups; round < method_.rounds.value_or(kRounds); ++round)
    for (Program& program : programs) {
      world_.barrier();
      const double us = shared_.largest(program.timed->run());
      if (round >= 0) program.us.push_back(us);
    }
  for (const Program& program : programs) {
    const double us = median(program.us);
    const auto [least, most] = std::minmax_element(program.us.begin(), program.us.end());
    if (program.name.empty()) {
      measured.us = us;
      measured.spread = (*most - *least) / us;
    } else if (program.name == "sequential") {
      measured.sequential_us = us;
    } else if (right[program.name]) {
      measured.peers[program.name] = us;
    }
  }
  return measured;
}

/// Checks the result of a round's last call.
Check OperatorBenchmark::check(Program& program, const Local& local) {
  Check own;
  own.expectation = "nothing";
  const Size bytes = c_bytes(local.shard);
  constexpr int nan_in_every_type = 0xFF;
  cuda::check(cudaMemsetAsync(c_, nan_in_every_type, static_cast<std::size_t>(bytes), cuda_stream_), "cudaMemset");
  stream_.synchronize();
  world_.barrier();
  program.timed->run();
  world_.barrier();
  if (program.result != nullptr) check_samples(program.result, local, own);
  return shared_.over_all(own);
}

void OperatorBenchmark::check_samples(const std::byte* c, const Local& local, Check& check) const {
  dispatch(run_.options.type, [&]<class T>() {
    if constexpr (is_float<T>) check_typed<T>(c, local, check);
  });
}

/// Returns rows of A as they are in memory.
std::vector<std::byte> OperatorBenchmark::given_a(const std::vector<Size>& rows) const {
  const DType type = run_.a_type();
  const Size k = run_.options.k, bytes = k * size_of(type);
  std::vector<std::byte> a(rows.size() * static_cast<std::size_t>(bytes));
  dispatch(type, [&]<class T>() {
    if constexpr (is_float<T>)
      for (std::size_t i = 0; i < rows.size(); ++i)
        NormalData<T>(method_.seed)
            .fill(kStreamOfA, rows[i] * k, reinterpret_cast<T*>(a.data()) + static_cast<Size>(i) * k, k);
  });
  return a;
}

/// Returns the elements of C in these rows and columns, counted in the columns of C.
std::vector<std::byte> OperatorBenchmark::copied(const std::byte* c, const Local& local, const std::vector<Size>& rows,
                                                 const std::vector<Size>& columns) const {
  const Size element = size_of(run_.options.c_type());
  const Activation activation = run_.options.activation;
  const Size first = columns_after(activation, local.shard.c_columns.begin);
  std::vector<std::byte> row(
      static_cast<std::size_t>(columns_after(activation, local.shard.c_columns.size()) * element));
  std::vector<std::byte> found(rows.size() * columns.size() * static_cast<std::size_t>(element));
  std::byte* next = found.data();
  for (const Size at : rows) {
    const auto bytes = static_cast<Size>(row.size());
    world_.copy_out(row.data(), c + (at - local.shard.c_rows.begin) * bytes, bytes);
    for (const Size column : columns) {
      std::memcpy(next, row.data() + (column - first) * element, static_cast<std::size_t>(element));
      next += element;
    }
  }
  return found;
}

template <class T>
void OperatorBenchmark::check_typed(const std::byte* c, const Local& local, Check& check) const {
  constexpr std::size_t kNormedRows = 4;  // a norm needs whole rows
  const OperatorOptions& o = run_.options;
  const Range of_c{columns_after(o.activation, local.shard.c_columns.begin),
                   columns_after(o.activation, local.shard.c_columns.end)};
  std::vector<Size> rows = samples(local.shard.c_rows);
  if (norms_sums(run_)) rows.resize(std::min(rows.size(), kNormedRows));
  const std::vector<Size> in_c = norms_sums(run_) ? all_of(of_c) : samples(of_c);
  const std::vector<Size> columns = multiplied_columns(o.activation, in_c);
  const auto height = static_cast<Size>(rows.size()), width = static_cast<Size>(columns.size());
  const Size k = o.k;
  if (height * width == 0) return;
  const NormalData<T> data(method_.seed);
  const std::vector<std::byte> a = given_a(rows);
  std::vector<T> b(static_cast<std::size_t>(width * k));
  for_chunks(width, 16, [&](Range part) {
    for (Size j = part.begin; j < part.end; ++j) {
      const Size column = columns[static_cast<std::size_t>(j)];
      if (o.b_layout == BLayout::kNxK) data.fill(kStreamOfB, column * k, b.data() + j * k, k);
      for (Size l = 0; l < k && o.b_layout == BLayout::kKxN; ++l)
        b[static_cast<std::size_t>(j * k + l)] = data(kStreamOfB, l * o.n + column);
    }
  });
  const std::vector<std::byte> found = copied(c, local, rows, in_c);
  const double of_sums = operator_tolerance(run_.op, o.result_type(), k, world_.num_pes()) +
                         (o.fast_accumulation && world_.on_gpus() ? fast_accumulation_tolerance(k) : 0);
  const double tolerance = o.norm.any() ? normed_tolerance(run_, of_sums) : of_sums;
  check.expectation = fmt::format("within {:.1e}", tolerance);
  const std::byte* a_bytes = a.data();
  const auto* b_bytes = reinterpret_cast<const std::byte*>(b.data());
  std::vector<float> wide_a, wide_b;
  if (o.norm.any() && !norms_sums(run_)) wide_a = normed_rows(run_, method_.seed, rows, a_bytes);
  const std::vector<std::byte> normed = rounded(o.type, wide_a);
  if (!normed.empty()) a_bytes = normed.data();
  const bool wide = o.block_scales || run_.quantises_a();
  if (wide) {
    const BlockScales scales(run_, world_.num_pes(), method_.seed);
    if (!run_.quantises_a()) wide_a = scales.scaled_a(rows, a_bytes);
    wide_b = o.block_scales ? scales.scaled_b(columns, b_bytes) : widened(o.type, b_bytes, width * k);
    a_bytes = reinterpret_cast<const std::byte*>(wide_a.data());
    b_bytes = reinterpret_cast<const std::byte*>(wide_b.data());
  }
  const DType type = wide ? DType::kF32 : o.type;
  const Mismatch mismatch =
      norms_sums(run_)
          ? check_normed(run_, method_.seed, {rows, type, a_bytes, b_bytes, BLayout::kNxK, found.data()}, tolerance)
          : check_gemm(a_bytes, k, b_bytes, k, BLayout::kNxK, found.data(), static_cast<Size>(in_c.size()), height,
                       width, k, type, o.result_type(), tolerance, epilogue_of(run_, method_.seed, rows, columns));
  check.checked += mismatch.checked;
  check.wrong += mismatch.wrong;
  if (!std::isfinite(mismatch.max_rel_error)) check.max_error.reset();
  if (check.max_error) check.max_error = std::max(*check.max_error, mismatch.max_rel_error);
}

}  // namespace tandem::cli
