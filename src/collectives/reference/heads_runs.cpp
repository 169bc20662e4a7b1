#include "collectives/reference/heads_runs.h"

#include <fmt/format.h>

#include "collectives/reference/heads_example.h"

namespace tandem::kernels {

namespace {

std::byte* copied(World& world, const std::vector<std::byte>& bytes, const char* what) {
  const auto count = static_cast<Size>(bytes.size());
  auto* const memory = world.heap().allocate_local<std::byte>(count, what);
  world.copy_in(memory, bytes.data(), count);
  return memory;
}

}  // namespace

namespace {

/// Returns the place of the results in `partial`, or null where they need one of their own.
std::byte* place_in(std::byte* partial, const MergeHeadsOptions& o, const World& world, Size batch) {
  const Range own = o.own_heads ? split(o.heads, world.num_pes())[world.pe()] : Range{0, o.heads};
  return batch == 1 || own.size() == o.heads ? partial + own.begin * o.head_size * size_of(o.type) : nullptr;
}

}  // namespace

std::string wrong_of_runs(World& world, const HeadsRuns& runs) {
  const auto plan = make_merge_heads(world, runs.options);
  Stream stream = world.make_stream("main");
  const int pe = world.pe();
  std::vector<HeadsExample> examples;
  std::vector<std::byte*> results;
  for (std::size_t i = 0; i < runs.batches.size(); ++i) {
    const HeadsExample& one =
        examples.emplace_back(runs.options, world.num_pes(), runs.batches[i], static_cast<int>(i));
    std::byte* const partial = copied(world, one.partials(pe), "partial");
    std::byte* const place = runs.in_place ? place_in(partial, runs.options, world, one.batch()) : nullptr;
    results.push_back(place != nullptr ? place : world.heap().allocate_local<std::byte>(one.out_bytes(pe), "out"));
    plan->run(stream, {.batch = one.batch(),
                       .partial = partial,
                       .lse = reinterpret_cast<const float*>(copied(world, one.lses(pe), "lse")),
                       .out = results.back()});
  }
  stream.synchronize();
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::vector<std::byte> out(static_cast<std::size_t>(examples[i].out_bytes(pe)));
    world.copy_out(out.data(), results[i], static_cast<Size>(out.size()));
    if (const HeadsErrors errors = examples[i].errors(pe, out.data()); errors.wrong > 0)
      return fmt::format("PE {}, run {} of batch {}: {}", pe, i + 1, runs.batches[i], errors.first);
  }
  return "";
}

}  // namespace tandem::kernels
