#pragma once
/// Values as codes of 8 bits with a scale for each group, on their way between PEs.
///
/// A scale has 16 significant bits, so its product with a code is exact in f32. Sums of such products thus have the
/// same bits with and without fused multiply-add.

#include <cmath>

#include "collectives/steps/scale_groups.h"
#include "tandem/collectives.h"

namespace tandem::kernels {

/// The greatest code of a format, and the code of a quotient before its conversion.
template <class Code>
struct CodeFormat;
template <>
struct CodeFormat<fp8_e4m3> {
  static constexpr float kGreatest = 448;
  TANDEM_DEVICE static float rounded(float x) { return x; }  // the conversion rounds to the nearest
};
template <>
struct CodeFormat<std::int8_t> {
  static constexpr float kGreatest = 127;
  TANDEM_DEVICE static float rounded(float x) { return rintf(x); }
};

/// Returns the scale of values up to `greatest`; see WireFormat.
template <class Code>
TANDEM_DEVICE float wire_scale(float greatest) {
  constexpr std::uint32_t kNan = 0x7FC0'0000, kDropped = 0xFF;
  if (!(greatest - greatest == 0)) return impl::float_of(kNan);
  if (greatest < 1e-30F) return 1.0F;
  return impl::float_of((impl::bits_of(greatest / CodeFormat<Code>::kGreatest) + kDropped) & ~kDropped);
}

/// A place for codes and their scales on every PE.
template <class Code>
struct CodePlace {
  Symm<Code> codes;
  Symm<float> scales;
};

/// The staging of a plan: a place for each block and PE, in slots that rounds use cyclically.
struct CodeStaging {
  Symm<std::byte> codes;
  Symm<float> scales;
  Signals arrived;  // [block][PE]: the round whose codes from that PE are here
  Size each = 0;    // elements of a place: whole groups
  int slots = 1;

  /// `most`: elements from one PE to another in the largest call; `most_each`: in a round.
  template <class Setup>
  static CodeStaging of(Setup& setup, Size most, int slots, const char* what, Size most_each = Size{32} << 10) {
    constexpr Size kBudget = Size{32} << 20;
    const Size places = Size{slots} * setup.blocks() * setup.pes();
    CodeStaging staging;
    staging.slots = slots;
    staging.each = min(round_up(ceil_div(most, setup.blocks()), kScaleGroup), min(most_each, kBudget / places));
    staging.each = max(kScaleGroup, staging.each / kScaleGroup * kScaleGroup);
    staging.codes = setup.template symmetric<std::byte>(places * staging.each, what);
    staging.scales = setup.template symmetric<float>(places * staging.each / kScaleGroup, "scales");
    staging.arrived = setup.slots("arrived");
    return staging;
  }

  /// Returns the place of this block for codes of PE `from`.
  template <class Code, class Block>
  TANDEM_DEVICE CodePlace<Code> place(const Block& block, Epoch round, int from) const {
    const Size slot = static_cast<Size>(round % static_cast<Epoch>(slots));
    const Size first = ((slot * block.count() + block.index()) * block.num_pes() + from) * each;
    return {codes.template as<Code>() + first, scales + first / kScaleGroup};
  }
};

/// One PE, as a list like Block::pes_from_self.
struct OnePe {
  int pe;
  TANDEM_DEVICE const int* begin() const { return &pe; }
  TANDEM_DEVICE const int* end() const { return &pe + 1; }
};

/// Stores the codes of `values` and their scales at element `at` of the place on each PE of `pes`. Returns the values
/// of these codes.
template <class Code, class Block, class Values, class Pes>
TANDEM_DEVICE auto store_codes(Block& block, const Values& values, const CodePlace<Code>& to, Size at, const Pes& pes) {
  const auto scales =
      block.template group_greatest<kScaleGroup>(values.map([](float x) { return fabsf(x); })).map([](float greatest) {
        return wire_scale<Code>(greatest);
      });
  const auto codes = values.zip(
      scales, [](float x, float scale) { return convert<Code>(CodeFormat<Code>::rounded(x * (1.0F / scale))); });
  for (const int pe : pes) {
    block.store(to.codes.on(pe), {at, at + codes.size()}, codes);
    block.template store_group_firsts<kScaleGroup>(to.scales.on(pe) + at / kScaleGroup, scales);
  }
  return codes.zip(scales, [](Code code, float scale) { return convert<float>(code) * scale; });
}

/// Does the same for elements in memory.
template <class Code, class Block, class T, class Pes>
TANDEM_DEVICE void send_codes(Block& block, const T* from, Range elements, const CodePlace<Code>& to, const Pes& pes) {
  for (const Range tile : Tiles(elements, group_step<T>(block, elements.size() + kScaleGroup)))
    store_codes(block, block.template load<float>(from, tile), to, tile.begin - elements.begin, pes);
}

/// Returns the values of the codes `tile` of a place on this PE.
template <class Code, class Block>
TANDEM_DEVICE auto load_codes(Block& block, const CodePlace<Code>& from, Range tile) {
  const auto codes = block.template load<float>(static_cast<const Code*>(from.codes.local()), tile);
  const float* const scales = from.scales.local() + tile.begin / kScaleGroup;
  return codes.zip(block.template load_groups<kScaleGroup>(scales, codes),
                   [](float code, float scale) { return code * scale; });
}

/// Returns the sum of the codes of all PEs in PE order.
template <class Code, class Block>
TANDEM_DEVICE auto sum_codes(Block& block, const CodeStaging& staging, Epoch round, Range tile) {
  auto sum = load_codes(block, staging.place<Code>(block, round, 0), tile);
  for (int pe = 1; pe < block.num_pes(); ++pe)
    sum = sum + load_codes(block, staging.place<Code>(block, round, pe), tile);
  return sum;
}

/// Returns the steps of a loop over `size` codes.
template <class Code, class Block>
TANDEM_DEVICE Tiles code_tiles(Block& block, Size size) {
  return {{0, size}, group_step<Code>(block, size + kScaleGroup)};
}

/// The rounds of this block's part of `size` elements. Numbers continue over all calls, alike on all PEs.
class CodeRounds {
 public:
  /// If `staggered`, the first rounds of a large part differ in size between blocks. Else all blocks would convert at
  /// one time, while the links idle, and store at another.
  template <class Block>
  TANDEM_DEVICE CodeRounds(Block& block, const Epochs& epochs, Size size, Size each, bool staggered = false)
      : part_(split(size, block.count(), kScaleGroup)[block.index()]),
        each_(each),
        missing_(staggered && part_.size() >= kLargePart ? each - first_of(block.index(), each) : 0),
        count_(ceil_div(missing_ + part_.size(), each)),
        first_(block.next_epoch(epochs, static_cast<Epoch>(count_))) {}

  TANDEM_DEVICE Size count() const { return count_; }
  TANDEM_DEVICE Range chunk(Size i) const {
    const Size begin = part_.begin - missing_ + i * each_;
    return {max(begin, part_.begin), min(begin + each_, part_.end)};
  }
  TANDEM_DEVICE Epoch number(Size i) const { return first_ + static_cast<Epoch>(i); }

 private:
  static constexpr Size kLargePart = 3072;

  TANDEM_DEVICE static Size first_of(int block, Size each) {
    constexpr int kSizes = 8;
    return round_up(each * (1 + block % kSizes) / kSizes, kScaleGroup);
  }

  Range part_;
  Size each_;
  Size missing_;  // elements by which the first round is smaller than the others
  Size count_;
  Epoch first_;
};

/// Calls Kernel::round<Code>(block, args, chunk, number) for each round of this block's part of `count` elements.
template <class Kernel, class Block, class Args>
TANDEM_DEVICE void run_code_rounds(Block& block, const Args& a, Size count) {
  const CodeRounds rounds(block, a.rounds, count, a.inputs.each);
  for (Size i = 0; i < rounds.count(); ++i) {
    if (a.wire == WireFormat::kInt8)
      Kernel::template round<std::int8_t>(block, a, rounds.chunk(i), rounds.number(i));
    else
      Kernel::template round<fp8_e4m3>(block, a, rounds.chunk(i), rounds.number(i));
  }
}

}  // namespace tandem::kernels
