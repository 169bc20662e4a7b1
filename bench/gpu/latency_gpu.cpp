// The time of one small call of a collective, beside the time in a benchmark of consecutive calls.
//
//   latency_gpu [--json FILE]
//
// bf16, out of place, PEs as threads, the library's selection. Times are medians in microseconds of the slowest PE. The
// columns for each size are: a call of a graph of 20, and the same without programmatic dependent launch. Then a call
// in a graph in which each call follows a kernel that it has to wait for, less that kernel. Then one call launched
// alone, between two events.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "gpu/timed_graph.h"
#include "tandem/advanced/collective_traits.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::bench {

namespace {

constexpr int kCalls = 20;
constexpr int kReplays = 25;
constexpr Size kSizes[] = {Size{1} << 10, Size{16} << 10, Size{64} << 10, Size{256} << 10};
constexpr Collective kCollectives[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                                       Collective::kAllToAll,  Collective::kBroadcast, Collective::kSendRecv};

/// One PE's times.
struct Times {
  double graph = 0;
  double behind_kernel = 0;
  double alone = 0;
};

/// A call of `collective` whose larger buffer has `bytes` bytes.
class Call {
 public:
  Call(World& world, Collective collective, Size bytes)
      : world_(world), stream_(world.make_stream("latency")), word_(world.heap().allocate<Signal>(1, "word")) {
    CollectiveOptions options;
    options.type = DType::kBF16;
    count_ = bytes / size_of(options.type) / (traits(collective).is_whole() ? world.num_pes() : 1);
    options.max_count = count_;
    plan_ = make_collective(world, collective, options);
    in_ = world.heap().allocate<std::byte>(bytes, "in");
    out_ = world.heap().allocate<std::byte>(bytes, "out");
  }

  Times measure() {
    const auto call = [&] { plan_->run(stream_, in_, out_, count_); };
    // On this PE alone: a kernel, which knows nothing of programmatic dependent launch.
    const auto kernel = [&] { stream_.write_signal(word_.local(), 1); };
    const double kernels = graph(kernel);
    Times times;
    times.graph = graph(call);
    times.behind_kernel = graph([&] {
                            kernel();
                            call();
                          }) -
                          kernels;
    times.alone = alone(call);
    return times;
  }

 private:
  double graph(const std::function<void()>& call) {
    TimedGraph graph(stream_, kCalls, call);
    for (int i = 0; i < kReplays; ++i) {
      world_.barrier();
      graph.replay();
    }
    return median(graph.us);
  }
  double alone(const std::function<void()>& call) {
    std::array<cudaEvent_t, 2> events{};
    for (cudaEvent_t& event : events) test::cuda_check(cudaEventCreate(&event), "cudaEventCreate");
    std::vector<double> us;
    for (int i = 0; i < kReplays; ++i) {
      world_.barrier();
      call();  // brings the PEs together
      test::cuda_check(cudaEventRecord(events[0], native()), "cudaEventRecord");
      call();
      test::cuda_check(cudaEventRecord(events[1], native()), "cudaEventRecord");
      stream_.synchronize();
      float ms = 0;
      test::cuda_check(cudaEventElapsedTime(&ms, events[0], events[1]), "cudaEventElapsedTime");
      us.push_back(static_cast<double>(ms) * 1000);
    }
    for (cudaEvent_t event : events) cudaEventDestroy(event);
    return median(us);
  }
  cudaStream_t native() { return static_cast<cudaStream_t>(stream_.native()); }

  World& world_;
  Stream stream_;
  Symm<Signal> word_;
  Size count_ = 0;
  std::unique_ptr<CollectivePlan> plan_;
  Symm<std::byte> in_, out_;
};

struct Row {
  Collective collective;
  Size bytes;
  Times times;  // of the slowest PE
};

std::vector<Row> measure(int pes, bool early_launch) {
  CudaOptions options;
  options.heap_bytes = Size{1} << 30;
  options.early_launch = early_launch;
  CudaThreads threads(pes, options);
  std::vector<std::vector<Row>> rows(static_cast<std::size_t>(pes));
  threads.run([&](World& world) {
    for (const Collective collective : kCollectives)
      for (const Size bytes : kSizes)
        rows[static_cast<std::size_t>(world.pe())].push_back(
            {collective, bytes, Call(world, collective, bytes).measure()});
  });
  std::vector<Row> slowest = rows[0];
  for (const auto& of_pe : rows)
    for (std::size_t i = 0; i < slowest.size(); ++i) {
      Times& all = slowest[i].times;
      all.graph = std::max(all.graph, of_pe[i].times.graph);
      all.behind_kernel = std::max(all.behind_kernel, of_pe[i].times.behind_kernel);
      all.alone = std::max(all.alone, of_pe[i].times.alone);
    }
  return slowest;
}

int run(const std::string& file) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  const int gpus = cuda_devices();
  if (gpus < 2) throw Unsupported(fmt::format("latency_gpu needs at least 2 GPUs, {} found", gpus));
  for (int pes = 2; pes <= gpus; pes *= 2) {
    const std::vector<Row> early = measure(pes, true);
    const std::vector<Row> late = measure(pes, false);
    fmt::print("{} PEs, us            bytes     graph  not early  behind a kernel  not early     alone\n", pes);
    for (std::size_t i = 0; i < early.size(); ++i) {
      const Row& row = early[i];
      fmt::print("{:<16} {:>11} {:>9.2f} {:>10.2f} {:>16.2f} {:>10.2f} {:>9.2f}\n", name(row.collective), row.bytes,
                 row.times.graph, late[i].times.graph, row.times.behind_kernel, late[i].times.behind_kernel,
                 row.times.alone);
      json.push_back({{"op", name(row.collective)},
                      {"bytes", row.bytes},
                      {"pes", pes},
                      {"graph_us", row.times.graph},
                      {"graph_not_early_us", late[i].times.graph},
                      {"behind_kernel_us", row.times.behind_kernel},
                      {"behind_kernel_not_early_us", late[i].times.behind_kernel},
                      {"alone_us", row.times.alone}});
    }
  }
  if (!file.empty()) std::ofstream(file) << json.dump(2) << '\n';
  return 0;
}

}  // namespace

}  // namespace tandem::bench

int main(int argc, char** argv) {
  try {
    const bool has_file = argc == 3 && std::string(argv[1]) == "--json";
    if (argc > 1 && !has_file) throw tandem::InvalidArgument("latency_gpu: allowed is --json FILE");
    return tandem::bench::run(has_file ? argv[2] : "");
  } catch (const std::exception& error) {
    fmt::print(stderr, "latency_gpu: {}\n", error.what());
    return 2;
  }
}
