#include "tools/tandem/gpu/measure/collective_benchmark.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/advanced/local_handle.h"
#include "tandem/error.h"
#include "tools/tandem/data/data.h"
#include "tools/tandem/main/console.h"

namespace tandem::cli {

namespace {

constexpr Size kStaging = Size{64} << 20;  // the default of the C API
constexpr int kSamples = 16;               // besides the first and the last one

const char* name_of(NcclBuffers kind) { return kind == NcclBuffers::kPlain ? "nccl" : "nccl-window"; }

void add(Check& sum, const Check& part) {
  sum.checked += part.checked;
  sum.wrong += part.wrong;
  sum.expectation = part.expectation;
  if (sum.max_error)
    sum.max_error = part.max_error ? std::optional(std::max(*sum.max_error, *part.max_error)) : part.max_error;
}

}  // namespace

struct CollectiveBenchmark::Program {
  std::string peer;  ///< empty: Tandem
  GpuRow row;
  Buffers buffers;
  std::function<void()> call;
  std::unique_ptr<TimedCalls> timed;
  std::vector<double> us;
};

const char* name_of(GpuBuffers buffers) {
  return buffers == GpuBuffers::kHeap ? "heap" : buffers == GpuBuffers::kPlain ? "plain" : "registered";
}

CollectiveBenchmark::CollectiveBenchmark(World& world, Shared& shared, NcclPeer* nccl, const GpuMethod& method,
                                         Size largest, const Register& registered)
    : world_(world),
      shared_(shared),
      nccl_(nccl),
      method_(method),
      largest_(largest),
      stream_(world.make_stream("measured")),
      cuda_stream_(static_cast<cudaStream_t>(stream_.native())),
      in_(buffer("in", registered)),
      out_(buffer("out", registered)),
      inputs_(world.heap().allocate_local<std::byte>(largest, "inputs as they were made")) {
  if (nccl_ == nullptr) return;
  for (const NcclBuffers kind : {NcclBuffers::kPlain, NcclBuffers::kWindow}) {
    try {
      auto* const in = static_cast<std::byte*>(nccl_->allocate(kind, largest));
      auto* const out = static_cast<std::byte*>(nccl_->allocate(kind, largest));
      peer_buffers_[name_of(kind)] = {in, out};
    } catch (const Unsupported& error) {
      if (world.pe() == 0) complain(error.what());
    }
  }
}

/// The memory of the collective itself.
Symm<std::byte> CollectiveBenchmark::buffer(const char* name, const Register& registered) {
  if (method_.buffers != GpuBuffers::kHeap)
    user_memory_.push_back(std::make_unique<UserMemory>(largest_, method_.buffers == GpuBuffers::kRegistered));
  if (method_.buffers == GpuBuffers::kRegistered) return registered(user_memory_.back()->get(), largest_);
  return world_.heap().allocate<std::byte>(largest_, name);
}

void CollectiveBenchmark::prepare(const CollectiveRun& run) {
  run_ = run;
  plans_.clear();
  left_out_.clear();
  const Size element = size_of(run.options.type);
  call_ = {.collective = run.collective,
           .type = run.options.type,
           .op = run.options.op,
           .count = count_of_bytes(run.collective, largest_, world_.num_pes(), element),
           .pes = world_.num_pes(),
           .root = run.options.root,
           .seed = method_.seed,
           .data = run.normal_data ? DataKind::kNormal : DataKind::kExact,
           .wire = run.options.wire};
  data_ = make_collective_data(call_);
  run_.options.scale = data_->scale(world_.pe());
  // Element i of an input is the same for every size.
  const Size elements = input_elements(run.collective, call_.count, call_.pes, world_.pe(), run.options.root);
  std::vector<std::byte> host(static_cast<std::size_t>(elements * element));
  data_->fill_input(world_.pe(), host.data());
  world_.copy_in(inputs_, host.data(), elements * element);
}

/// Places of in and out within a program's two buffers.
CollectiveBenchmark::Buffers CollectiveBenchmark::place(const Buffers& whole) const {
  if (!run_.in_place) return whole;
  const CollectivePlaces at = traits(run_.collective).places(call_.count, world_.pe(), run_.options.root);
  const Size element = size_of(run_.options.type);
  return {whole.out + at.in * element, whole.out + at.out * element};
}

/// Options for calls of the present size.
CollectiveOptions CollectiveBenchmark::options_for(const tune::Candidate& candidate) const {
  CollectiveOptions options = run_.options;
  if (!candidate.algorithm.empty()) options.algorithm = candidate.algorithm;
  if (candidate.blocks > 0) options.blocks = candidate.blocks;
  options.max_count = call_.count;
  if (method_.buffers == GpuBuffers::kPlain) {
    options.local_in = options.local_out = true;
    options.staging = {in_, out_, std::min(largest_, kStaging)};
  }
  return options;
}

std::shared_ptr<CollectivePlan> CollectiveBenchmark::plan(const tune::Candidate& candidate) {
  const auto key = std::pair(candidate.algorithm, candidate.blocks);
  if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
  CollectiveOptions options = options_for(candidate);
  if (candidate.most_bytes > 0)
    options.max_count = count_of_bytes(run_.collective, std::min(candidate.most_bytes, largest_), call_.pes,
                                       size_of(run_.options.type));
  std::shared_ptr<CollectivePlan> made = make_collective(world_, run_.collective, options);
  if (candidate.most_bytes > 0) plans_[key] = made;
  return made;
}

/// Returns the given blocks, or those of the selection table. 0: the plan's choice.
int CollectiveBenchmark::blocks_of(const tune::Candidate& candidate) const {
  return choose_collective(world_, run_.collective, options_for(candidate), world_.team()).blocks;
}

CollectiveBenchmark::Program CollectiveBenchmark::program(const tune::Candidate& candidate) {
  const std::shared_ptr<CollectivePlan> made = plan(candidate);
  Program program;
  program.row.algorithm = made->algorithm();
  program.row.blocks = blocks_of(candidate);
  program.row.choices = made->choices();
  program.row.selected = candidate.algorithm.empty() && candidate.blocks == 0 && run_.options.algorithm.empty() &&
                         run_.options.blocks == 0;
  const bool is_plain = method_.buffers == GpuBuffers::kPlain;
  program.buffers =
      place(is_plain ? Buffers{user_memory_[0]->get(), user_memory_[1]->get()} : Buffers{in_.local(), out_.local()});
  Symm<std::byte> in = local_handle(world_, program.buffers.in);
  Symm<std::byte> out = local_handle(world_, program.buffers.out);
  if (!is_plain) {
    in = run_.in_place ? out_ + (program.buffers.in - out_.local()) : in_;
    out = out_ + (program.buffers.out - out_.local());
  }
  program.call = [this, made, in, out] { made->run(stream_, in, out, call_.count); };
  return program;
}

std::vector<CollectiveBenchmark::Program> CollectiveBenchmark::programs(
    const std::vector<tune::Candidate>& candidates) {
  std::vector<Program> programs;
  for (const tune::Candidate& candidate : candidates) {
    const auto key = std::pair(candidate.algorithm, candidate.blocks);
    if (left_out_.count(key) > 0) continue;
    try {
      Program made = program(candidate);
      made.timed = std::make_unique<TimedCalls>(stream_, made.call, method_.calls, method_.graph);
      programs.push_back(std::move(made));
    } catch (const RuntimeFailure&) {
      throw;
    } catch (const Error& error) {
      if (candidates.size() == 1) throw;
      const bool is_first = std::none_of(left_out_.begin(), left_out_.end(),
                                         [&](const auto& other) { return other.first == candidate.algorithm; });
      left_out_.insert(key);
      if (world_.pe() == 0 && is_first)
        complain(fmt::format("left out: {} with {} blocks: {}", candidate.algorithm, candidate.blocks, error.what()));
    }
  }
  return programs;
}

void CollectiveBenchmark::add_peers(std::vector<Program>& programs) {
  for (const auto& [peer, whole] : peer_buffers_) {
    Program program;
    program.peer = peer;
    program.buffers = place(whole);
    program.call = [this, buffers = program.buffers] { nccl_->run(call_, buffers.in, buffers.out, cuda_stream_); };
    program.call();  // NCCL cannot connect during a capture
    stream_.synchronize();
    program.timed = std::make_unique<TimedCalls>(stream_, program.call, method_.calls, method_.graph);
    programs.push_back(std::move(program));
  }
}

/// Clears the result and writes the input.
void CollectiveBenchmark::restore(const Program& program) {
  const Size element = size_of(call_.type);
  const Size out = output_elements(call_.collective, call_.count, call_.pes, world_.pe(), call_.root) * element;
  const Size in = input_elements(call_.collective, call_.count, call_.pes, world_.pe(), call_.root) * element;
  constexpr int nan_in_every_type = 0xFF;
  cuda::check(cudaMemsetAsync(program.buffers.out, nan_in_every_type, static_cast<std::size_t>(out), cuda_stream_),
              "cudaMemset");
  cuda::check(cudaMemcpyAsync(program.buffers.in, inputs_, static_cast<std::size_t>(in), cudaMemcpyDeviceToDevice,
                              cuda_stream_),
              "cudaMemcpy");
  stream_.synchronize();
}

/// Checks the result of a round's last call.
Check CollectiveBenchmark::check(Program& program) {
  restore(program);
  world_.barrier();
  if (changes_its_input()) {
    program.call();
    stream_.synchronize();
  } else {
    program.timed->run();
  }
  world_.barrier();
  Check own;
  check_samples(program.buffers.out, own);
  return shared_.over_all(own);
}

void CollectiveBenchmark::check_samples(const std::byte* out, Check& check) {
  const Size element = size_of(call_.type);
  const Size elements = output_elements(call_.collective, call_.count, call_.pes, world_.pe(), call_.root);
  std::vector<Range> parts{{0, elements}};
  if (elements * element > method_.checked_whole) {
    const Size sample = std::min(elements, method_.sample_elements);
    parts = {{0, sample}, {elements - sample, elements}};
    for (std::uint64_t i = 0; i < kSamples; ++i) {
      const auto first = static_cast<Size>(random_bits(method_.seed, i, static_cast<std::uint64_t>(call_.count)) %
                                           static_cast<std::uint64_t>(elements - sample + 1));
      parts.push_back({first, first + sample});
    }
  }
  check.expectation = "nothing";
  for (const Range part : parts) {
    std::vector<std::byte> host(static_cast<std::size_t>(part.size() * element));
    world_.copy_out(host.data(), out + part.begin * element, part.size() * element);
    Check one;
    data_->check_part(world_.pe(), part, host.data(), one);
    add(check, one);
  }
}

int CollectiveBenchmark::rounds() const {
  if (method_.rounds) return *method_.rounds;
  const Size bytes = call_.count * size_of(call_.type);
  constexpr Size small = Size{2} << 20, medium = Size{64} << 20;
  return bytes <= small ? 25 : bytes < medium ? 11 : 5;
}

void CollectiveBenchmark::record_call(const std::function<void(bool)>& record) {
  const Program made = program(last_);
  cuda::Graph graph(cuda_stream_, [&] {
    constexpr int kFirstCalls = 2;
    for (int i = 0; i < kFirstCalls; ++i) made.call();
    record(true);
    made.call();
    record(false);
  });
  world_.barrier();
  graph.launch();
  stream_.synchronize();
  world_.barrier();
}

GpuSize CollectiveBenchmark::measure(Size bytes, const std::vector<tune::Candidate>& candidates) {
  const Size element = size_of(call_.type);
  call_.count = count_of_bytes(call_.collective, bytes, call_.pes, element);
  data_ = make_collective_data(call_);
  last_ = candidates.front();
  GpuSize size;
  size.count = call_.count;
  size.bytes = bytes_of_count(call_.collective, call_.count, call_.pes, element);
  std::vector<Program> turns = programs(candidates);
  if (nccl_ != nullptr) add_peers(turns);
  for (Program& program : turns) program.row.check = check(program);
  for (int round = -method_.warmups; round < rounds(); ++round)
    for (Program& program : turns) {
      if (changes_its_input()) restore(program);  // repeated sums would leave the type's range
      world_.barrier();
      const double us = program.timed->run();
      if (round >= 0) program.us.push_back(us);
    }
  for (Program& program : turns) {
    program.row.us = shared_.largest(median(program.us));
    if (program.peer.empty())
      size.rows.push_back(program.row);
    else if (program.row.check.correct())
      size.peers[program.peer] = program.row.us;
    else
      size.wrong_peers += program.row.check.wrong;
  }
  world_.barrier();
  return size;
}

}  // namespace tandem::cli
