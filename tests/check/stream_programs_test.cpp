// Blocks and roles, streams, copy engines and host programs.
#include "check/conformance.h"

namespace tandem::check_test {

namespace {

void within_a_kernel(Programs& p) {
  p.kernel(
      "two blocks, one place", kRacy, [](auto& block, const Env& e) { write(block, e.local); }, Place::kEverywhere, 2);
  p.kernel(
      "two blocks, a part each", kClean,
      [](auto& block, const Env& e) { write(block, e.local, split(kN, block.count())[block.index()]); },
      Place::kEverywhere, 2);
  for (const bool apart : {false, true})
    p.kernel(apart ? "two roles, a part each" : "two roles, one place", !apart, [apart](auto& block, const Env& e) {
      block.template parallel<4, 4>(
          [&](auto& role) {
            write(role, e.local, {0, kN / 2});
          },
          [&](auto& role) {
            write(role, e.local, {apart ? kN / 2 : 0, kN});
          });
    });
  p.kernel("roles write, the block reads", kClean, [](auto& block, const Env& e) {
    block.template parallel<4, 4>(
        [&](auto& role) {
          write(role, e.local, {0, kN / 2});
        },
        [&](auto& role) {
          write(role, e.local, {kN / 2, kN});
        });
    read(block, e, e.local);
  });
  for (const bool waits : {false, true})
    p.kernel(waits ? "a role writes, notify | wait, another reads" : "a role writes | another reads", !waits,
             [waits](auto& block, const Env& e) {
               block.template parallel<4, 4>(
                   [&](auto& role) {
                     write(role, e.local);
                     role.notify(e.words, 1, role.pe());
                   },
                   [&](auto& role) {
                     if (waits) role.wait(e.words, 1, 1);
                     read(role, e, e.local);
                   });
             });
}

void between_streams(Programs& p) {
  const auto write_it = [](auto& block, const Env& e) { write(block, e.local); };
  const auto read_it = [](auto& block, const Env& e) { read(block, e, e.local); };
  p.host("one stream", kClean, [=](World& world, const Env& e) {
    Stream stream = world.make_stream("main");
    launch(stream, e, write_it);
    launch(stream, e, read_it);
    stream.synchronize();
  });
  for (const bool event : {false, true})
    p.host(event ? "two streams and an event" : "two streams", !event, [=](World& world, const Env& e) {
      Stream first = world.make_stream("first");
      Stream second = world.make_stream("second");
      launch(first, e, write_it);
      if (event) second.wait_for(first);
      launch(second, e, read_it);
      first.synchronize();
      second.synchronize();
    });
  for (const bool synchronize : {false, true})
    p.host(synchronize ? "kernel, synchronize, copy_out" : "kernel, copy_out", !synchronize,
           [=](World& world, const Env& e) {
             Stream stream = world.make_stream("main");
             launch(stream, e, write_it);
             if (synchronize) stream.synchronize();
             std::vector<float> host(kN);
             world.copy_out(host.data(), e.local, kN * Size{sizeof(float)});
             stream.synchronize();
           });
}

void copy_engines(Programs& p) {
  const auto wait_and_read = [](auto& block, const Env& e) {
    block.wait(e.words, 1, 1);
    read(block, e, e.data.local());
  };
  for (const bool after : {false, true})
    p.host(
        after ? "copy, write_signal | wait, load" : "write_signal, copy | wait, load", !after,
        [=](World& world, const Env& e) {
          Stream stream = world.make_stream("main");
          const Size bytes = kN * Size{sizeof(float)};
          if (world.pe() == 0) {
            if (after) stream.copy_async(e.data.on(1), e.local, bytes);
            stream.write_signal(e.words.on(1), 1);
            if (!after) stream.copy_async(e.data.on(1), e.local, bytes);
          }
          if (world.pe() == 1) launch(stream, e, wait_and_read);
          stream.synchronize();
        },
        Place::kOneNode);
  for (const bool waits : {false, true})
    p.host(
        waits ? "copy, write_signal | wait_signal, copy on" : "copy, write_signal | copy on", !waits,
        [=](World& world, const Env& e) {
          Stream stream = world.make_stream("main");
          const Size bytes = kN * Size{sizeof(float)};
          if (world.pe() == 0) {
            stream.copy_async(e.data.on(1), e.local, bytes);
            stream.write_signal(e.words.on(1), 1);
          }
          if (world.pe() == 1) {
            if (waits) stream.wait_signal(e.words.local(), 1);
            stream.copy_async(e.other.on(2), e.data.local(), bytes);
          }
          stream.synchronize();
        },
        Place::kOneNode);
}

}  // namespace

void add_stream_programs(Programs& programs) {
  within_a_kernel(programs);
  between_streams(programs);
  copy_engines(programs);
}

}  // namespace tandem::check_test
