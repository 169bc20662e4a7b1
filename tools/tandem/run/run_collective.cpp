#include "tools/tandem/run/run_collective.h"

#include <fmt/format.h>

#include <cstring>

#include "tandem/error.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/run/cost.h"
#include "tools/tandem/run/measure.h"
#include "tools/tandem/run/run_program.h"

namespace tandem::cli {
namespace {

void check_in_place(Collective collective) {
  if (!traits(collective).has_place)
    throw InvalidArgument(fmt::format("--in-place: does not apply to {}, which needs two buffers", name(collective)));
}

CollectiveCall call_of(const CollectiveRun& run, Size count, int pes, std::uint64_t seed) {
  const DataKind kind = run.normal_data ? DataKind::kNormal : DataKind::kExact;
  return {run.collective, run.options.type, run.options.op, count, pes, run.options.root, seed, kind, run.options.wire};
}

/// The user's buffers of one PE.
struct Buffers {
  Symm<std::byte> in;
  Symm<std::byte> out;
};

/// One run of a collective on all PEs: buffers, calls, checks.
class CollectiveProgram {
 public:
  /// `after_call`: see Measurement.
  CollectiveProgram(const CollectiveRun& run, Size count, int pes, const CollectiveData& data,
                    std::function<void()> after_call)
      : run_(run),
        count_(count),
        pes_(pes),
        element_(size_of(run.options.type)),
        data_(data),
        measurement_(run.warmups, run.iterations, std::move(after_call)) {}

  void operator()(World& world) {
    const Buffers buffers = allocate(world);
    CollectiveOptions options = run_.options;
    options.max_count = count_;
    options.scale = data_.scale(world.pe());
    const auto plan = make_collective(world, run_.collective, options);
    algorithm_ = plan->algorithm();
    choices_ = plan->choices();
    Stream stream = world.make_stream("main");
    measurement_.run(
        world, stream, [&] { prepare(world, buffers); }, [&] { plan->run(stream, buffers.in, buffers.out, count_); });
    if (!world.phantom()) data_.check_output(world.pe(), buffers.out.local(), check_);
  }

  double bytes_per_pe() const {
    const BufferBytes bytes = buffer_bytes(run_, count_, pes_);
    return static_cast<double>(bytes.in + bytes.out);
  }
  const std::string& algorithm() const { return algorithm_; }
  const std::vector<OptionChoice>& choices() const { return choices_; }
  const Measurement& measurement() const { return measurement_; }
  const Check& check() const { return check_; }

 private:
  Buffers allocate(World& world) const {
    auto& heap = world.heap();
    const BufferBytes bytes = buffer_bytes(run_, count_, pes_);
    if (!run_.in_place) return {heap.allocate<std::byte>(bytes.in, "in"), heap.allocate<std::byte>(bytes.out, "out")};
    const auto both = heap.allocate<std::byte>(std::max(bytes.in, bytes.out), "in and out");
    const CollectivePlaces places = traits(run_.collective).places(count_, world.pe(), run_.options.root);
    return {both + places.in * element_, both + places.out * element_};
  }

  /// Clears the previous result and writes the input, which an in-place call destroys.
  void prepare(World& world, const Buffers& buffers) const {
    if (world.phantom()) return;
    constexpr int nan_in_every_type = 0xFF;
    const Size out = output_elements(run_.collective, count_, pes_, world.pe(), run_.options.root) * element_;
    std::memset(buffers.out.local(), nan_in_every_type, static_cast<std::size_t>(out));
    data_.fill_input(world.pe(), buffers.in.local());
  }

  const CollectiveRun& run_;
  Size count_;
  int pes_;
  Size element_;
  const CollectiveData& data_;
  Measurement measurement_;
  std::string algorithm_;
  std::vector<OptionChoice> choices_;
  Check check_;
};

bool parse_data(const std::string& text) {
  if (text != "exact" && text != "normal")
    throw InvalidArgument(fmt::format("--data: '{}' given, allowed is exact or normal", text));
  return text == "normal";
}

WireFormat parse_wire(const std::string& text) {
  try {
    return parse_wire_format(text);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("--{}", error.what()));
  }
}

}  // namespace

Size count_of_bytes(Collective collective, Size bytes, int pes, Size element_bytes) {
  return bytes / (traits(collective).is_whole() ? element_bytes * pes : element_bytes);
}

Size bytes_of_count(Collective collective, Size count, int pes, Size element_bytes) {
  return count * (traits(collective).is_whole() ? element_bytes * pes : element_bytes);
}

void check_size(const CollectiveRun& run, Size bytes, int pes) {
  const Size element = size_of(run.options.type);
  if (bytes <= 0 || count_of_bytes(run.collective, bytes, pes, element) > 0) return;
  throw InvalidArgument(fmt::format("--bytes: {} given, allowed is 0 or at least {}, one {} element{}", bytes,
                                    bytes_of_count(run.collective, 1, pes, element), name(run.options.type),
                                    traits(run.collective).is_whole() ? " of each PE" : ""));
}

double bus_factor(Collective collective, int pes) {
  const double others = static_cast<double>(pes - 1) / pes;
  if (collective == Collective::kAllReduce) return 2 * others;
  return traits(collective).is_whole() ? others : 1;
}

BufferBytes buffer_bytes(const CollectiveRun& run, Size count, int pes) {
  const int root = run.options.root;
  const Size element = size_of(run.options.type);
  return {input_elements(run.collective, count, pes, root, root) * element,
          output_elements(run.collective, count, pes, root, root) * element};
}

CollectiveRun make_collective_run(Collective collective, const Arguments& a, int pes) {
  refuse_operator_options(a);
  CollectiveRun run;
  run.collective = collective;
  run.options.type = dtype_option(a, DType::kF32);
  if (a.reduction && !reduces(collective))
    throw InvalidArgument(fmt::format("--op: does not apply to {}, which does not reduce", name(collective)));
  if (a.reduction) run.options.op = parse_reduce_op(*a.reduction);
  if (a.root && !traits(collective).has_root())
    throw InvalidArgument(fmt::format("--root: does not apply to {}, which has no root", name(collective)));
  run.options.root = a.root.value_or(0);
  if (run.options.root < 0 || run.options.root >= pes)
    throw InvalidArgument(fmt::format("--root: {} given, allowed is 0 to {}", run.options.root, pes - 1));
  run.options.algorithm = a.algorithm.value_or("");
  run.options.blocks = a.blocks.value_or(0);
  run.options.selection = a.selection.value_or("");
  if (a.blocks && *a.blocks < 0)
    throw InvalidArgument(
        fmt::format("--blocks: {} given, allowed is 1 or more, or 0 for a choice by size", *a.blocks));
  run.normal_data = a.data && parse_data(*a.data);
  if (a.wire) run.options.wire = parse_wire(*a.wire);
  if (a.data && run.options.wire != WireFormat::kType)
    throw InvalidArgument("--data: does not apply with --wire, which takes random normal data, checked bit for bit");
  run.in_place = a.in_place;
  if (run.in_place) check_in_place(collective);
  run.warmups = a.warmups;
  run.iterations = a.iterations.value_or(1);
  return run;
}

CollectiveRun make_collective_run(Collective collective, const RunOptions& options, int pes) {
  CollectiveRun run = make_collective_run(collective, static_cast<const Arguments&>(options), pes);
  run.explain = options.explain;
  return run;
}

std::string extras_of(const CollectiveRun& run) {
  return run.options.wire == WireFormat::kType ? "" : fmt::format("{} on the wire", name(run.options.wire));
}

void note_cost(const CollectiveRun& run, const Setup& setup) {
  const std::string text = cost_note(run.collective, setup.pes, parts_of(run), computer_memory());
  if (!text.empty()) complain(text);
}

namespace {

/// Returns the parts of a result that do not depend on where it ran.
Result result_of(const CollectiveRun& run, Size count, int pes) {
  Result result;
  result.op = name(run.collective);
  result.pes = pes;
  result.bytes = bytes_of_count(run.collective, count, pes, size_of(run.options.type));
  result.count = count;
  result.bus_factor = bus_factor(run.collective, pes);
  result.dtype = name(run.options.type);
  result.extras = extras_of(run);
  return result;
}

}  // namespace

Result run_collective_on_host(const CollectiveRun& run, const HostJob& job, Size bytes) {
  const Size count = count_of_bytes(run.collective, bytes, job.pes, size_of(run.options.type));
  const Result result = result_of(run, count, job.pes);
  const BufferBytes buffers = buffer_bytes(run, count, job.pes);
  const auto data = make_collective_data(call_of(run, count, job.pes, job.seed));
  return run_on_host(job, result, static_cast<double>(buffers.in + buffers.out), run.explain,
                     [&] { return CollectiveProgram(run, count, job.pes, *data, [] {}); });
}

Result run_collective(const CollectiveRun& run, Setup setup, Size bytes, Pictures& pictures, Progress& progress,
                      const CollectiveData* data) {
  const Size element = size_of(run.options.type);
  const Size count = count_of_bytes(run.collective, bytes, setup.pes, element);

  const auto own_data =
      data == nullptr ? make_collective_data(call_of(run, count, setup.pes, setup.options.seed)) : nullptr;
  CollectiveProgram program(run, count, setup.pes, data == nullptr ? *own_data : *data,
                            [&progress] { progress.advance(); });
  const Result result = result_of(run, count, setup.pes);
  const std::string what =
      fmt::format("{} of {} bytes", name(run.collective), bytes_of_count(run.collective, count, setup.pes, element));
  return simulate(program, result, what, run.explain, std::move(setup), pictures, progress);
}

}  // namespace tandem::cli
