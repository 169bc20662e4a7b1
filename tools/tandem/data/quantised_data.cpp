// Data of the collectives with wire formats of 8 bits: random normal values, whose results are compared bit for bit.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "collectives/reference/quantised.h"
#include "tandem/error.h"
#include "tools/tandem/data/collective_data_kinds.h"
#include "tools/tandem/data/data.h"
#include "tools/tandem/data/verification.h"
#include "tools/tandem/options/parallel.h"

namespace tandem::cli {
namespace {

using kernels::kWireGroup;

constexpr Size kPieceElements = 1 << 14;

template <class T>
class QuantisedData final : public CollectiveData {
 public:
  explicit QuantisedData(const CollectiveCall& call)
      : CollectiveData(call),
        inputs_(call.seed),
        quantised_{call.collective, call.wire, call.pes, call.count, [this](int pe, Size index) {
                     return convert<float>(inputs_(static_cast<std::uint64_t>(pe), index));
                   }} {}

  void fill_input(int pe, std::byte* in) const override {
    T* const to = reinterpret_cast<T*>(in);
    for_chunks(input_elements(call_.collective, call_.count, call_.pes, pe, call_.root), kPieceElements,
               [&](Range piece) {
                 inputs_.fill(static_cast<std::uint64_t>(pe), piece.begin, to + piece.begin, piece.size());
               });
  }

  void check_part(int pe, Range part, const std::byte* out, Check& check) const override {
    check.expectation = "bit for bit";
    if (part.empty()) return;
    const Size groups = ceil_div(call_.count, kWireGroup);  // of each PE's part
    const auto group_of = [&](Size i) { return i / call_.count * groups + i % call_.count / kWireGroup; };
    const Range all{group_of(part.begin), group_of(part.end - 1) + 1};
    VerificationSum sum(check);
    for_chunks(all.size(), kPieceElements / kWireGroup, [&](Range piece) {
      Verification verification;
      for (Size i = piece.begin; i < piece.end; ++i) {
        const Size group = all.begin + i;
        add(verification, pe, group / groups * call_.count + group % groups * kWireGroup, part,
            reinterpret_cast<const T*>(out));
      }
      sum.add(verification);
    });
  }

 private:
  /// Compares the elements of the group from `first` on that lie in `part`, whose first element is *out.
  void add(Verification& verification, int pe, Size first, Range part, const T* out) const {
    const auto want = kernels::quantised_group(quantised_, pe, first).values;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const Size at = first + static_cast<Size>(i);
      if (at < part.begin || at >= part.end) continue;
      const T expected = convert<T>(want[i]);
      const T got = out[at - part.begin];
      using Bits = std::array<std::byte, sizeof(T)>;  // a NaN equals itself
      const bool equal = std::bit_cast<Bits>(got) == std::bit_cast<Bits>(expected);
      const double wanted = convert<double>(expected);
      verification.add(equal ? 0 : std::abs(convert<double>(got) - wanted) / std::max(std::abs(wanted), 1.0), !equal);
    }
  }

  NormalData<T> inputs_;
  kernels::QuantisedCall quantised_;
};

}  // namespace

std::unique_ptr<CollectiveData> make_quantised_data(const CollectiveCall& call) {
  if (call.type == DType::kF32) return std::make_unique<QuantisedData<float>>(call);
  if (call.type == DType::kF16) return std::make_unique<QuantisedData<f16>>(call);
  if (call.type == DType::kBF16) return std::make_unique<QuantisedData<bf16>>(call);
  throw InvalidArgument(fmt::format("type: {} given to {} with {} on the wire, allowed are f32, f16 and bf16",
                                    name(call.type), name(call.collective), name(call.wire)));
}

}  // namespace tandem::cli
