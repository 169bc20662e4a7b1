// The critical path names where the time of real runs went: every collective's algorithms and every operator's forms.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>

#include "tandem/advanced/collective_traits.h"
#include "tandem/operators.h"
#include "tandem/simulation.h"
#include "trace/timeline/path_parts.h"

namespace tandem::trace {
namespace {

/// Packets carry their flags beside real data, also in a phantom run: they take time to test.
Size bytes_for(const std::string& algorithm) {
  const bool packets = algorithm == "ll" || algorithm.ends_with("_ll") || algorithm.ends_with("ll128");
  // Its rings of several blocks send small pieces, so that latency is a tenth of 128 MB.
  if (algorithm == "multi_ring") return Size{256} << 20;
  return Size{packets ? 16 : 128} << 20;
}

struct Place {
  const char* name;
  const char* machine;
  int pes;
};
constexpr Place kPlaces[] = {{"OneNode", "h200x4", 4}, {"TwoNodes", "h100x8-rail", 16}};

Timeline recorded(const Place& place, const std::function<void(World&, Stream&)>& work) {
  SimOptions options;
  options.phantom = true;
  options.record = true;
  options.heap_bytes = Size{8} << 30;
  Simulation simulation(load_machine(place.machine), place.pes, options);
  simulation.run([&](World& world) {
    Stream stream = world.make_stream("main");
    work(world, stream);
  });
  Timeline timeline = simulation.timeline();
  timeline.end = timeline.begin;  // messages for which no PE waits may arrive later
  for (const Span& span : timeline.spans)
    if (!is_resource(timeline.lanes[span.lane].kind)) timeline.end = std::max(timeline.end, span.end);
  return timeline;
}

/// The largest share of the time for which a link or NIC moved bytes.
double busiest(const Timeline& timeline) {
  const auto uses = lane_use(timeline);
  Time most = 0;
  for (std::size_t i = 0; i < uses.size(); ++i)
    if (is_resource(timeline.lanes[i].kind)) most = std::max(most, uses[i].busy);
  return static_cast<double>(most) / static_cast<double>(timeline.duration());
}

void expect_explained(const Timeline& timeline, bool latency_explains = false) {
  const auto path = critical_path(timeline);
  ASSERT_FALSE(path.empty());
  std::string said;
  Time idle = 0;
  Time latency = 0;
  for (const PathShare& share : path_shares(timeline, path_parts(timeline, path))) {
    if (share.cause == PathCause::kIdle) idle += share.time;
    if (share.cause == PathCause::kLatency) latency += share.time;
    said += share.name + " " + std::to_string(100 * share.time / timeline.duration()) + "%, ";
  }
  EXPECT_LE(idle, timeline.duration() / 50) << said;
  if (latency_explains || busiest(timeline) < 0.75) return;  // not bound by bandwidth
  EXPECT_LE(idle + latency, timeline.duration() / 10) << said;
}

bool op_is_message(Collective collective) {
  return collective == Collective::kSendRecv || collective == Collective::kExchange;
}

class ExplainedCollectives : public ::testing::TestWithParam<std::tuple<Place, Collective>> {};

TEST_P(ExplainedCollectives, NameWhereTheTimeWent) {
  const auto& [place, collective] = GetParam();
  for (const AlgorithmInfo& info : collective_algorithms()) {
    const bool runs = !info.one_node_only || place.pes <= 8;
    if (info.collective != collective || !runs || info.name == "multimem") continue;
    SCOPED_TRACE(info.name);
    const Size bytes = bytes_for(info.name);
    const Timeline timeline = recorded(place, [&, &op = collective, &where = place](World& world, Stream& stream) {
      const Size count = bytes / 4 / (traits(op).is_whole() ? where.pes : 1);
      const auto in = world.heap().allocate<std::byte>(bytes, "in");
      const auto out = world.heap().allocate<std::byte>(bytes, "out");
      const auto plan = make_collective(world, op, {.max_count = count, .algorithm = info.name});
      plan->run(stream, in, out, count);
      stream.synchronize();  // before the plan goes
    });
    // Credits of grouped messages take the latency between nodes for each of few slots, while others keep the NIC busy.
    // Credits of packets and of a stream's slots do the same within a node.
    const bool latency_too = (info.name == "grouped" && place.pes > 8) ||
                             (info.name == "ll128" && op_is_message(collective)) || info.name == "stream";
    expect_explained(timeline, latency_too);
  }
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Place, Collective>>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + name(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(All, ExplainedCollectives,
                         ::testing::Combine(::testing::ValuesIn(kPlaces),
                                            ::testing::ValuesIn(all_collectives().begin(), all_collectives().end())),
                         name_of);

class ExplainedOperators : public ::testing::TestWithParam<std::tuple<Place, Operator>> {};

TEST_P(ExplainedOperators, NameWhereTheTimeWent) {
  const auto& [place, op] = GetParam();
  for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed, Form::kCommunicationOnly}) {
    SCOPED_TRACE(name(form));
    // Between nodes a collective of few chunks waits for the latency of each.
    const bool latency_too = form == Form::kCommunicationOnly && place.pes > 8;
    const auto run = [&, which = op](World& world, Stream& stream) {
      OperatorOptions options;
      options.m = options.k = 4096;
      options.n = 8192;
      options.form = form;
      const auto plan = make_operator(world, which, options);
      const auto memory = [&](const char* name) {
        return world.heap().allocate_local<std::byte>(Size{128} << 20, name);
      };
      plan->run(stream, memory("a"), memory("b"), memory("c"));
      stream.synchronize();  // before the plan goes
    };
    expect_explained(recorded(place, run), latency_too);
  }
}

std::string name_of_operator(const ::testing::TestParamInfo<std::tuple<Place, Operator>>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + name(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(All, ExplainedOperators,
                         ::testing::Combine(::testing::ValuesIn(kPlaces),
                                            ::testing::Values(Operator::kAllGatherGemm, Operator::kGemmReduceScatter,
                                                              Operator::kGemmAllReduce)),
                         name_of_operator);

}  // namespace
}  // namespace tandem::trace
