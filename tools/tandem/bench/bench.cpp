// `tandem bench`: a sweep over sizes, in the columns of nccl-tests.
#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "tandem/error.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/options/json_file.h"
#include "tools/tandem/run/run_collective.h"
#include "tools/tandem/run/run_operator.h"
#include "tools/tandem/tune/sweep.h"

namespace tandem::cli {
namespace {

std::string wrong_of(const Result& r) { return r.check ? fmt::format("{}", r.check->wrong) : "N/A"; }

/// Prints rows as they arrive, unless standard output is for JSON, and keeps them for the JSON.
class Table {
 public:
  /// `speaks`: whether this process prints and writes.
  Table(const BenchOptions& arguments, bool speaks) : arguments_(arguments), speaks_(speaks) {}

  void print(const std::string& line) const {
    if (arguments_.json_to_stdout() || !speaks_) return;
    fmt::print("{}\n", line);
    flush_output();
  }
  void add(const Result& result, const std::string& row) {
    print(row);
    auto json = to_json(result);
    if (result.count) json["count"] = *result.count;
    if (const auto bandwidth = result.algorithm_bandwidth()) json["algbw_gbps"] = *bandwidth;
    if (const auto bandwidth = result.bus_bandwidth()) json["busbw_gbps"] = *bandwidth;
    json_.push_back(std::move(json));
    wrong_ += result.check ? result.check->wrong : 0;
  }
  /// Writes the JSON and returns the exit code.
  int finish() const {
    print(arguments_.phantom ? "# wrong elements: not checked (--phantom)"
                             : fmt::format("# wrong elements: {} {}", wrong_, wrong_ == 0 ? "OK" : "FAILED"));
    if (speaks_) write_json(arguments_, json_);
    return wrong_ == 0 ? kRight : kWrong;
  }

 private:
  const BenchOptions& arguments_;
  bool speaks_;
  nlohmann::ordered_json json_ = nlohmann::ordered_json::array();
  Size wrong_ = 0;
};

std::string place(const BenchOptions& a, const Setup& setup) {
  const std::string machine = printable(setup.machine.name);
  std::string text = fmt::format(
      "# {} on {} PEs of {}, seed {}, warm-up calls {}, timed calls {}{}{}\n# times are predicted with the "
      "machine model {}",
      a.subject, setup.pes, machine, a.seed, a.warmups, a.iterations.value_or(1), a.phantom ? ", phantom" : "",
      a.in_place ? ", in-place" : "", machine);
  if (const std::string assumption = assumption_of(setup); !assumption.empty()) text += "\n# " + assumption;
  return text;
}

std::string place(const BenchOptions& a, const HostJob& job) {
  return fmt::format("# {} on {} PEs of {}, {}, seed {}, warm-up calls {}, timed calls {}{}\n# times are measured",
                     a.subject, job.pes, HostJob::machine(), job.by_processes ? "processes" : "threads", a.seed,
                     a.warmups, a.iterations.value_or(1), a.in_place ? ", in-place" : "");
}

std::string collective_row(const CollectiveRun& run, const Result& r) {
  const bool reducing = reduces(run.collective);
  return fmt::format("{:>13} {:>13} {:>10} {:>10} {:>6} {:>11.2f} {:>8.2f} {:>8.2f} {:>7}  {}", *r.bytes, *r.count,
                     r.dtype, reducing ? name(run.options.op) : "none",
                     traits(run.collective).has_root() ? run.options.root : -1, r.time_us,
                     r.algorithm_bandwidth().value_or(0), r.bus_bandwidth().value_or(0), wrong_of(r), r.algorithm);
}

void print_collective_header(Table& table) {
  table.print(fmt::format("#{:>12} {:>13} {:>10} {:>10} {:>6} {:>11} {:>8} {:>8} {:>7}  {}", "size", "count", "type",
                          "redop", "root", "time", "algbw", "busbw", "#wrong", "algorithm"));
  table.print(fmt::format("#{:>12} {:>13} {:>10} {:>10} {:>6} {:>11} {:>8} {:>8}", "(B)", "(elements)", "", "", "",
                          "(us)", "(GB/s)", "(GB/s)"));
}

/// Returns a function that benches the collective. Throws at once for bad options.
std::function<void(Table&)> collective_bench(Collective collective, const BenchOptions& a) {
  const Setup setup = make_setup(a);
  const CollectiveRun run = make_collective_run(collective, a, setup.pes);
  return [a, setup, run, sizes = bench_sizes(a)](Table& table) {
    table.print(place(a, setup));
    print_collective_header(table);
    note_cost(run, setup);
    Pictures none;
    const int parts = parts_of(run), rows = static_cast<int>(sizes.size());
    for (int row = 0; row < rows; ++row) {
      const Size bytes = sizes[static_cast<std::size_t>(row)];
      const Result result = [&] {
        Progress progress(rows * parts, row * parts);
        return run_collective(run, setup, bytes, none, progress);
      }();
      table.add(result, collective_row(run, result));
    }
  };
}

/// The same on CPUs.
std::function<void(Table&)> collective_bench(Collective collective, const BenchOptions& a, const HostJob& job) {
  const CollectiveRun run = make_collective_run(collective, a, job.pes);
  return [a, job, run, sizes = bench_sizes(a)](Table& table) {
    table.print(place(a, job));
    print_collective_header(table);
    for (const Size bytes : sizes) {
      const Result result = run_collective_on_host(run, job, bytes);
      table.add(result, collective_row(run, result));
    }
  };
}

std::string or_none(const std::optional<double>& value) { return value ? fmt::format("{:.2f}", *value) : "N/A"; }

void print_operator_header(Table& table) {
  table.print(fmt::format("#{:>8} {:>8} {:>8} {:>6} {:>11} {:>11} {:>11} {:>9} {:>7}  {}", "M", "N", "K", "type",
                          "time", "sequential", "ideal", "overlap", "#wrong", "algorithm"));
  table.print(fmt::format("#{:>8} {:>8} {:>8} {:>6} {:>11} {:>11} {:>11} {:>9}", "", "", "", "", "(us)", "(us)", "(us)",
                          "(%)"));
}

std::string operator_row(const OperatorRun& run, const Result& r) {
  return fmt::format("{:>9} {:>8} {:>8} {:>6} {:>11.2f} {:>11} {:>11} {:>9} {:>7}  {}", run.options.m, run.options.n,
                     run.options.k, r.dtype, r.time_us, or_none(r.sequential_us), or_none(r.ideal_us),
                     or_none(r.overlap_percent()), wrong_of(r), r.algorithm);
}

/// Returns a function that benches the operator. Throws at once for bad options.
std::function<void(Table&)> operator_bench(Operator op, const BenchOptions& a) {
  const Setup setup = make_setup(a);
  const OperatorRun all_rows = make_operator_run(op, a);
  return [a, setup, all_rows, rows = bench_rows(a, all_rows.options.m)](Table& table) {
    table.print(place(a, setup));
    print_operator_header(table);
    Pictures none;
    OperatorRun run = all_rows;
    const int parts = parts_of(run), count = static_cast<int>(rows.size());
    for (int row = 0; row < count; ++row) {
      run.options.m = rows[static_cast<std::size_t>(row)];
      const Result result = [&] {
        Progress progress(count * parts, row * parts);
        return run_operator(run, setup, none, progress);
      }();
      table.add(result, operator_row(run, result));
    }
  };
}

/// The same on CPUs.
std::function<void(Table&)> operator_bench(Operator op, const BenchOptions& a, const HostJob& job) {
  const OperatorRun all_rows = make_operator_run(op, a);
  return [a, job, all_rows, rows = bench_rows(a, all_rows.options.m)](Table& table) {
    table.print(place(a, job));
    print_operator_header(table);
    OperatorRun run = all_rows;
    for (const Size m : rows) {
      run.options.m = m;
      const Result result = run_operator_on_host(run, job);
      table.add(result, operator_row(run, result));
    }
  };
}

Result layer_result(const LayerRun& run, Size size, const Setup& setup, Progress& progress) {
  Pictures none;
  return run_layer(run, size, setup, none, progress);
}
Result layer_result(const LayerRun& run, Size size, const HostJob& job, Progress&) {
  return run_layer_on_host(run, size, job);
}

/// Returns a function that benches a call of include/tandem/layer over its sizes, on either place.
template <class Place>
std::function<void(Table&)> layer_bench(const LayerSubject& subject, const BenchOptions& a, const Place& where) {
  const LayerRun run = subject.make(a);
  return [a, where, run, sizes = layer_sizes(a)](Table& table) {
    table.print(place(a, where));
    table.print(layer_header(run));
    const int parts = parts_of(run), count = static_cast<int>(sizes.size());
    for (int row = 0; row < count; ++row) {
      const Size size = sizes[static_cast<std::size_t>(row)];
      const Result result = [&] {
        Progress progress(count * parts, row * parts);
        return layer_result(run, size, where, progress);
      }();
      table.add(result, layer_row(size, result));
    }
  };
}

template <class... Place>
std::function<void(Table&)> bench_of(const Subject& subject, const BenchOptions& a, const Place&... place) {
  if (const auto* const op = std::get_if<Operator>(&subject)) return operator_bench(*op, a, place...);
  if (const auto* const layer = std::get_if<LayerSubject>(&subject)) {
    if constexpr (sizeof...(Place) == 0)
      return layer_bench(*layer, a, make_setup(a));
    else
      return layer_bench(*layer, a, place...);
  }
  return collective_bench(std::get<Collective>(subject), a, place...);
}

}  // namespace

int execute(const BenchOptions& arguments) {
  for (const std::string& text : arguments.subjects) check_peer(parse_subject(text), arguments);
  check_json_file(arguments);
  if (arguments.on_gpus()) return bench_on_gpus(arguments);
  std::optional<HostJob> host;
  if (arguments.on_host()) host = make_host_job(arguments);
  // All operations are checked before the first one runs.
  std::vector<std::function<void(Table&)>> work;
  for (const std::string& text : arguments.subjects) {
    BenchOptions one = arguments;
    one.subject = text;
    const Subject subject = parse_subject(text);
    work.push_back(host ? bench_of(subject, one, *host) : bench_of(subject, one));
  }
  Table table(arguments, !host || host->speaks);
  for (const auto& bench_one : work) bench_one(table);
  return table.finish();
}

}  // namespace tandem::cli
