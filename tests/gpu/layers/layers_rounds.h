#pragma once
/// Layers of consecutive operators, in graphs that PEs start late. Their bits must be those of the same runs one by
/// one.

#include <cstring>
#include <string>

#include "gpu/graph.h"
#include "operators/operator_case.h"
#include "tools/tandem/check/layers.h"

namespace tandem::test {

struct LayersCase {
  std::string name;
  cli::Layers<bf16>::Options options;
};

inline std::vector<LayersCase> layers_cases(bool copy_engines) {
  std::vector<LayersCase> all;
  OperatorOptions open;
  open.use_tuned = false;
  all.push_back({"what suits", {open, open, open}});
  for (const CopyBy copy_by : {CopyBy::kSm, CopyBy::kCopyEngine}) {
    if (copy_by == CopyBy::kCopyEngine && !copy_engines) continue;
    const bool by_sm = copy_by == CopyBy::kSm;
    for (const Form form : {Form::kOverlapped, Form::kSequential}) {
      OperatorOptions o = open;
      o.form = form;
      o.copy_by = copy_by;
      cli::Layers<bf16>::Options options{o, o, o};
      if (form == Form::kOverlapped) options.reduce.shots = 2;
      all.push_back({form == Form::kSequential ? (by_sm ? "sequential, SMs" : "sequential, copy engines")
                                               : (by_sm ? "overlapped, SMs" : "overlapped, copy engines"),
                     options});
    }
  }
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    LayersCase shared = all[i];
    shared.name += ", shared memory";
    shared.options.shares_memory = true;
    all.push_back(std::move(shared));
  }
  return all;
}

/// Bytes that differ in `replays` of graphs of several layers, of all rows and of fewer.
inline Size differing_layers(World& world, Stream& stream, const LayersCase& c, std::byte* idle, Size idle_bytes,
                             int replays) {
  constexpr int kLayers = 3;
  const std::vector<Size> steps{Size{769} * world.num_pes() - 3, 17, Size{384} * world.num_pes() + 5, 1};
  cli::Layers<bf16> layers(world, {steps.front(), 1024, Size{512} * world.num_pes()}, c.options);
  const Size bytes = layers.x_elements(steps.front()) * Size{sizeof(bf16)};
  const auto all_bytes = bytes * static_cast<Size>(steps.size());
  std::byte* const inputs = world.heap().allocate_local<std::byte>(all_bytes, "inputs of layers");
  std::byte* const results = world.heap().allocate_local<std::byte>(all_bytes, "results of layers");
  for (std::size_t i = 0; i < steps.size(); ++i)
    world.copy_in(inputs + static_cast<Size>(i) * bytes, layers.input(static_cast<std::uint32_t>(i)).data(), bytes);
  const auto enqueue = [&](std::size_t i, const std::function<void()>& between) {
    stream.copy_async(layers.x(), inputs + static_cast<Size>(i) * bytes, bytes);
    for (int layer = 0; layer < kLayers; ++layer) layers.enqueue(stream, steps[i], between);
    stream.copy_async(results + static_cast<Size>(i) * bytes, layers.x(),
                      layers.x_elements(steps[i]) * Size{sizeof(bf16)});
  };
  const auto result = [&](std::size_t i) {
    std::vector<std::byte> host(static_cast<std::size_t>(layers.x_elements(steps[i])) * sizeof(bf16));
    world.copy_out(host.data(), results + static_cast<Size>(i) * bytes, static_cast<Size>(host.size()));
    return host;
  };
  std::vector<std::vector<std::byte>> alone;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    enqueue(i, [&] {
      stream.synchronize();
      world.barrier();
    });
    stream.synchronize();
    alone.push_back(result(i));
  }
  std::vector<std::unique_ptr<Graph>> graphs;
  for (std::size_t i = 0; i < steps.size(); ++i)
    graphs.push_back(std::make_unique<Graph>(static_cast<cudaStream_t>(stream.native()), [&] { enqueue(i, [] {}); }));
  world.barrier();  // making a graph may wait for the kernels of other PEs on the same GPU
  const std::vector<bf16> given = layers.input(0);
  Size wrong = given.empty() || std::memcmp(given.data(), alone[0].data(), alone[0].size()) != 0 ? 0 : 1;
  for (int replay = 0; replay < replays * static_cast<int>(steps.size()); ++replay) {
    const std::size_t i = static_cast<std::size_t>(replay) * 3 % steps.size();
    for (int j = (replay * 3 + world.pe()) % world.num_pes(); j > 0; --j)
      stream.copy_async(idle, idle + idle_bytes, idle_bytes);
    graphs[i]->launch();
    stream.synchronize();
    const std::vector<std::byte> got = result(i);
    for (std::size_t byte = 0; byte < got.size(); ++byte) wrong += got[byte] != alone[i][byte];
  }
  world.heap().free_local(inputs);
  world.heap().free_local(results);
  return wrong;
}

}  // namespace tandem::test
