#include "tools/tandem/gpu/job.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "tandem/cuda.h"
#include "tandem/error.h"
#include "tools/tandem/main/commands.h"

namespace tandem::cli {

namespace {

std::string nccl_file(const Arguments& a) {
  if (a.nccl) return *a.nccl;
  const char* const file = std::getenv("TANDEM_NCCL_LIBRARY");
  return file != nullptr ? file : "libnccl.so.2";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

/// Rounds microseconds as results print them.
double rounded(double us) { return std::round(us * 1000) / 1000; }

using Program = std::function<void(World&, Shared&, NcclPeer*)>;
using Measure = std::function<void(World&, CollectiveBenchmark&)>;

void call(World& world, const GpuJob& job, const Program& program) {
  Shared shared(world);
  std::unique_ptr<NcclPeer> nccl;
  if (job.nccl) nccl = std::make_unique<NcclPeer>(*job.nccl, world, shared);
  program(world, shared, nccl.get());
}

void measure(World& world, const GpuJob& job, const Measure& program,
             const CollectiveBenchmark::Register& registered = nullptr) {
  call(world, job, [&](World& own, Shared& shared, NcclPeer* nccl) {
    CollectiveBenchmark turns(own, shared, nccl, job.method, std::max<Size>(job.largest(), 1), registered);
    program(own, turns);
  });
}

using OnTimeline = std::function<void(const trace::Timeline&, const ProfileInfo&)>;

/// The part of this process in a world of processes.
void run_process(const GpuJob& job, const CudaOptions& options, const Measure& program, const OnTimeline& on_timeline) {
  CudaProcess process(placement_from_environment(), options);
  if (job.record) process.record(false);
  const auto and_record = [&](World& own, CollectiveBenchmark& turns) {
    program(own, turns);
    if (job.record) turns.record_call([&](bool on) { process.record(on); });
  };
  measure(process.world(), job, and_record,
          [&](void* memory, Size bytes) { return process.register_buffer(memory, bytes); });
  if (!job.record) return;
  const trace::Timeline& timeline = process.timeline();
  if (job.speaks) on_timeline(timeline, process.profile_info());
}

}  // namespace

std::string GpuJob::machine() const {
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  const int gpus = std::min(pes, cuda_devices());
  return fmt::format("{} x{}", properties.name, gpus);
}

GpuJob make_gpu_job(const Arguments& a, const std::vector<std::string>& subjects, std::vector<Size> sizes) {
  GpuJob job;
  const int gpus = cuda_devices();
  if (gpus == 0) throw Unsupported("--backend: 'cuda' given, but this machine has no GPU, or no NVIDIA driver");
  static_cast<JobPlace&>(job) = place_of_job(a, gpus);
  job.early_launch = !a.late;
  job.method.graph = a.graph;
  job.method.calls = a.calls.value_or(job.method.calls);
  job.method.rounds = a.iterations;
  job.method.warmups = a.warmups;
  job.method.seed = a.seed;
  if (a.buffers == "registered") job.method.buffers = GpuBuffers::kRegistered;
  if (a.buffers == "plain") job.method.buffers = GpuBuffers::kPlain;
  if (job.method.buffers == GpuBuffers::kRegistered && !job.by_processes)
    throw Unsupported("--buffers: registered given, but these PEs are threads; `tandem launch` makes processes");
  for (const std::string& text : subjects) {
    const Subject subject = parse_subject(text);
    if (std::holds_alternative<Operator>(subject))
      throw InvalidArgument(fmt::format("OP: '{}' given, allowed here are collectives", text));
    Arguments one = a;
    one.subject = text;
    job.runs.push_back(make_collective_run(std::get<Collective>(subject), one, job.pes));
  }
  job.sizes = std::move(sizes);
  // Heap for in, out and inputs. Plans of reductions may stage the same amount again for each size.
  job.heap_bytes = 8 * job.largest() + (Size{1} << 30);
  if (a.versus) job.nccl = std::make_shared<NcclLibrary>(nccl_file(a));
  return job;
}

void run_worlds(const GpuJob& job, const std::function<void(World&, Shared&, NcclPeer*)>& program) {
  CudaOptions options;
  options.heap_bytes = job.heap_bytes;
  options.early_launch = job.early_launch;
  if (job.by_processes) {
    CudaProcess process(placement_from_environment(), options);
    call(process.world(), job, program);
    return;
  }
  CudaThreads(job.pes, options).run([&](World& world) { call(world, job, program); });
}

void run_job(const GpuJob& job, const std::function<void(World&, CollectiveBenchmark&)>& program,
             const std::function<void(const trace::Timeline&, const ProfileInfo&)>& on_timeline) {
  CudaOptions options;
  options.heap_bytes = job.heap_bytes;
  options.early_launch = job.early_launch;
  options.record.on = job.record;
  if (job.by_processes) return run_process(job, options, program, on_timeline);
  CudaThreads threads(job.pes, options);
  threads.run([&](World& world) {
    if (job.record) threads.record(world.pe(), false);
    measure(world, job, [&](World& own, CollectiveBenchmark& turns) {
      program(own, turns);
      if (job.record) turns.record_call([&](bool on) { threads.record(own.pe(), on); });
    });
  });
  if (job.record) on_timeline(threads.timeline(), threads.profile_info());
}

nlohmann::ordered_json result_head(const GpuJob& job, const Arguments& a) {
  nlohmann::ordered_json json;
  json["machine"] = job.machine();
  json["date"] = today();
  json["command"] = a.command_line;
  json["early_launch"] = job.early_launch;
  json["by"] = job.by_processes ? "processes" : "threads";
  json["calls"] = job.method.calls;
  json["nccl"] = job.nccl ? nlohmann::ordered_json(job.nccl->version()) : nlohmann::ordered_json(nullptr);
  json["rows"] = nlohmann::ordered_json::array();
  return json;
}

nlohmann::ordered_json result_row(const GpuJob& job, const CollectiveRun& run, const GpuSize& size, const GpuRow& row) {
  nlohmann::ordered_json json;
  json["op"] = name(run.collective);
  json["predicted"] = false;
  json["bytes"] = size.bytes;
  json["pes"] = job.pes;
  json["dtype"] = name(run.options.type);
  json["redop"] = reduces(run.collective) ? nlohmann::ordered_json(name(run.options.op)) : nlohmann::ordered_json();
  json["algorithm"] = row.algorithm;
  if (run.options.wire != WireFormat::kType) json["wire"] = name(run.options.wire);
  json["blocks"] = row.blocks;
  json["in_place"] = run.in_place;
  json["graph"] = job.method.graph;
  json["buffers"] = name_of(job.method.buffers);
  json["by"] = job.by_processes ? "processes" : "threads";
  json["selected"] = row.selected;
  json["tandem_us"] = rounded(row.us);
  json["peers"] = nlohmann::ordered_json::object();
  for (const auto& [peer, us] : size.peers) json["peers"][peer] = rounded(us);
  json["checked"] = row.check.checked;
  json["wrong"] = row.check.wrong;
  return json;
}

}  // namespace tandem::cli
