// Signals, packets, and buffers that are used again.
#include "check/conformance.h"

namespace tandem::check_test {

namespace {

void words(Programs& p) {
  p.kernel("SET | SET by another", kRacy, [](auto& block, const Env& e) {
    if (block.pe() == 0) block.notify(e.words, 1, 1);
    if (block.pe() == 2) block.notify(e.words, 2, 1);
  });
  p.kernel("SET, notify | wait, SET by another", kClean, [](auto& block, const Env& e) {
    if (block.pe() == 0) {
      block.notify(e.words, 1, 1);
      block.notify(e.words, 1, 2);
    }
    if (block.pe() == 2) {
      block.wait(e.words, 1, 1);
      block.notify(e.words, 2, 1);
    }
  });
  p.kernel("ADD | SET by another", kRacy, [](auto& block, const Env& e) {
    if (block.pe() == 0) block.notify(e.words, 1, 1, SignalOp::kAdd);
    if (block.pe() == 2) block.notify(e.words, 2, 1);
  });
  // Additions of NICs are atomic with each other, and not with those of the word's own node.
  for (const int adder : {1, 2})
    p.kernel(
        adder == 1 ? "ADD through a NIC | ADD by the word's PE" : "ADD through a NIC | ADD through a NIC", adder == 1,
        [adder](auto& block, const Env& e) {
          if (block.pe() == 0 || block.pe() == adder) block.notify(e.words, 1, 1, SignalOp::kAdd);
        },
        Place::kManyNodes);
  p.kernel(
      "ADD through a NIC | wait, ADD by the word's PE", kClean,
      [](auto& block, const Env& e) {
        if (block.pe() == 0) block.notify(e.words, 1, 1, SignalOp::kAdd);
        if (block.pe() != 1) return;
        block.wait(e.words, 1, 1);
        block.notify(e.words, 1, 1, SignalOp::kAdd);
      },
      Place::kManyNodes);
  for (const Epoch arrivals : {1, 2})
    p.kernel("two put_signal ADD | wait for " + std::to_string(arrivals) + ", load of both", arrivals == 1,
             [arrivals](auto& block, const Env& e) {
               if (block.pe() == 0) block.put_signal(e.data, e.local, kN, e.words, 1, 1, SignalOp::kAdd);
               if (block.pe() == 2) block.put_signal(e.other, e.local, kN, e.words, 1, 1, SignalOp::kAdd);
               if (block.pe() == 1) {
                 block.wait(e.words, 1, arrivals);
                 read(block, e, e.data.local());
                 read(block, e, e.other.local());
               }
             });
  for (const bool tests : {false, true})
    p.kernel(tests ? "put_signal | poll by signal_test, load" : "put_signal | poll by load_scalar, load", !tests,
             [tests](auto& block, const Env& e) {
               if (block.pe() == 0) block.put_signal(e.data, e.local, kN, e.words, 1, 1);
               if (block.pe() != 1) return;
               if (tests)
                 while (!block.signal_test(e.words, Cmp::kGe, 1)) continue;
               else
                 while (block.load_scalar(&e.words.local()->value) < 1) continue;
               read(block, e, e.data.local());
             });
  for (const bool barriers : {false, true})
    p.kernel(barriers ? "signal | wait, barrier, reset, barrier" : "signal twice | wait, reset, wait", !barriers,
             [barriers](auto& block, const Env& e) {
               for (int round = 0; round < 2; ++round) {
                 if (block.pe() == 0) block.put_signal(e.data, e.local, kN, e.words, 1, 1);
                 if (block.pe() == 0 && !barriers) block.quiet();
                 if (block.pe() == 1) block.wait(e.words, 1, 1);
                 if (barriers) barrier_all(block, e.barrier);
                 if (block.pe() == 1 && (barriers || round == 0)) block.store_scalar(&e.words.local()->value, Epoch{0});
                 if (barriers) barrier_all(block, e.barrier);
               }
             });
  // put_signals have no order among themselves: who sees the second may not have the first one's data.
  for (const bool fenced : {false, true})
    p.kernel(fenced ? "two put_signals of one word, a fence between | wait for each, load"
                    : "two put_signals of one word | wait for each, load",
             !fenced, [fenced](auto& block, const Env& e) {
               for (Epoch epoch = 1; epoch <= 2; ++epoch) {
                 const Symm<float> half = e.data + static_cast<Size>(epoch % 2) * kN / 2;
                 if (block.pe() == 0 && fenced) block.fence();
                 if (block.pe() == 0) block.put_signal(half, e.local, kN / 2, e.words, epoch, 1);
                 if (block.pe() == 1) {
                   block.wait(e.words, 1, epoch);
                   block.store(e.result, {0, kN / 2}, block.template load<float>(half.local(), {0, kN / 2}));
                 }
               }
             });
  for (const bool right : {false, true})
    p.kernel(right ? "two rounds, wait for each" : "two rounds, wait for the one before", !right,
             [right](auto& block, const Env& e) {
               for (Epoch epoch = 1; epoch <= 2; ++epoch) {
                 const Symm<float> half = e.data + static_cast<Size>(epoch % 2) * kN / 2;
                 if (block.pe() == 0) {
                   block.put(half, e.local, kN / 2, 1);
                   block.notify(e.words, epoch, 1);
                 }
                 if (block.pe() == 1) {
                   block.wait(e.words, 1, right ? epoch : epoch - 1);
                   block.store(e.result, {0, kN / 2}, block.template load<float>(half.local(), {0, kN / 2}));
                 }
               }
             });
}

/// A signal_after_reads tells of reads alone.
void after_reads(Programs& p) {
  for (const bool notifies : {false, true})
    p.kernel(
        notifies ? "store, notify | wait, late load" : "store, signal_after_reads | wait, late load", !notifies,
        [notifies](auto& block, const Env& e) {
          if (block.pe() == 0) {
            write(block, e.data.on(1));
            if (notifies)
              block.notify(e.words, 1, 1);
            else
              block.signal_after_reads(e.words, 1, 1);
          }
          if (block.pe() != 1) return;
          block.wait(e.words, 1, 1);
          be_late(block, e);
          read(block, e, e.data.local());
        },
        Place::kOneNode);
  p.kernel("put, signal_after_reads | wait, late load", kRacy, [](auto& block, const Env& e) {
    if (block.pe() == 0) {
      put(block, e);
      block.signal_after_reads(e.words, 1, 1);
    }
    if (block.pe() != 1) return;
    block.wait(e.words, 1, 1);
    be_late(block, e);
    read(block, e, e.data.local());
  });
  p.kernel("put, fence, signal_after_reads | wait, load", kClean, [](auto& block, const Env& e) {
    if (block.pe() == 0) {
      put(block, e);
      block.fence();
      block.signal_after_reads(e.words, 1, 1);
    }
    if (block.pe() != 1) return;
    block.wait(e.words, 1, 1);
    read(block, e, e.data.local());
  });
  for (const bool tells : {false, true})
    p.kernel(tells ? "load, signal_after_reads | wait, put" : "load, signal | wait, put", !tells,
             [tells](auto& block, const Env& e) {
               if (block.pe() == 0) {
                 block.wait(e.words, 1, 1);
                 put(block, e);
               }
               if (block.pe() != 1) return;
               read(block, e, e.data.local());
               if (tells)
                 block.signal_after_reads(e.words, 1, 0);
               else
                 block.signal(e.words, 1, 0);
             });
  // Reads that a kernel knows to be over are known to its host program, too, and to everything that it enqueues then.
  p.host(
      "load, signal_after_reads | wait, then a copy in another stream", kClean,
      [](World& world, const Env& env) {
        Stream main = world.make_stream("main");
        Stream other = world.make_stream("other");
        const auto reader = [](auto& block, const Env& e) {
          read(block, e, e.data.local());
          block.signal_after_reads(e.words, 1, 0);
        };
        const auto waits = [](auto& block, const Env& e) { block.wait(e.words, 1, 1); };
        if (world.pe() == 1) main.launch<Kernel<decltype(reader)>>({1, 64}, {reader, env});
        if (world.pe() == 0) main.launch<Kernel<decltype(waits)>>({1, 64}, {waits, env});
        main.synchronize();
        if (world.pe() == 0) other.copy_async(env.data.on(1), env.local, kN * Size{sizeof(float)});
        other.synchronize();
      },
      Place::kOneNode);
}

void packets(Programs& p) {
  p.kernel(
      "ll_put | ll_get", kClean,
      [](auto& block, const Env& e) {
        if (block.pe() == 0) block.ll_put(e.packets, e.local, 8, 1, 1);
        if (block.pe() == 1)
          block.store(e.result, {0, 8}, block.template ll_get<float, float>(e.packets.local(), 8, 1));
      },
      Place::kOneNode);
  p.kernel(
      "store, ll_put | ll_get, load of what was stored", kRacy,
      [](auto& block, const Env& e) {
        if (block.pe() == 0) {
          write(block, e.data.on(1));
          block.ll_put(e.packets, e.local, 8, 1, 1);
        }
        if (block.pe() == 1) {
          block.store(e.result, {0, 8}, block.template ll_get<float, float>(e.packets.local(), 8, 1));
          read(block, e, e.data.local());
        }
      },
      Place::kOneNode);
  for (const Size halves : {1, 2})
    p.kernel(
        halves == 1 ? "packets swapped in rounds, one buffer" : "packets swapped in rounds, two buffers", halves == 1,
        [halves](auto& block, const Env& e) {
          if (block.pe() == 2) return;
          for (Epoch round = 1; round <= 3; ++round) {
            const Symm<LLPacket> at = e.packets + static_cast<Size>(round) % halves * 8;
            block.ll_put(at, e.local, 8, round, 1 - block.pe());
            block.store(e.result, {0, 8}, block.template ll_get<float, float>(at.local(), 8, round));
          }
        },
        Place::kOneNode);
}

/// The sender's knowledge of the reader of a buffer.
enum class Reuse { kNothing, kParity, kCredits, kSwap };

void reuse(Programs& p) {
  const auto add = [&p](const char* name, bool racy, Reuse how) {
    p.kernel(name, racy, [how](auto& block, const Env& e) {
      if (block.pe() == 2) return;
      const bool both = how == Reuse::kSwap;
      for (Epoch epoch = 1; epoch <= 4; ++epoch) {
        const Size half = how == Reuse::kNothing ? 0 : static_cast<Size>(epoch % 2);
        const Symm<float> slot = e.data + half * kN / 2;
        if (both || block.pe() == 0) {
          if (how == Reuse::kCredits && epoch > 2) block.wait(e.words + 1, 1, epoch - 2);
          block.put(slot, e.local, kN / 2, 1 - block.pe());
          block.notify(e.words, epoch, 1 - block.pe());
        }
        if (both || block.pe() == 1) {
          block.wait(e.words, 1, epoch);
          block.store(e.result, {0, kN / 2}, block.template load<float>(slot.local(), {0, kN / 2}));
          if (how == Reuse::kCredits) block.notify(e.words + 1, epoch, 0);
        }
      }
    });
  };
  add("staging used again at once", kRacy, Reuse::kNothing);
  add("staging by parity, one way", kRacy, Reuse::kParity);
  add("staging by parity, with credits", kClean, Reuse::kCredits);
  add("staging by parity, both ways", kClean, Reuse::kSwap);
}

}  // namespace

void add_signal_programs(Programs& programs) {
  words(programs);
  after_reads(programs);
  packets(programs);
  reuse(programs);
}

}  // namespace tandem::check_test
