// Data of the collectives that reduce.
//
// Exact data: integers are random bits, since their sums and products wrap in any order. Floating-point values are
// chosen so that all partial and complete sums (or products) are exact. For sums they are small whole numbers, non-zero
// on so few PEs that the sum of magnitudes fits the significand. For products they are powers of two on a few PEs and 1
// on the others.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>

#include "tandem/error.h"
#include "tools/tandem/data/collective_data_kinds.h"
#include "tools/tandem/data/data.h"
#include "tools/tandem/data/verification.h"
#include "tools/tandem/options/parallel.h"

namespace tandem::cli {
namespace {

constexpr Size kFilledElements = 1 << 14;
constexpr std::uint64_t kCommon = 1U << 31;  // the stream of values that all PEs share

/// Bits of the significand, the hidden one included.
template <class T>
constexpr int significand_bits() {
  if constexpr (std::is_same_v<T, double>) return 53;
  if constexpr (std::is_same_v<T, float>) return 24;
  if constexpr (std::is_same_v<T, f16>) return 11;
  if constexpr (std::is_same_v<T, bf16>) return 8;
  if constexpr (std::is_same_v<T, fp8_e4m3>) return 4;
  return 3;
}

template <class T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

/// Input values by PE and index.
template <class T>
class Inputs {
 public:
  explicit Inputs(const CollectiveCall& call) : call_(call), normal_(call.seed) {
    // Whole numbers up to 2^bits are exact. Under premul_sum values are doubled on some PEs.
    const Size budget = Size{1} << std::min(significand_bits<T>(), 30);
    const Size doubled = call.op == ReduceOp::kPremulSum ? 2 : 1;
    sum_pes_ = static_cast<int>(std::min<Size>(call.pes, budget / doubled));
    largest_ = std::min<Size>(budget / doubled / sum_pes_, 1 << 16);
    extreme_ = std::min<Size>(budget, 1 << 16);
  }

  T operator()(int pe, Size index) const {
    if constexpr (!is_float<T>) {
      return static_cast<T>(own_bits(pe, index));
    } else {
      return call_.data == DataKind::kNormal ? normal_(static_cast<std::uint64_t>(pe), index) : exact(pe, index);
    }
  }

 private:
  std::uint64_t own_bits(int pe, Size index) const {
    return random_bits(call_.seed, static_cast<std::uint64_t>(pe), static_cast<std::uint64_t>(index));
  }
  /// Returns whether `pe` is one of the `active` consecutive PEs, from a random one on, whose values are not neutral.
  bool is_active(int pe, Size index, int active) const {
    if (active == call_.pes) return true;
    const std::uint64_t bits = random_bits(call_.seed, kCommon, static_cast<std::uint64_t>(index));
    const int first = static_cast<int>(bits % static_cast<std::uint64_t>(call_.pes));
    return (pe - first + call_.pes) % call_.pes < active;
  }
  static T whole(std::uint64_t bits, Size largest) {
    return convert<T>(
        static_cast<double>(static_cast<Size>(bits % static_cast<std::uint64_t>(2 * largest + 1)) - largest));
  }
  T exact(int pe, Size index) const {
    constexpr int prod_pes = 4;  // 2^4 and 2^-4 are within the range of every type
    constexpr double factors[] = {2, 0.5, -1, -2};
    const std::uint64_t bits = own_bits(pe, index);
    if (call_.op == ReduceOp::kMin || call_.op == ReduceOp::kMax) return whole(bits, extreme_);
    if (call_.op == ReduceOp::kProd)
      return convert<T>(is_active(pe, index, std::min(prod_pes, call_.pes)) ? factors[bits % 4] : 1.0);
    return is_active(pe, index, sum_pes_) ? whole(bits, largest_) : convert<T>(0.0);
  }

  CollectiveCall call_;
  NormalData<std::conditional_t<is_float<T>, T, float>> normal_;
  int sum_pes_ = 1;
  Size largest_ = 1;
  Size extreme_ = 1;
};

template <class T>
class ReducedData final : public CollectiveData {
 public:
  explicit ReducedData(const CollectiveCall& call) : CollectiveData(call), inputs_(call) {
    if (call.data == DataKind::kNormal && !is_float<T>)
      throw InvalidArgument(fmt::format("--data: normal given, but {} is an integer type", name(call.type)));
    if (call.data == DataKind::kNormal && call.op == ReduceOp::kProd)
      throw InvalidArgument("--data: normal given, but its products underflow; --op prod takes exact data");
  }

  void fill_input(int pe, std::byte* in) const override {
    T* const to = reinterpret_cast<T*>(in);
    for_chunks(input_elements(call_.collective, call_.count, call_.pes, pe, call_.root), kFilledElements,
               [&](Range piece) {
                 for (Size i = piece.begin; i < piece.end; ++i) to[i] = inputs_(pe, i);
               });
  }

  void check_part(int pe, Range part, const std::byte* out, Check& check) const override {
    const bool exact = call_.data == DataKind::kExact;
    check.expectation = exact ? "bit for bit" : fmt::format("within {:.1e} of the values' magnitude", tolerance());
    const T* const values = reinterpret_cast<const T*>(out);
    VerificationSum sum(check);
    for_chunks(part.size(), kFilledElements, [&](Range piece) {
      Verification verification;
      for (Size i = piece.begin; i < piece.end; ++i) {
        const CollectiveSource source = source_of(pe, part.begin + i);
        exact ? add_exact(verification, source, values[i]) : add_normal(verification, source, values[i]);
      }
      sum.add(verification);
    });
  }

 private:
  using A = Accumulator<T>;

  T expected(const CollectiveSource& source) const {
    A total{};
    for (int i = 0; i < source.pes; ++i) {
      const int pe = source.first + i;
      A value = convert<A>(inputs_(pe, source.index));
      if (call_.op == ReduceOp::kPremulSum) value = premultiply(value, convert<A>(scale(pe)));
      total = i == 0 ? value : apply(call_.op, total, value);
    }
    return convert<T>(finish(call_.op, total, source.pes));
  }

  void add_exact(Verification& verification, const CollectiveSource& source, T got) const {
    const T want = expected(source);
    const bool equal = bits_of(got) == bits_of(want);
    const double wanted = convert<double>(want);
    verification.add(equal ? 0 : std::abs(convert<double>(got) - wanted) / std::max(std::abs(wanted), 1.0), !equal);
  }

  /// Every value is rounded to T at most once by premultiplication, once in each step, and once at the end.
  double tolerance() const { return (call_.pes + 2) * std::ldexp(1.0, -significand_bits<T>()); }

  void add_normal(Verification& verification, const CollectiveSource& source, T got) const {
    double total = 0;
    double magnitude = 0;
    for (int i = 0; i < source.pes; ++i) {
      const int pe = source.first + i;
      double value = convert<double>(inputs_(pe, source.index));
      if (call_.op == ReduceOp::kPremulSum) value *= scale(pe);
      magnitude += std::abs(value);
      total = i == 0 ? value : apply(call_.op, total, value);
    }
    total = finish(call_.op, total, source.pes);
    if (call_.op == ReduceOp::kAvg) magnitude /= source.pes;
    const double error = std::abs(convert<double>(got) - total) / std::max(magnitude, smallest_normal());
    verification.add(error, !(error <= tolerance()));
  }

  /// Below this magnitude the precision of the type decreases.
  static double smallest_normal() {
    if constexpr (std::is_same_v<T, fp8_e4m3>) return std::ldexp(1.0, -6);
    if constexpr (std::is_same_v<T, fp8_e5m2> || std::is_same_v<T, f16>) return std::ldexp(1.0, -14);
    return std::ldexp(1.0, -126);
  }

  Inputs<T> inputs_;
};

}  // namespace

std::unique_ptr<CollectiveData> make_reduced_data(const CollectiveCall& call) {
  return dispatch(call.type,
                  [&]<class T>() -> std::unique_ptr<CollectiveData> { return std::make_unique<ReducedData<T>>(call); });
}

}  // namespace tandem::cli
