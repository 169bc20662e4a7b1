// The order of signals, the meaning of acknowledgements for earlier writes, and the limits of a fence.
#include "check/conformance.h"

namespace tandem::check_test {

namespace {

/// Blocks for ever, which is a finding, where the word is not what it must be.
template <class Block>
void require(Block& block, const Env& e, Signals word, Cmp cmp, Epoch value) {
  if (!block.signal_test(word, cmp, value)) block.wait(e.words + 15, 1, 1);
}

enum class Between { kNothing, kFence, kQuiet };

template <class Block>
void order(Block& block, Between what) {
  if (what == Between::kFence) block.fence();
  if (what == Between::kQuiet) block.quiet();
}

void signals(Programs& p) {
  const auto two = [&p](const char* name, bool racy, Between between) {
    p.kernel(name, racy, [between](auto& block, const Env& e) {
      if (block.pe() == 0) {
        block.signal(e.words, 1, 1);
        order(block, between);
        block.signal(e.words + 1, 1, 1);
      }
      if (block.pe() != 1) return;
      block.wait(e.words + 1, 1, 1);
      require(block, e, e.words, Cmp::kGe, 1);
    });
  };
  two("two signals | wait for the second, test of the first", kRacy, Between::kNothing);
  two("two signals, a fence between | wait for the second, test of the first", kClean, Between::kFence);
  two("two signals, quiet between | wait for the second, test of the first", kClean, Between::kQuiet);
  for (const bool with_data : {false, true})
    p.kernel(with_data ? "put_signal, notify | wait for the second, test of the first"
                       : "signal, notify | wait for the second, test of the first",
             kClean, [with_data](auto& block, const Env& e) {
               if (block.pe() == 0) {
                 if (with_data)
                   block.put_signal(e.data, e.local, kN, e.words, 1, 1);
                 else
                   block.signal(e.words, 1, 1);
                 block.notify(e.words + 1, 1, 1);
               }
               if (block.pe() != 1) return;
               block.wait(e.words + 1, 1, 1);
               require(block, e, e.words, Cmp::kGe, 1);
             });
  p.kernel(
      "notify, notify to a third PE | wait, notify | wait, test of the first", kClean,
      [](auto& block, const Env& e) {
        if (block.pe() == 0) {
          block.notify(e.words, 1, 1);
          block.notify(e.words, 1, 2);
        }
        if (block.pe() == 2) {
          block.wait(e.words, 1, 1);
          block.notify(e.words + 1, 1, 1);
        }
        if (block.pe() != 1) return;
        block.wait(e.words + 1, 1, 1);
        require(block, e, e.words, Cmp::kGe, 1);
      },
      Place::kOneNode);
  p.kernel("put_signal | wait, own reset by a signal, barrier, again", kClean, [](auto& block, const Env& e) {
    for (int round = 0; round < 3; ++round) {
      if (block.pe() == 0) block.put_signal(e.data, e.local, kN, e.words, 1, 1);
      if (block.pe() == 1) {
        block.wait(e.words, 1, 1);
        read(block, e, e.data.local());
        block.signal(e.words, 0, 1);
      }
      barrier_all(block, e.barrier);
      if (block.pe() == 1) require(block, e, e.words, Cmp::kLe, 1);
    }
  });
  p.kernel("own reset by a notify, test", kClean, [](auto& block, const Env& e) {
    for (const Epoch value : {1, 0, 1}) {
      block.notify(e.words, value, block.pe());
      require(block, e, e.words, Cmp::kEq, value);
    }
  });
}

template <class First, class Second>
void two_kernels(World& world, const Env& env, const First& first, const Second& second) {
  Stream stream = world.make_stream("main");
  stream.launch<Kernel<First>>({1, 64}, {first, env});
  stream.launch<Kernel<Second>>({1, 64}, {second, env});
  stream.synchronize();
}

/// Signals of a kernel have arrived when the next kernel of its stream begins.
void signals_of_kernels(Programs& p) {
  p.host("signal | next kernel: notify | wait, test of the first", kClean, [](World& world, const Env& env) {
    two_kernels(
        world, env,
        [](auto& block, const Env& e) {
          if (block.pe() == 0) block.signal(e.words, 1, 1);
        },
        [](auto& block, const Env& e) {
          if (block.pe() == 0 && block.reachable(1)) block.notify(e.words + 1, 1, 1);
          if (block.pe() != 1 || !block.reachable(0)) return;
          block.wait(e.words + 1, 1, 1);
          require(block, e, e.words, Cmp::kGe, 1);
        });
  });
  p.host(
      "two write_signals | wait for the second, test of the first", kClean,
      [](World& world, const Env& env) {
        Stream stream = world.make_stream("main");
        if (world.pe() == 0) stream.write_signal(env.words.on(1), 1);
        if (world.pe() == 0) stream.write_signal((env.words + 1).on(1), 1);
        const auto waits = [](auto& block, const Env& e) {
          block.wait(e.words + 1, 1, 1);
          require(block, e, e.words, Cmp::kGe, 1);
        };
        if (world.pe() == 1) stream.launch<Kernel<decltype(waits)>>({1, 64}, {waits, env});
        stream.synchronize();
      },
      Place::kOneNode);
}

enum class Credit { kNone, kSignal, kAfterReads, kPutSignal };

template <class Block>
void give(Block& block, const Env& e, Credit how, Epoch value) {
  if (how == Credit::kSignal) block.signal(e.words + 1, value, 0);
  if (how == Credit::kAfterReads) block.signal_after_reads(e.words + 1, value, 0);
  if (how == Credit::kPutSignal) block.put_signal(e.other, e.local, 1, e.words + 1, value, 0);
}

/// An acknowledgement by somebody who had the data: what brought it cannot come after a later write.
void acknowledgements(Programs& p) {
  const auto again = [&p](const char* name, bool racy, Credit how, bool waits) {
    p.kernel(name, racy, [how, waits](auto& block, const Env& e) {
      for (Epoch epoch = 1; epoch <= 3; ++epoch) {
        if (block.pe() == 0) {
          block.wait(e.words + 1, 1, epoch - 1);
          block.put_signal(e.data, e.local, kN, e.words, epoch, 1);
        }
        if (block.pe() != 1) continue;
        if (waits) block.wait(e.words, 1, epoch);
        if (how != Credit::kPutSignal) read(block, e, e.data.local());
        give(block, e, how, epoch);
      }
    });
  };
  again("put_signal | wait, load, signal_after_reads | put_signal there", kClean, Credit::kAfterReads, true);
  again("put_signal | wait, put_signal back | put_signal there", kClean, Credit::kPutSignal, true);
  again("put_signal | wait, load, signal | put_signal there", kRacy, Credit::kSignal, true);
  again("put_signal | put_signal back without a wait | put_signal there", kRacy, Credit::kPutSignal, false);
  for (const Credit how : {Credit::kSignal, Credit::kPutSignal})
    p.kernel(how == Credit::kPutSignal ? "put_signal_nbi | wait, put_signal back | write to the source"
                                       : "put_signal_nbi | wait, signal back | write to the source",
             how == Credit::kSignal, [how](auto& block, const Env& e) {
               if (block.pe() == 0) {
                 block.put_signal_nbi(e.data, e.local, kN, e.words, 1, 1);
                 block.wait(e.words + 1, 1, 1);
                 write(block, e.local);
               }
               if (block.pe() != 1) return;
               block.wait(e.words, 1, 1);
               give(block, e, how, 1);
             });
}

/// A put_signal orders its own data, not what an earlier kernel put; a notify does.
void earlier_kernels(Programs& p) {
  for (const bool notifies : {false, true})
    p.host(
        notifies ? "put | next kernel: put, notify | wait, load of the first"
                 : "put | next kernel: put_signal | wait, load of the first",
        !notifies,
        [notifies](World& world, const Env& env) {
          two_kernels(
              world, env,
              [](auto& block, const Env& e) {
                if (block.pe() == 0) put(block, e);
              },
              [notifies](auto& block, const Env& e) {
                if (block.pe() == 0) {
                  if (notifies) {
                    block.put(e.other, e.local, kN, 1);
                    block.notify(e.words, 1, 1);
                  } else {
                    block.put_signal(e.other, e.local, kN, e.words, 1, 1);
                  }
                }
                if (block.pe() != 1) return;
                block.wait(e.words, 1, 1);
                read(block, e, e.data.local());
              });
        },
        Place::kOneNode);
}

/// With so many puts the detector uses components of earlier ones again, of none that somebody may still meet.
void many_puts(Programs& p) {
  for (const bool notifies : {false, true})
    p.host(
        notifies ? "put | kernels of many puts | put_signals, notify | wait, load of the first"
                 : "put | kernels of many puts | put_signals | wait, load of the first",
        !notifies,
        [notifies](World& world, const Env& env) {
          Stream stream = world.make_stream("main");
          const auto launch = [&]<class Body>(const Body& body) { stream.launch<Kernel<Body>>({1, 64}, {body, env}); };
          launch([](auto& block, const Env& e) {
            if (block.pe() == 0) put(block, e);
          });
          for (int kernel = 0; kernel < 20; ++kernel)
            launch([](auto& block, const Env& e) {
              for (Size i = 0; i < kN && block.pe() == 0; ++i) block.put(e.other + i, e.local, 1, 1);
            });
          launch([notifies](auto& block, const Env& e) {
            // These puts have no data: they only make the detector take many components.
            constexpr int kSignals = 600;
            for (int i = 0; i < kSignals && block.pe() == 0; ++i)
              block.put_signal(e.other, e.local, 0, e.words, 1, 1, SignalOp::kAdd);
            if (block.pe() == 0 && notifies) block.notify(e.words + 1, 1, 1);
            if (block.pe() != 1) return;
            block.wait(e.words, 1, kSignals);
            if (notifies) block.wait(e.words + 1, 1, 1);
            read(block, e, e.data.local());
          });
          stream.synchronize();
        },
        Place::kOneNode);
  p.kernel("many rounds of put, notify | wait, load, credit", kClean, [](auto& block, const Env& e) {
    for (Epoch round = 1; round <= 300; ++round) {
      if (block.pe() == 0) {
        block.wait(e.words + 1, 1, round - 1);
        put(block, e);
        block.notify(e.words, round, 1);
      }
      if (block.pe() != 1) continue;
      block.wait(e.words, 1, round);
      read(block, e, e.data.local());
      block.signal_after_reads(e.words + 1, round, 0);
    }
  });
}

/// A fence orders puts, stores and signals; gets and loads it does not.
void gets_and_fences(Programs& p) {
  for (const Between between : {Between::kFence, Between::kQuiet}) {
    const bool fence = between == Between::kFence;
    const std::string word = fence ? "fence" : "quiet";
    p.kernel("get_nbi, " + word + ", put there", fence, [between](auto& block, const Env& e) {
      if (block.pe() != 0) return;
      block.get_nbi(e.result, e.data, kN, 1);
      order(block, between);
      put(block, e);
    });
    p.kernel("put, " + word + ", get of it", fence, [between](auto& block, const Env& e) {
      if (block.pe() != 0) return;
      put(block, e);
      order(block, between);
      block.get(e.result, e.data, kN, 1);
    });
  }
}

void widths(Programs& p) {
  p.kernel(
      "fetch_add of 8 bytes | fetch_add of 4 of them", kRacy,
      [](auto& block, const Env& e) {
        if (block.pe() == 0) block.fetch_add(e.cell.on(1), Epoch{1});
        if (block.pe() == 1) block.fetch_add(reinterpret_cast<std::uint32_t*>(e.cell.local()), 1U);
      },
      Place::kOneNode);
  p.kernel(
      "fetch_add of the lower half | of the upper half", kClean,
      [](auto& block, const Env& e) {
        auto* const halves = reinterpret_cast<std::uint32_t*>(e.cell.on(1));
        if (block.pe() < 2) block.fetch_add(halves + block.pe(), 1U);
      },
      Place::kOneNode);
}

}  // namespace

void add_order_programs(Programs& programs) {
  signals(programs);
  signals_of_kernels(programs);
  acknowledgements(programs);
  earlier_kernels(programs);
  many_puts(programs);
  gets_and_fences(programs);
  widths(programs);
}

}  // namespace tandem::check_test
