#include "check/run_once.h"

#include <new>

#include "check/detector.h"
#include "check/schedules.h"
#include "sim/run/simulator.h"
#include "tandem/error.h"

namespace tandem::checker {

namespace {

Finding failure(const char* kind, const std::string& what) {
  Finding finding;
  finding.kind = kind;
  finding.missing = what;
  return finding;
}

/// Names the actor whose exception ended the run, for the front of a message.
std::string thrown_by(Simulation& simulation) {
  const std::string& actor = simulation.simulator().engine.failed_actor();
  return actor.empty() ? actor : actor + ": ";
}

}  // namespace

Outcome run_once(const std::function<void(World&)>& program, const CheckOptions& options, std::uint64_t seed,
                 sim::Schedule& schedule, sim::Faults* faults, trace::Timeline* timeline) {
  Detector detector(options.pes, options.uninitialised_reads);
  SimOptions sim_options;
  sim_options.seed = seed;
  sim_options.pes_per_node = options.pes_per_node;
  sim_options.heap_bytes = Size{1} << 30;
  sim_options.record = timeline != nullptr;
  sim_options.seams = {&detector, faults, &schedule};
  Simulation simulation(options.machine, options.pes, sim_options);
  simulation.simulator().tile_bytes = options.tile_bytes;
  detector.attach(simulation.simulator().memory, simulation.simulator().engine);
  Outcome outcome;
  std::vector<Finding> failures;
  try {
    if (options.before) options.before();
    simulation.run([&](World& world) {
      program(world);
      if (!options.verify) return;
      if (const std::string wrong = options.verify(world); !wrong.empty()) {
        failures.push_back(failure("wrong_result", wrong));
        failures.back().pes = {world.pe()};
      }
    });
  } catch (const Deadlock& error) {
    failures.push_back(detector.explain_hang(error.what()));
  } catch (const WrongResult& error) {
    failures.push_back(failure("wrong_result", error.what()));
    failures.back().pes = {error.pe()};
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    failures.push_back(failure("error", thrown_by(simulation) + error.what()));
  } catch (...) {
    failures.push_back(failure("error", thrown_by(simulation) + "an exception that is no std::exception"));
  }
  outcome.findings = detector.findings();
  outcome.findings.insert(outcome.findings.end(), failures.begin(), failures.end());
  outcome.trace_hash = simulation.trace_hash();
  if (timeline != nullptr) *timeline = simulation.timeline();
  outcome.footprint = detector.footprint();
  outcome.operations = detector.operations();
  return outcome;
}

std::uint64_t count_points(const std::function<void(World&)>& program, const CheckOptions& options) {
  if (options.strategy == Strategy::kRandom) return 0;
  CountingSchedule undisturbed;
  run_once(program, options, 1, undisturbed, nullptr);
  return undisturbed.points();
}

}  // namespace tandem::checker
