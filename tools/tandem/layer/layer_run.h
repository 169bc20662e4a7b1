#pragma once
/// `tandem run` and `tandem bench` of the calls of include/tandem/layer, which have options and buffers of their own.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/advanced/option_choice.h"
#include "tandem/layer/expert_gemms.h"
#include "tandem/world.h"
#include "tools/tandem/host/host_job.h"
#include "tools/tandem/main/setup.h"
#include "tools/tandem/options/progress.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/run/result.h"
#include "tools/tandem/run/run_options.h"

namespace tandem::cli {

/// One PE's plan, buffers and data.
class LayerCall {
 public:
  virtual ~LayerCall() = default;
  /// Makes the plan and the buffers, and writes the inputs.
  virtual void begin(World& world) = 0;
  /// Enqueues one call, which leaves the inputs as they are.
  virtual void call(Stream& stream) = 0;
  /// Compares the outputs of this PE.
  virtual void verify(World& world, Check& check) = 0;
  /// The bytes of a PE's buffers.
  virtual double bytes_per_pe() const = 0;
  virtual std::string algorithm() const = 0;
  virtual std::vector<OptionChoice> choices() const = 0;
};

/// The choices that `tandem tune` has for a call.
struct LayerChoices {
  std::string op;           ///< see tune::LayerOp
  Size bytes_per_unit = 0;  ///< of a PE's input, for each row or each entry of the batch
  Size parts_per_unit = 1;  ///< More blocks than such parts have nothing to do.
  Size element_bytes = 0;
  std::vector<std::string> algorithms;  ///< the values of --algo; an empty one: the call has no other
  std::vector<int> blocks;
};

/// All properties of a run.
struct LayerRun {
  std::string unit;  ///< the name of its size, which bench varies: "rows"
  Size size = 0;
  std::function<std::unique_ptr<LayerCall>(Size size, int pes)> make;
  /// Returns the parts of a result that do not depend on where it ran.
  std::function<Result(Size size)> describe;
  int warmups = 1;
  int iterations = 1;
  bool explain = false;
  std::optional<LayerChoices> choices = {};  ///< none: the call has one form
  /// Calls of experts have it: the problem of a size, by which `tandem tune` stores their times.
  std::function<ExpertGemmOptions(Size size)> experts = {};
  std::function<void(const World&)> on_world = {};  ///< if set, PE 0 calls it in each world before the plan is made
};

/// A kind of call.
struct LayerSubject {
  const char* name;
  /// Throws InvalidArgument for options that are invalid or do not apply.
  LayerRun (*make)(const Arguments& arguments);
};
/// Returns all kinds.
const std::vector<LayerSubject>& layer_subjects();

LayerRun make_norm_run(const Arguments& arguments);
LayerRun make_heads_run(const Arguments& arguments);
LayerRun make_exchange_run(const Arguments& arguments);
LayerRun make_dispatch_run(const Arguments& arguments);
LayerRun make_combine_run(const Arguments& arguments);
LayerRun make_dispatch_gemm_run(const Arguments& arguments);
LayerRun make_gemm_combine_run(const Arguments& arguments);

/// Returns the run of `tandem run`.
LayerRun make_layer_run(const LayerSubject& subject, const RunOptions& options);
/// Returns the parts of a Progress for `run_layer`: its calls.
inline int parts_of(const LayerRun& run) { return run.warmups + run.iterations; }
/// Runs it in the simulator and checks every element on every PE. Records if `pictures` needs it.
Result run_layer(const LayerRun& run, Size size, Setup setup, Pictures& pictures, Progress& progress);
/// Runs it on CPUs and checks every element on every PE. The time is the slowest PE's.
Result run_layer_on_host(const LayerRun& run, Size size, const HostJob& job);

/// The lines of a table of `tandem bench`.
std::string layer_header(const LayerRun& run);
std::string layer_row(Size size, const Result& result);

/// Copies memory of a device to the host.
std::vector<std::byte> host_copy(World& world, const void* memory, Size bytes);
/// Allocates memory of this PE with these contents, if the world holds data.
std::byte* local_copy(World& world, Size bytes, const char* what, const std::function<std::vector<std::byte>()>& data);

}  // namespace tandem::cli
