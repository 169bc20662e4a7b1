/// all_gather_gemm with a gated activation: gates and ups in one B, half as many columns in C.

#include <gtest/gtest.h>

#include <cmath>

#include "gemm/contract/activation.h"
#include "gemm/host/reference.h"
#include "operators/operator_case.h"
#include "support/host_pes.h"
#include "support/refusal.h"
#include "tandem/error.h"

namespace tandem::operator_gated_test {
namespace {

struct Gated {
  DType type;
  std::optional<DType> out_type;
  Activation activation;
  Form form;
  BLayout layout = BLayout::kNxK;
  bool two_b = false;
};
constexpr Size kM = 37, kK = 24;
constexpr float kBias = 0.25F, kScale = 0.5F;

float gate_at(Size column, Size l) { return static_cast<float>(test::element(1, 1, column, l)) / 8; }
float up_at(Size column, Size l) { return static_cast<float>(test::element(2, 1, column, l)) / 8; }
float input(Size row, Size l) { return static_cast<float>(test::element(0, 0, row, l)); }

/// Returns this PE's columns of B (gates and ups), in the layout of the options.
template <class T>
std::vector<T> weights(Range columns, BLayout layout) {
  const Size n = columns.size();
  const auto part = [&](const auto& at) {
    std::vector<T> all(static_cast<std::size_t>(n * kK));
    for (Size j = 0; j < n; ++j)
      for (Size l = 0; l < kK; ++l)
        all[static_cast<std::size_t>(layout == BLayout::kNxK ? j * kK + l : l * n + j)] =
            convert<T>(at(columns.begin + j, l));
    return all;
  };
  const std::vector<T> gates = part(gate_at), ups = part(up_at);
  std::vector<T> b(static_cast<std::size_t>(2 * n * kK));
  if (layout == BLayout::kNxK) {
    interleave_gates(gates.data(), ups.data(), n, kK * Size{sizeof(T)}, b.data());
  } else {
    for (Size l = 0; l < kK; ++l)
      interleave_gates(gates.data() + l * n, ups.data() + l * n, n, Size{sizeof(T)}, b.data() + 2 * l * n);
  }
  return b;
}

template <class T, class Out>
Size wrong_of(World& world, const Gated& test) {
  const Size n = 24 * world.num_pes();  // columns of C
  const Range own = split(n, world.num_pes())[world.pe()];
  OperatorOptions o{.m = kM, .n = 2 * n, .k = kK, .type = test.type, .out_type = test.out_type};
  o.b_layout = test.layout;
  o.activation = test.activation;
  o.form = test.form;
  o.tile_m = 16;
  o.tile_n = 32;
  if (test.two_b) o.ns = {o.n, o.n}, o.n *= 2;
  const Range rows = split(kM, world.num_pes())[world.pe()];
  const auto room = [&](Size bytes) { return world.heap().allocate_local<std::byte>(bytes, "matrix"); };
  const auto put = [&](const auto& values) {
    const auto bytes = static_cast<Size>(values.size() * sizeof(values[0]));
    std::byte* const memory = room(bytes);
    world.copy_in(memory, values.data(), bytes);
    return memory;
  };
  std::vector<T> a;
  for (Size row = rows.begin; row < rows.end; ++row)
    for (Size l = 0; l < kK; ++l) a.push_back(convert<T>(input(row, l)));
  const DType bias_type = size_of(o.result_type()) == 1 ? DType::kBF16 : o.result_type();
  const std::vector<const void*> b(test.two_b ? 2 : 1, put(weights<T>(own, test.layout)));
  const void* const bias_values = dispatch(bias_type, [&]<class B>() -> const void* {
    return put(std::vector<B>(static_cast<std::size_t>(2 * own.size()), convert<B>(kBias)));
  });
  const std::vector<const void*> bias(b.size(), bias_values);
  std::vector<void*> c;
  for (std::size_t i = 0; i < b.size(); ++i) c.push_back(room(kM * own.size() * Size{sizeof(Out)}));
  const auto* const scale = reinterpret_cast<const float*>(put(std::vector<float>{kScale}));
  OperatorCall call{.m = kM, .a = put(a), .b = b, .c = c, .bias = bias};
  if (test.type == DType::kE4M3) call.a_scale = scale;
  const auto plan = make_operator(world, Operator::kAllGatherGemm, o);
  Stream stream = world.make_stream("main");
  plan->run(stream, call);
  stream.synchronize();
  Size wrong = 0;
  for (void* const result : c) {
    std::vector<Out> got(static_cast<std::size_t>(kM * own.size()));
    world.copy_out(got.data(), result, static_cast<Size>(got.size() * sizeof(Out)));
    for (Size i = 0; i < kM; ++i)
      for (Size j = 0; j < own.size(); ++j) {
        float gate = 0, up = 0;
        for (Size l = 0; l < kK; ++l) {
          gate += input(i, l) * gate_at(own.begin + j, l);
          up += input(i, l) * up_at(own.begin + j, l);
        }
        const float scaled = test.type == DType::kE4M3 ? kScale : 1;
        const float want = gated(test.activation, gate * scaled + kBias, up * scaled + kBias);
        const float is = convert<float>(got[static_cast<std::size_t>(i * own.size() + j)]);
        const double unit = rounding_unit(o.result_type());
        wrong += !(std::abs(is - want) <= 1.01 * unit * std::abs(want) + 1e-3);
      }
  }
  return wrong;
}

Size wrong(World& world, const Gated& test) {
  if (test.type == DType::kF32) return wrong_of<float, float>(world, test);
  if (test.type == DType::kBF16) return wrong_of<bf16, bf16>(world, test);
  if (test.out_type) return wrong_of<fp8_e4m3, fp8_e4m3>(world, test);
  return wrong_of<fp8_e4m3, bf16>(world, test);
}

constexpr Gated kCases[] = {
    {DType::kBF16, {}, Activation::kSwiGlu, Form::kOverlapped},
    {DType::kBF16, {}, Activation::kGeGlu, Form::kSequential, BLayout::kKxN},
    {DType::kF32, {}, Activation::kSwiGlu, Form::kDecomposed, BLayout::kNxK, true},
    {DType::kE4M3, {}, Activation::kSwiGlu, Form::kSuitable},
    {DType::kE4M3, DType::kE4M3, Activation::kGeGlu, Form::kOverlapped},
    {DType::kF32, {}, Activation::kGeGlu, Form::kOverlapped, BLayout::kKxN, true},
};

TEST(OperatorGated, IsRightInTheSimulator) {
  for (const Gated& test : kCases)
    for (const int pes : {1, 2, 3}) {
      Simulation simulation(load_machine("h200x4"), pes);
      simulation.run([&](World& world) {
        EXPECT_EQ(wrong(world, test), 0) << name(test.type) << " " << name(test.form) << " on " << pes << " PEs";
      });
    }
}

TEST(OperatorGated, IsRightOnCpus) {
  test::HostPes(2, {.timeout_s = 60, .arrival_timeout_s = 120}).run([&](World& world) {
    for (const Gated& gated_case : kCases)
      EXPECT_EQ(wrong(world, gated_case), 0) << name(gated_case.type) << " " << name(gated_case.form);
    world.barrier();
  });
}

std::string refusal(Operator op, const OperatorOptions& options) {
  return test::refusal_of([&](World& world) { make_operator(world, op, options); });
}

TEST(OperatorGated, PairsThatCannotBeAreRefused) {
  OperatorOptions o{.m = 8, .n = 64, .k = 8, .activation = Activation::kSwiGlu};
  EXPECT_EQ(refusal(Operator::kAllGatherGemm, o), "");
  EXPECT_EQ(refusal(Operator::kGemmAllReduce, o),
            "activation: a gated one given, allowed for gemm_all_reduce are the others (partial sums travel)");
  o.n = 48;
  EXPECT_EQ(refusal(Operator::kAllGatherGemm, o),
            "n: 48 given, allowed is with a gated activation what gives each of 2 PEs a multiple of 16; PE 0 has 24");
  o.n = 64;
  o.tile_n = 24;
  EXPECT_EQ(refusal(Operator::kAllGatherGemm, o),
            "tile_n: 24 given, allowed is a multiple of 16 with a gated activation");
}

}  // namespace
}  // namespace tandem::operator_gated_test
