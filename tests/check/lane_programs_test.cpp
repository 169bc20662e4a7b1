// Lanes: streams of copies beside the caller's stream, as copy-engine collectives have them.
#include "check/conformance.h"

namespace tandem::check_test {

namespace {

constexpr Size kBytes = kN * Size{sizeof(float)};

const auto write_local = [](auto& block, const Env& e) { write(block, e.local); };
const auto read_result_of_copy = [](auto& block, const Env& e) { read(block, e, e.data.local()); };
const auto await_and_read = [](auto& block, const Env& e) {
  block.wait(e.words, 1, 1);
  read(block, e, e.data.local());
};

/// Calls `body(main, lane)` on PE 0, `other(stream)` on PE 1.
template <class Body, class Other>
auto on_two_streams(Body body, Other other) {
  return [=](World& world, const Env& e) {
    Stream main = world.make_stream("main");
    Stream lane = world.make_stream("lane");
    if (world.pe() == 0) body(main, lane, e);
    if (world.pe() == 1) other(main, e);
    main.synchronize();
    lane.synchronize();
  };
}
const auto nothing = [](Stream&, const Env&) {};

void begin_and_join(Programs& p) {
  for (const bool begins : {false, true})
    p.host(begins ? "kernel, lane begins after it, copy" : "kernel, copy in a lane", !begins,
           on_two_streams(
               [begins](Stream& main, Stream& lane, const Env& e) {
                 launch(main, e, write_local);
                 if (begins) lane.wait_for(main);
                 lane.copy_async(e.data.local(), e.local, kBytes);
               },
               nothing));
  for (const bool joins : {false, true})
    p.host(joins ? "copy in a lane, main joins it, load" : "copy in a lane, load", !joins,
           on_two_streams(
               [joins](Stream& main, Stream& lane, const Env& e) {
                 lane.copy_async(e.data.local(), e.local, kBytes);
                 if (joins) main.wait_for(lane);
                 launch(main, e, read_result_of_copy);
               },
               nothing));
  for (const bool joins : {false, true})
    p.host(joins ? "copy in a lane, main joins it, store to the source" : "copy in a lane, store to the source", !joins,
           on_two_streams(
               [joins](Stream& main, Stream& lane, const Env& e) {
                 lane.copy_async(e.data.local(), e.local, kBytes);
                 if (joins) main.wait_for(lane);
                 launch(main, e, write_local);
               },
               nothing));
  p.host("an event recorded before the kernel, copy in a lane", kRacy,
         on_two_streams(
             [](Stream& main, Stream& lane, const Env& e) {
               launch(main, e, [](auto&, const Env&) {});
               const Event before = main.record();
               launch(main, e, write_local);
               lane.wait(before);
               lane.copy_async(e.data.local(), e.local, kBytes);
             },
             nothing));
}

void signals_of_lanes(Programs& p) {
  const auto await = [](Stream& stream, const Env& e) { launch(stream, e, await_and_read); };
  for (const bool same : {false, true})
    p.host(same ? "copy in a lane, its signal there | wait, load" : "copy in a lane, its signal in main | wait, load",
           !same,
           on_two_streams(
               [same](Stream& main, Stream& lane, const Env& e) {
                 lane.copy_async(e.data.on(1), e.local, kBytes);
                 (same ? lane : main).write_signal(e.words.on(1), 1);
               },
               await),
           Place::kOneNode);
  p.host("copy in a lane, main joins it, signal | wait, load", kClean,
         on_two_streams(
             [](Stream& main, Stream& lane, const Env& e) {
               lane.copy_async(e.data.on(1), e.local, kBytes);
               main.wait_for(lane);
               main.write_signal(e.words.on(1), 1);
             },
             await),
         Place::kOneNode);
  // A kernel's signals do not cover work after the kernel.
  for (const bool tells : {false, true})
    p.host(tells ? "kernel that notifies, copy, signal of it | wait for both, late load"
                 : "kernel that notifies, copy | wait for it, late load",
           !tells,
           on_two_streams(
               [tells](Stream& main, Stream&, const Env& e) {
                 launch(main, e, [](auto& block, const Env& in) { block.notify(in.words, 1, 1); });
                 main.copy_async(e.data.on(1), e.local, kBytes);
                 if (tells) main.write_signal((e.words + 1).on(1), 1);
               },
               [tells](Stream& stream, const Env& e) {
                 launch(stream, e, [tells](auto& block, const Env& in) {
                   block.wait(in.words, tells ? 2 : 1, 1);
                   be_late(block, in);
                   read(block, in, in.data.local());
                 });
               }),
           Place::kOneNode);
  // The receiver of a copy has seen its signal and says so: the source is free without a join.
  for (const bool waits : {false, true})
    p.host(waits ? "copy in a lane, answer awaited, store to the source" : "copy in a lane, answer not awaited", !waits,
           on_two_streams(
               [waits](Stream& main, Stream& lane, const Env& e) {
                 lane.copy_async(e.data.on(1), e.local, kBytes);
                 lane.write_signal(e.words.on(1), 1);
                 if (waits) launch(main, e, [](auto& block, const Env& in) { block.wait(in.words + 1, 1, 1); });
                 launch(main, e, write_local);
               },
               [](Stream& stream, const Env& e) {
                 launch(stream, e, [](auto& block, const Env& in) {
                   block.wait(in.words, 1, 1);
                   block.notify(in.words + 1, 1, 0);
                 });
               }),
           Place::kOneNode);
}

}  // namespace

void add_lane_programs(Programs& programs) {
  begin_and_join(programs);
  signals_of_lanes(programs);
}

}  // namespace tandem::check_test
