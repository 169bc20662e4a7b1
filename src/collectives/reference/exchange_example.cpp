#include "collectives/reference/exchange_example.h"

#include <fmt/format.h>

#include <cstring>

namespace tandem::kernels {

Size ExchangeExample::segment_bytes(int tensor) const {
  return options_.segments[static_cast<std::size_t>(tensor)] * size_of(options_.type);
}

Size ExchangeExample::bytes(int tensor) const { return rows_ * pes_ * segment_bytes(tensor); }

std::byte ExchangeExample::value(int tensor, int from, int to, Size row, Size i) const {
  return static_cast<std::byte>((i * 7 + row * 31 + from * 57 + to * 101 + tensor * 13 + number_ * 43 + (i >> 8)) %
                                251);
}

std::vector<std::byte> ExchangeExample::in(int pe, int tensor) const {
  std::vector<std::byte> bytes;
  const bool to_heads = options_.direction == HeadsDirection::kToHeads;
  for (Size place = 0; place < rows_ * pes_; ++place) {
    const Size row = to_heads ? place / pes_ : place % rows_;
    const int to = static_cast<int>(to_heads ? place % pes_ : place / rows_);
    for (Size i = 0; i < segment_bytes(tensor); ++i) bytes.push_back(value(tensor, pe, to, row, i));
  }
  return bytes;
}

Size ExchangeExample::wrong(int pe, int tensor, const std::byte* out) const {
  Size wrong = 0;
  const bool to_heads = options_.direction == HeadsDirection::kToHeads;
  const Size element = size_of(options_.type);
  for (Size place = 0; place < rows_ * pes_; ++place) {
    const Size row = to_heads ? place % rows_ : place / pes_;
    const int from = static_cast<int>(to_heads ? place / rows_ : place % pes_);
    for (Size i = 0; i < segment_bytes(tensor); i += element) {
      bool is_right = true;
      for (Size j = i; j < i + element; ++j, ++out) is_right = is_right && *out == value(tensor, from, pe, row, j);
      wrong += is_right ? 0 : 1;
    }
  }
  return wrong;
}

std::string wrong_of_runs(World& world, const ExchangeRuns& runs) {
  SymmetricHeap& heap = world.heap();
  const auto plan = make_exchange_heads(world, runs.options);
  Stream stream = world.make_stream("main");
  const int pe = world.pe();
  const ExchangeExample most(runs.options, world.num_pes(), runs.options.max_rows, 0);
  std::vector<Symm<std::byte>> outs;
  outs.reserve(static_cast<std::size_t>(most.tensors()));
  for (int t = 0; t < most.tensors(); ++t) outs.push_back(heap.allocate<std::byte>(most.bytes(t), "out"));
  std::vector<ExchangeExample> examples;
  std::vector<std::vector<std::byte*>> results;
  for (std::size_t i = 0; i < runs.rows.size(); ++i) {
    const ExchangeExample& one =
        examples.emplace_back(runs.options, world.num_pes(), runs.rows[i], static_cast<int>(i));
    ExchangeHeadsCall call{.rows = one.rows(), .tensors = {}};
    for (int t = 0; t < one.tensors(); ++t) {
      auto* const in = heap.allocate_local<std::byte>(one.bytes(t), "in");
      world.copy_in(in, one.in(pe, t).data(), one.bytes(t));
      call.tensors.push_back({in, outs[static_cast<std::size_t>(t)]});
      // An element that no PE writes is wrong, and peers write behind this copy alone.
      const std::vector<std::byte> nothing(static_cast<std::size_t>(one.bytes(t)), std::byte{0xFF});
      auto* const wiped = heap.allocate_local<std::byte>(one.bytes(t), "nothing");
      world.copy_in(wiped, nothing.data(), one.bytes(t));
      stream.copy_async(outs[static_cast<std::size_t>(t)].local(), wiped, one.bytes(t));
    }
    plan->run(stream, call);
    results.emplace_back();
    for (int t = 0; t < one.tensors(); ++t) {
      results.back().push_back(heap.allocate_local<std::byte>(one.bytes(t), "result"));
      stream.copy_async(results.back().back(), outs[static_cast<std::size_t>(t)].local(), one.bytes(t));
    }
  }
  stream.synchronize();
  for (std::size_t i = 0; i < results.size(); ++i)
    for (int t = 0; t < most.tensors(); ++t) {
      std::vector<std::byte> out(static_cast<std::size_t>(examples[i].bytes(t)));
      world.copy_out(out.data(), results[i][static_cast<std::size_t>(t)], static_cast<Size>(out.size()));
      if (const Size wrong = examples[i].wrong(pe, t, out.data()); wrong > 0)
        return fmt::format("PE {}, run {} of {} rows, tensor {}: {} elements are wrong", pe, i + 1, runs.rows[i], t,
                           wrong);
    }
  return "";
}

}  // namespace tandem::kernels
