#include "call_order.h"

#include <fmt/format.h>

namespace tandem::c {

namespace {

constexpr unsigned kOffsetBits = 44, kRegisteredBit = 63;
static_assert(std::uint64_t{Place::kMostBuffers} == (std::uint64_t{1} << (kRegisteredBit - kOffsetBits)) - 1);
constexpr unsigned kCollectiveBits = 4, kTypeBits = 4, kOpBits = 3, kWireBits = 2;

std::uint32_t encode(const Operation& what) {
  auto bits = static_cast<std::uint32_t>(what.root);
  bits = bits << kWireBits | static_cast<std::uint32_t>(what.wire);
  bits = bits << kOpBits | static_cast<std::uint32_t>(what.op);
  bits = bits << kTypeBits | static_cast<std::uint32_t>(what.type);
  return bits << kCollectiveBits | static_cast<std::uint32_t>(what.collective);
}

Operation decode(std::uint32_t bits) {
  const auto take = [&](unsigned width) {
    const std::uint32_t value = bits & ((1U << width) - 1);
    bits >>= width;
    return value;
  };
  Operation what{};
  what.collective = static_cast<Collective>(take(kCollectiveBits));
  what.type = static_cast<DType>(take(kTypeBits));
  what.op = static_cast<ReduceOp>(take(kOpBits));
  what.wire = static_cast<WireFormat>(take(kWireBits));
  what.root = static_cast<int>(bits);
  return what;
}

std::string text_of(const RecordedCall& call) {
  const Operation what = decode(call.what);
  std::string text = fmt::format("{} {}", name(what.collective), name(what.type));
  if (reduces(what.collective)) text += fmt::format(" {}", name(what.op));
  if (what.wire != WireFormat::kType) text += fmt::format(" as {}", name(what.wire));
  if (what.root != 0) text += fmt::format(" root {}", what.root);
  return fmt::format("{} with count {}", text, call.count);
}

std::string text_of(std::uint64_t place) {
  if (place == 0) return "memory of its own";
  const bool is_registered = place >> kRegisteredBit != 0;
  const std::uint64_t buffer = (place & ~(std::uint64_t{1} << kRegisteredBit)) >> kOffsetBits;
  return fmt::format("{} {} at byte {}", is_registered ? "registration" : "allocation", buffer,
                     place & ((std::uint64_t{1} << kOffsetBits) - 1));
}

}  // namespace

std::uint64_t Place::number_of(bool is_registered, int buffer, Size offset) {
  return std::uint64_t{is_registered} << kRegisteredBit | static_cast<std::uint64_t>(buffer) << kOffsetBits |
         static_cast<std::uint64_t>(offset);
}

CallOrder::CallOrder(World& world, Plans& plans) : me_(world.pe()), plans_(plans), log_(world.calls()) {
  if (log_ == nullptr) return;
  order_ = log_->add_order(
      "the world's collectives", world.team(),
      [this](const RecordedCall& own, const RecordedCall& its, int pe) { return difference(own, its, pe); });
}

CallOrder::~CallOrder() {
  if (log_ != nullptr) log_->forget(order_);
}

void CallOrder::note(const Operation& what, Size count, const Place& in, const Place& out) {
  if (log_ != nullptr) log_->note(order_, {encode(what), count, {in.number, out.number}});
}

void CallOrder::take_back() {
  if (log_ != nullptr) log_->take_back(order_);
}

std::string CallOrder::difference(const RecordedCall& own, const RecordedCall& its, int pe) const {
  if (own.what != its.what || own.count != its.count)
    return fmt::format("PE {} calls {}, PE {} {}; all PEs must make the same calls in the same order", me_,
                       text_of(own), pe, text_of(its));
  const auto choice_of = [this](const RecordedCall& call) {
    return plans_.choice(decode(call.what), call.count, call.places[0] == 0, call.places[1] == 0);
  };
  const Plans::Choice choice = choice_of(own);
  const bool is_same = choice == choice_of(its);
  const std::array<const char*, 2> names{"in", "out"};
  const std::array<bool, 2> reached{choice.reaches_in, choice.reaches_out};
  std::string own_text, its_text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool has_other_kind = (own.places[i] == 0) != (its.places[i] == 0);
    if (is_same ? !reached[i] || own.places[i] == its.places[i] : !has_other_kind) continue;
    own_text += fmt::format(", {} = {}", names[i], text_of(own.places[i]));
    its_text += fmt::format(", {} = {}", names[i], text_of(its.places[i]));
  }
  if (own_text.empty()) return "";
  return fmt::format(
      "PE {} calls {}{}; PE {}{}; peers read or write there: allowed is the same place of the same allocation or "
      "registration on all PEs, memory of its own on every PE, or anything with tandem_options.any_memory",
      me_, text_of(own), own_text, pe, its_text);
}

}  // namespace tandem::c
