#include "tools/tandem/host/host_job.h"

#include <fmt/format.h>

#include "host/processors.h"
#include "tandem/error.h"
#include "tandem/worlds.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/main/setup.h"

namespace tandem::cli {

namespace {

constexpr int kDefaultPes = 4;

void check_memory(double bytes_per_pe, int pes) {
  const double real = computer_memory();
  constexpr double gib = 1 << 30;
  if (bytes_per_pe * pes > real)
    throw InvalidArgument(
        fmt::format("the data of {} PEs takes {:.1f} GiB, this computer has {:.1f} GiB: a smaller size", pes,
                    bytes_per_pe * pes / gib, real / gib));
}

}  // namespace

HostJob make_host_job(const Arguments& a) {
  HostJob job;
  static_cast<JobPlace&>(job) = place_of_job(a, kDefaultPes);
  job.seed = a.seed;
  return job;
}

void HostJob::run(double bytes_per_pe, const std::function<void(World&, Shared&)>& program,
                  const OnTimeline& on_timeline) const {
  check_memory(bytes_per_pe, pes);
  WorldOptions options;
  options.kind = DeviceKind::kHost;
  // A plan's staging is at most a few times the buffers. Memory is taken when it is touched.
  options.heap_bytes = static_cast<Size>(4 * bytes_per_pe) + (Size{1} << 30);
  options.record.on = on_timeline != nullptr;
  const auto with_shared = [&](World& world) {
    Shared shared(world);
    program(world, shared);
  };
  if (by_processes) {
    WorldProcess process(placement_from_environment(), options);
    with_shared(process.world());
    if (!on_timeline) return;
    const trace::Timeline& timeline = process.timeline();
    if (speaks) on_timeline(timeline, process.profile_info());
    return;
  }
  WorldThreads threads(pes, options);
  threads.run(with_shared);
  if (on_timeline) on_timeline(threads.timeline(), threads.profile_info());
}

HostJob::OnTimeline HostJob::to_pictures(const Result& result, const CallWindow& window) const {
  if (pictures == nullptr || !pictures->wanted()) return nullptr;
  return [&result, &window, this](const trace::Timeline& timeline, const ProfileInfo& info) {
    pictures->add(result.algorithm, timeline, window);
    if (info.lost_operations + info.lost_work > 0)
      complain(fmt::format("the timeline lacks {} operations, and {} launches or copies", info.lost_operations,
                           info.lost_work));
  };
}

std::string HostJob::machine() { return fmt::format("host, {} CPUs", host::processors()); }

void HostJob::describe(Result& result, int nodes) const {
  result.backend = "host";
  result.machine = nodes == 1 ? machine() : fmt::format("{}, {} nodes", machine(), nodes);
  result.seed = seed;
}

}  // namespace tandem::cli
