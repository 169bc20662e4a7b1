#include "collectives/plan/staged_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "collectives/plan/plan.h"
#include "tandem/error.h"

namespace tandem::kernels {

namespace {

/// Chunks are multiples of a cache line.
constexpr Size kLine = 128;

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

class StagedPlan final : public CollectivePlan {
 public:
  StagedPlan(World& world, const CollectiveOptions& options, const Team& team, const Algorithm& algorithm,
             Staged staged)
      : name_(plan_name(algorithm.info.collective, options)),
        max_count_(options.max_count),
        element_bytes_(size_of(options.type)),
        chunk_(staged_chunk(staged, algorithm.info.collective, options, team)) {
    const Collective collective = algorithm.info.collective;
    in_ = {staged.in, input_parts(collective, options, team),
           input_elements(collective, 1, team.size, team.me, options.root), options.staging.in};
    out_ = {staged.out, output_parts(collective, options, team),
            output_elements(collective, 1, team.size, team.me, options.root), options.staging.out};
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
    plan_ = algorithm.make(world, of_chunk, team);
    if (max_count_ > chunk_) beside_.emplace(world.make_stream(name_ + " chunks"));
  }

  void run(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count) override {
    check_call(name_, in, out, count, max_count_);
    const bool whole = count <= chunk_;
    const bool copies_in = in_.is_copied(whole);
    const bool copies_out = out_.is_copied(whole);
    if (!whole && copies_in != copies_out) return run_overlapped(stream, in, out, count, copies_in);
    for (Size begin = 0; begin == 0 || begin < count; begin += chunk_) {
      const Chunk chunk = chunk_of(in, out, count, begin);
      if (copies_in) copy_in(stream, chunk, in_.staging);
      plan_->run(stream, copies_in ? in_.staging : chunk.in, copies_out ? out_.staging : chunk.out, chunk.count);
      if (copies_out) copy_out(stream, chunk, out_.staging);
    }
  }

  const std::string& algorithm() const override { return plan_->algorithm(); }
  int blocks() const override { return plan_->blocks(); }

 private:
  struct Chunk {
    Symm<const std::byte> in;
    Symm<std::byte> out;
    Size pitch;  // bytes from one part of the call's buffers to the next
    Size count;
    Size bytes;  // of each part
  };

  Chunk chunk_of(Symm<const std::byte> in, Symm<std::byte> out, Size count, Size begin) const {
    const Size offset = begin * element_bytes_;
    const Size size = std::min(chunk_, count - begin);
    return {in + offset, out + offset, count * element_bytes_, size, size * element_bytes_};
  }

  /// A chunk is copied while the next or the previous one runs, so there are two slots.
  void run_overlapped(Stream& stream, Symm<const std::byte> in, Symm<std::byte> out, Size count, bool copies_in) {
    const std::array<Symm<std::byte>, 2> slots{in_.staging, out_.staging};
    std::array<Event, 2> last;  // the end of the work before which a slot must not be written again
    beside_->wait_for(stream);
    for (Size i = 0; i * chunk_ < count; ++i) {
      const Chunk chunk = chunk_of(in, out, count, i * chunk_);
      const auto at = static_cast<std::size_t>(i % 2);
      Stream& writer = copies_in ? *beside_ : stream;
      if (i >= 2) writer.wait(last[at]);
      if (copies_in) {
        copy_in(*beside_, chunk, slots[at]);
        stream.wait_for(*beside_);
        plan_->run(stream, slots[at], chunk.out, chunk.count);
        last[at] = stream.record();
      } else {
        plan_->run(stream, chunk.in, slots[at], chunk.count);
        beside_->wait_for(stream);
        copy_out(*beside_, chunk, slots[at]);
        last[at] = beside_->record();
      }
    }
    stream.wait_for(*beside_);
  }

  void copy_in(Stream& stream, const Chunk& chunk, Symm<std::byte> staging) const {
    copy_parts(stream, staging.local(), chunk.bytes, chunk.in.local(), chunk.pitch, chunk.bytes, in_.own_parts);
  }
  void copy_out(Stream& stream, const Chunk& chunk, Symm<std::byte> staging) const {
    copy_parts(stream, chunk.out.local(), chunk.pitch, staging.local(), chunk.bytes, chunk.bytes, out_.own_parts);
  }
  static void copy_parts(Stream& stream, std::byte* to, Size to_pitch, const std::byte* from, Size from_pitch,
                         Size bytes, Size parts) {
    if (to_pitch == bytes && from_pitch == bytes) return stream.copy_async(to, from, bytes * parts);
    for (Size i = 0; i < parts; ++i) stream.copy_async(to + i * to_pitch, from + i * from_pitch, bytes);
  }

  std::string name_;
  Size max_count_;
  Size element_bytes_;
  Size chunk_;
  Side in_, out_;
  std::unique_ptr<CollectivePlan> plan_;
  std::optional<Stream> beside_;  // for calls in chunks
};

}  // namespace

Staged staged_buffers(const AlgorithmInfo& info, const CollectiveOptions& options, const Team& team) {
  const bool all = !team.one_node();
  return {options.local_in && (all || info.peers_access_input()),
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
  const auto fit = [&](Size parts) { return options.staging.bytes / parts / kLine * kLine / element; };
  const Size whole = fit(std::max(staged.in ? ins : 1, staged.out ? outs : 1));
  if (options.max_count <= whole) return std::max<Size>(options.max_count, 1);
  const Size chunk = fit(std::max(ins, outs));
  if (chunk > 0) return chunk;
  throw InvalidArgument(fmt::format("staging.bytes: {} given to {} of {} PEs, allowed are at least {}",
                                    options.staging.bytes, name(collective), team.size,
                                    round_up(std::max(ins, outs) * kLine, kLine)));
}

std::unique_ptr<CollectivePlan> make_with_copies(World& world, const CollectiveOptions& options, const Team& team,
                                                 const Algorithm& algorithm) {
  const Staged staged = staged_buffers(algorithm.info, options, team);
  if (!staged.any()) return algorithm.make(world, options, team);
  return std::make_unique<StagedPlan>(world, options, team, algorithm, staged);
}

}  // namespace tandem::kernels
