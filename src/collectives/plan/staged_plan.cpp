#include "collectives/plan/staged_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "collectives/plan/plan.h"
#include "collectives/steps/premultiply.h"
#include "tandem/error.h"

namespace tandem::kernels {

namespace {

/// Chunks are multiples of a cache line.
constexpr Size kLine = 128;

Size half_of(Size staging_bytes) { return staging_bytes / 2 / kLine * kLine; }

/// The largest number of `count`s in the input or the output of any PE.
Size input_parts(Collective collective, const CollectiveOptions& options, const Team& team) {
  return input_elements(collective, 1, team.size, options.root, options.root);
}
Size output_parts(Collective collective, const CollectiveOptions& options, const Team& team) {
  return output_elements(collective, 1, team.size, options.root, options.root);
}

/// A call's buffer, and the place of its copies.
struct Side {
  bool is_staged = false;
  Size most_parts = 1;  // `count`s of any PE's buffer
  Size own_parts = 1;   // `count`s of this PE's buffer
  Symm<std::byte> staging;

  /// The parts of a longer buffer are not contiguous in its chunks.
  bool is_copied(bool whole) const { return is_staged || (!whole && most_parts > 1); }
};

/// Bytes of a part of a call's buffer, and the distance to the next part.
struct Parts {
  Size bytes, pitch;
};

class StagedPlan final : public CollectivePlan {
 public:
  StagedPlan(World& world, const CollectiveOptions& options, const Team& team, const Algorithm& algorithm,
             Staged staged)
      : name_(plan_name(algorithm.info.collective, options)),
        team_(team),
        type_(options.type),
        max_count_(options.max_count),
        element_bytes_(size_of(options.type)),
        chunk_(staged_chunk(staged, algorithm.info.collective, options, team)) {
    const Collective collective = algorithm.info.collective;
    in_ = {staged.in, input_parts(collective, options, team),
           input_elements(collective, 1, team.size, team.me, options.root), options.staging.in};
    out_ = {staged.out, output_parts(collective, options, team),
            output_elements(collective, 1, team.size, team.me, options.root), options.staging.out};
    half_ = half_of(options.staging.bytes);
    if (options.staging.bytes == 0) {
      const auto allocate = [&](Side& side, const char* what) {
        if (side.is_staged)
          side.staging = world.heap().allocate<std::byte>(max_count_ * element_bytes_ * side.most_parts,
                                                          fmt::format("{} {}", name_, what));
      };
      allocate(in_, "staged input");
      allocate(out_, "staged output");
    }
    CollectiveOptions of_chunk = options;
    of_chunk.max_count = std::min(max_count_, chunk_);
    of_chunk.staging = {};  // copies are there
    if (options.scale_of_run) {
      multiplies_in_ = {plan_blocks(world, collective, of_chunk, team), options.threads};
      of_chunk.op = ReduceOp::kSum;
      of_chunk.scale_of_run = false;
    }
    plan_ = algorithm.make(world, of_chunk, team);
    if (max_count_ > chunk_) beside_.emplace(world.make_stream(name_ + " chunks"));
  }

  void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) override {
    if (multiplies_in_)
      throw InvalidArgument(fmt::format("scale: none given to {} with scale_of_run, allowed is run_scaled", name_));
    run_call({stream, in, out, count, nullptr});
  }

  void run_scaled(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count,
                  const RunScale& scale) override {
    if (!multiplies_in_) return CollectivePlan::run_scaled(stream, in, out, count, scale);
    run_call({stream, in, out, count, &scale});
  }

  const std::string& algorithm() const override { return plan_->algorithm(); }
  int blocks() const override { return plan_->blocks(); }

 private:
  struct Call {
    Stream& stream;
    Symm<const std::byte> in;
    Symm<std::byte> out;
    Size count;
    const RunScale* scale;  // null: none
  };
  struct Chunk {
    Symm<const std::byte> in;
    Symm<std::byte> out;
    Size count;
    Parts parts;  // of the call's buffers
  };

  void run_call(const Call& call) {
    check_call(name_, call.in, call.out, call.count, max_count_,
               multiplies_in_ ? static_cast<std::size_t>(element_bytes_) : 1);
    if (call.count > chunk_) return run_in_chunks(call);
    const Chunk chunk = chunk_of(call, 0);
    if (in_.is_staged) copy_in(call.stream, chunk, in_.staging, call.scale);
    plan_->run(call.stream, in_.is_staged ? in_.staging : chunk.in, out_.is_staged ? out_.staging : chunk.out,
               chunk.count);
    if (out_.is_staged) copy_out(call.stream, chunk, out_.staging);
  }

  Chunk chunk_of(const Call& call, Size number) const {
    const Size begin = number * chunk_;
    const Size offset = begin * element_bytes_;
    const Size size = std::min(chunk_, call.count - begin);
    return {call.in + offset, call.out + offset, size, {size * element_bytes_, call.count * element_bytes_}};
  }

  /// Two slots hold the copies of a side, so that those of a chunk run beside the kernels of another. If only one side
  /// is copied, both stagings are its slots.
  std::array<Symm<std::byte>, 2> slots_of(const Side& side, const Side& other) const {
    if (!other.is_copied(false)) return {in_.staging, out_.staging};
    return {side.staging, side.staging + half_};
  }

  /// The next chunk's input is copied before this one's output, which has to wait for the kernels.
  void run_in_chunks(const Call& call) {
    const bool copies_in = in_.is_copied(false), copies_out = out_.is_copied(false);
    const auto ins = slots_of(in_, out_), outs = slots_of(out_, in_);
    std::array<Event, 2> copied_in, ran, copied_out;  // by slot
    const auto load = [&](Size i) {
      if (!copies_in || i * chunk_ >= call.count) return;
      const auto at = static_cast<std::size_t>(i % 2);
      if (i >= 2) beside_->wait(ran[at]);
      copy_in(*beside_, chunk_of(call, i), ins[at], call.scale);
      copied_in[at] = beside_->record();
    };
    beside_->wait_for(call.stream);
    load(0);
    for (Size i = 0; i * chunk_ < call.count; ++i) {
      const Chunk chunk = chunk_of(call, i);
      const auto at = static_cast<std::size_t>(i % 2);
      load(i + 1);
      if (copies_in) call.stream.wait(copied_in[at]);
      if (copies_out && i >= 2) call.stream.wait(copied_out[at]);
      plan_->run(call.stream, copies_in ? ins[at] : chunk.in, copies_out ? outs[at] : chunk.out, chunk.count);
      ran[at] = call.stream.record();
      if (!copies_out) continue;
      beside_->wait(ran[at]);
      copy_out(*beside_, chunk, outs[at]);
      copied_out[at] = beside_->record();
    }
    call.stream.wait_for(*beside_);
  }

  void copy_in(Stream& stream, const Chunk& chunk, Symm<std::byte> staging, const RunScale* scale) const {
    if (scale != nullptr) return multiply_in(stream, chunk, staging, *scale);
    copy_parts(stream, staging.local(), chunk.parts.bytes, chunk.in.local(), chunk.parts, in_.own_parts);
  }
  void copy_out(Stream& stream, const Chunk& chunk, Symm<std::byte> staging) const {
    const Parts staged{chunk.parts.bytes, chunk.parts.bytes};
    copy_parts(stream, chunk.out.local(), chunk.parts.pitch, staging.local(), staged, out_.own_parts);
  }
  static void copy_parts(Stream& stream, std::byte* to, Size to_pitch, const std::byte* from, Parts parts,
                         Size number) {
    if (to_pitch == parts.bytes && parts.pitch == parts.bytes) return stream.copy_async(to, from, parts.bytes * number);
    for (Size i = 0; i < number; ++i) stream.copy_async(to + i * to_pitch, from + i * parts.pitch, parts.bytes);
  }
  void multiply_in(Stream& stream, const Chunk& chunk, Symm<std::byte> staging, const RunScale& scale) const {
    dispatch(type_, [&]<class T>() {
      typename Premultiply<T>::Args args{};
      args.in = chunk.in.template as<const T>().local();
      args.out = staging.template as<T>().local();
      args.in_pitch = chunk.parts.pitch / Size{sizeof(T)};
      args.out_pitch = chunk.count;
      args.parts = in_.own_parts;
      args.count = chunk.count;
      args.scale_at = static_cast<const T*>(scale.at);
      std::memcpy(&args.scale, scale.value.data(), sizeof(T));
      stream.launch<Premultiply<T>>(*multiplies_in_, args, team_);
    });
  }

  std::string name_;
  Team team_;
  DType type_;
  Size max_count_;
  Size element_bytes_;
  Size chunk_;
  Side in_, out_;
  Size half_ = 0;                      // bytes of a slot where each side has two
  std::optional<Grid> multiplies_in_;  // where runs have a factor
  std::unique_ptr<CollectivePlan> plan_;
  std::optional<Stream> beside_;  // for calls in chunks
};

}  // namespace

Staged staged_buffers(const AlgorithmInfo& info, const CollectiveOptions& options, const Team& team) {
  const bool all = !team.one_node();
  return {options.scale_of_run || (options.local_in && (all || info.peers_access_input())),
          options.local_out && (all || info.peers_access_output())};
}

double copies_us(Staged staged, Collective collective, const CollectiveOptions& options, const Team& team,
                 const Machine& machine) {
  // GPUs: between the nodes of a graph on H200 (docs/measured.md): 1.2 us, and 2,200 bytes in a nanosecond.
  const bool by_cpus = machine.processor == Processor::kCpu;
  const double begin_us = by_cpus ? machine.gpu.copy_engine_startup_us : 1.2;
  const double bytes_per_us = by_cpus ? machine.gpu.copy_engine_local_gbps * 1e3 : 2.2e6;
  const auto us = [&](bool is_staged, Size parts) {
    const auto bytes = static_cast<double>(options.max_count * size_of(options.type) * parts);
    return is_staged ? begin_us + bytes / bytes_per_us : 0;
  };
  return us(staged.in, input_parts(collective, options, team)) +
         us(staged.out, output_parts(collective, options, team));
}

Size staged_chunk(Staged staged, Collective collective, const CollectiveOptions& options, const Team& team) {
  if (!staged.any() || options.staging.bytes == 0) return std::max<Size>(options.max_count, 1);
  const Size element = size_of(options.type);
  const Size ins = input_parts(collective, options, team);
  const Size outs = output_parts(collective, options, team);
  const auto fit_in = [&](Size bytes, Size parts) { return bytes / parts / kLine * kLine / element; };
  const Size whole = fit_in(options.staging.bytes, std::max(staged.in ? ins : 1, staged.out ? outs : 1));
  if (options.max_count <= whole) return std::max<Size>(options.max_count, 1);
  // Chunks of both sides are copied in turn through the halves of their stagings.
  const bool both = (staged.in || ins > 1) && (staged.out || outs > 1);
  const Size chunk = fit_in(both ? half_of(options.staging.bytes) : options.staging.bytes, std::max(ins, outs));
  if (chunk > 0) return chunk;
  throw InvalidArgument(fmt::format("staging.bytes: {} given to {} of {} PEs, allowed are at least {}",
                                    options.staging.bytes, name(collective), team.size,
                                    (both ? 2 : 1) * std::max(ins, outs) * kLine));
}

std::unique_ptr<CollectivePlan> make_with_copies(World& world, const CollectiveOptions& options, const Team& team,
                                                 const Algorithm& algorithm) {
  const Staged staged = staged_buffers(algorithm.info, options, team);
  if (!staged.any()) return algorithm.make(world, options, team);
  return std::make_unique<StagedPlan>(world, options, team, algorithm, staged);
}

}  // namespace tandem::kernels
