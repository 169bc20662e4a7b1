#include "tandem/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "runtime/mismatch_detector.h"
#include "sim/run/simulator.h"
#include "sim/run/timeline_profiler.h"
#include "sim/transfer/stream.h"
#include "tandem/error.h"

namespace tandem {

namespace sim {

/// Host programs meet here.
struct HostBarrier {
  int size = 0;
  std::vector<sim::Actor*> waiting = {};
};

class SimWorld : public detail::WorldBackend {
 public:
  SimWorld(sim::Simulator& simulator, int pe, HostBarrier& barrier, CallRecords& records)
      : sim_(simulator),
        pe_(pe),
        barrier_(barrier),
        calls_(pe, [&records](int other, std::size_t plan) { return records.of(other, plan); }),
        host_(simulator.seams.monitor == nullptr ? sim::kNoThread : simulator.seams.monitor->add_host(pe)) {}

  Team team() const override { return sim_.world_team(pe_); }
  const Machine& machine() const override { return sim_.machine; }
  DeviceKind device() const override { return sim_.device; }
  bool phantom() const override { return sim_.phantom; }
  Size stride() const override { return sim_.memory.stride(); }
  std::optional<Size> bytes_from(const void* memory) const override { return sim_.memory.bytes_from(memory); }
  void* allocate_symmetric(Size bytes, const std::string& name, Size element_bytes, bool control) override {
    if (sim_.memory.can_grow()) barrier();
    if (sim_.memory.needs_barrier(pe_, kind(control), bytes)) {
      barrier();
      sim_.memory.reclaim();
    }
    void* const memory = sim_.memory.allocate_symmetric(pe_, kind(control), bytes, name, element_bytes);
    meet(fmt::format("the allocation of '{}'", name), [](sim::Engine& engine, std::vector<sim::Actor*> waiting) {
      // All go on in the order of their arrival, as if none had waited: allocations change no trace hash.
      waiting.push_back(engine.current());
      for (sim::Actor* actor : waiting) engine.wake_first(*actor);
      engine.block(nullptr);
    });
    return memory;
  }
  void* allocate_local(Size bytes, const std::string& name, Size element_bytes, bool control) override {
    return sim_.memory.allocate_local(pe_, kind(control), bytes, name, element_bytes);
  }
  void free_symmetric(const void* memory) override {
    if (Fiber::unwinding()) return;  // no other program arrives any more
    barrier();
    sim_.memory.free_symmetric(pe_, memory);
  }
  void release_symmetric(const void* memory) override { sim_.memory.release_symmetric(pe_, memory); }
  void free_local(const void* memory) override { sim_.memory.free_local(pe_, memory); }
  void copy_in(void* to, const void* from, Size bytes) override {
    check_range("copy_in", to, from, bytes);
    report_access(sim::AccessKind::kHostStore, to, bytes);
    if (sim_.memory.backed(to)) copy(to, from, bytes);
  }
  void copy_out(void* to, const void* from, Size bytes) override {
    check_range("copy_out", from, to, bytes);
    report_access(sim::AccessKind::kHostLoad, from, bytes);
    if (sim_.memory.backed(from)) copy(to, from, bytes);
  }
  std::shared_ptr<detail::StreamBackend> make_stream(const std::string& name) override {
    auto stream = std::make_shared<sim::SimStream>(sim_, pe_, name);
    streams_.push_back(stream);
    return stream;
  }
  void check_launch(const detail::KernelLaunch& kernel) const override { sim::check_launch(sim_.machine, kernel); }
  void barrier() override {
    meet("a host barrier", [](sim::Engine& engine, const std::vector<sim::Actor*>& waiting) {
      for (sim::Actor* actor : waiting) engine.wake(*actor, engine.now());
    });
  }
  double time_us() const override { return sim::to_us(sim_.engine.now()); }
  MismatchDetector* calls() override { return &calls_; }

 private:
  /// Waits for all host programs. The last one to arrive calls go_on(engine, waiting actors).
  template <class GoOn>
  void meet(const std::string& where, const GoOn& go_on) {
    sim::Engine& engine = sim_.engine;
    if (engine.current() == nullptr)
      throw InvalidArgument(fmt::format("{}: allowed within a host program's run alone", where));
    if (Fiber::unwinding()) return;
    if (static_cast<int>(barrier_.waiting.size()) + 1 < barrier_.size) {
      barrier_.waiting.push_back(engine.current());
      engine.block([this, &where] {
        return fmt::format("waits in {}: {} of {} are here", where, barrier_.waiting.size(), barrier_.size);
      });
      return;
    }
    if (sim_.seams.monitor != nullptr) sim_.seams.monitor->host_barrier();
    go_on(engine, std::exchange(barrier_.waiting, {}));
  }
  void report_access(sim::AccessKind kind, const void* address, Size bytes) const {
    if (sim_.seams.monitor != nullptr && bytes > 0) sim_.seams.monitor->access(host_, {kind, address, bytes}, site);
  }
  /// `of_pe`: the end in a PE's memory.
  void check_range(const char* call, const void* of_pe, const void* of_host, Size bytes) const {
    if (bytes < 0) throw InvalidArgument(fmt::format("{}: {} bytes given, must not be negative", call, bytes));
    if (bytes > 0 && (!sim_.is_usable(of_pe, bytes) || of_host == nullptr))
      throw InvalidArgument(
          fmt::format("{}: {} bytes between {} and {} given, allowed is a buffer in one PE's memory{} and the host's",
                      call, bytes, sim_.memory.describe(of_pe), of_host, sim_.memory.describe_size(of_pe)));
  }
  static MemoryKind kind(bool control) { return control ? MemoryKind::kControl : MemoryKind::kData; }
  static void copy(void* to, const void* from, Size bytes) {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

  sim::Simulator& sim_;
  int pe_;
  HostBarrier& barrier_;
  MismatchDetector calls_;
  const sim::Thread host_;                                // the monitor's
  std::vector<std::shared_ptr<sim::SimStream>> streams_;  // work may outlive the program's handle
};

}  // namespace sim

namespace {

/// A machine that a simulation can ask for its figures.
const Machine& with_figures(const Machine& machine) {
  if (machine.gpu.sm_count < 1 || machine.gpu.block_hbm_gbps.points.empty() || machine.link.store_gbps.points.empty() ||
      machine.link.load_gbps.points.empty())
    throw InvalidArgument(
        fmt::format("machine: '{}' given, which has no figures; load_machine gives one", machine.name));
  return machine;
}

}  // namespace

class Simulation::TimelineProfiler : public sim::TimelineProfiler {};

struct Simulation::Hosts {
  sim::HostBarrier barrier;
  CallRecords records;
  std::vector<std::unique_ptr<sim::SimWorld>> backends = {};
  std::vector<std::unique_ptr<World>> worlds = {};
};

Simulation::Simulation(const Machine& machine, int pes, const SimOptions& options)
    : profiler_(options.record ? std::make_unique<TimelineProfiler>() : nullptr),
      simulator_(std::make_unique<sim::Simulator>(with_figures(machine), pes, options.pes_per_node, options.seed,
                                                  options.phantom, options.graph, options.heap_bytes,
                                                  options.heap_limit_bytes, profiler_.get(), options.seams)) {
  simulator_->device = options.plan_for;
  log_line(LogLevel::kInfo, [&] { return fmt::format("world of {} simulated PEs of {}", pes, machine.name); });
  if (profiler_) {
    profiler_->timeline.machine = machine.name;
    profiler_->timeline.pes_per_node = simulator_->topology.pes_per_node();
    profiler_->timeline.predicted = true;
    profiler_->describe = [this](const void* address) { return simulator_->memory.describe(address); };
    profiler_->timeline.pes = pes;
  }
}

Simulation::~Simulation() = default;

void Simulation::run(const std::function<void(World&)>& program) {
  if (!program) throw InvalidArgument("program: none given");
  if (std::exchange(has_run_, true)) throw InvalidArgument("run: a simulation runs once; make another one");
  sim::Engine& engine = simulator_->engine;
  hosts_.reset(new Hosts{{.size = simulator_->num_pes()}, CallRecords(simulator_->num_pes())});
  auto& [barrier, records, backends, worlds] = *hosts_;
  for (int pe = 0; pe < simulator_->num_pes(); ++pe) {
    backends.push_back(std::make_unique<sim::SimWorld>(*simulator_, pe, barrier, records));
    worlds.push_back(std::make_unique<World>(*backends.back()));
    sim::Actor& host = engine.spawn(
        simulator_->late(sim::Schedule::Point::kHostStart, pe),
        [this, pe, &program, &world = *worlds.back()] {
          program(world);
          simulator_->pes[static_cast<std::size_t>(pe)].program_has_ended = true;
        },
        true);
    host.name = [pe] { return fmt::format("PE {} host program", pe); };
  }
  engine.run();
  for (const auto& stream : simulator_->streams)
    if (!stream().empty()) throw Deadlock(simulator_->describe_deadlock({}));
  simulator_->network.check_all_moved(engine.now());
  if (profiler_) profiler_->timeline.end = engine.now();
}

double Simulation::time_us() const { return sim::to_us(simulator_->engine.now()); }
std::uint64_t Simulation::trace_hash() const { return simulator_->engine.trace_hash(); }
std::uint64_t Simulation::events() const { return simulator_->engine.events(); }

std::vector<ResourceUse> Simulation::resource_use() const {
  const auto end = static_cast<double>(std::max<sim::Time>(1, simulator_->engine.now()));
  const auto& resources = simulator_->topology.resources();
  std::vector<ResourceUse> use;
  for (std::size_t i = 0; i < resources.size(); ++i)
    use.push_back({resources[i].name, static_cast<double>(simulator_->network.busy()[i]) / end});
  return use;
}

const trace::Timeline& Simulation::timeline() const {
  if (!profiler_) throw InvalidArgument("timeline: the simulation was not made with SimOptions::record");
  return profiler_->timeline;
}

}  // namespace tandem
