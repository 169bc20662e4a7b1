// A wait acquires from any of the values that satisfied it, and from no earlier life of the word.
#include "check/conformance.h"

namespace tandem::check_test {

namespace {

template <class Block>
void put_and_notify(Block& block, const Env& e) {
  put(block, e);
  block.notify(e.words, 1, 1);
}
template <class Block>
void wait_and_read(Block& block, const Env& e) {
  block.wait(e.words, 1, 1);
  read(block, e, e.data.local());
}
/// One round of a message from PE 0 to PE 1.
const auto round_of_both = [](auto& block, const Env& e) {
  if (block.pe() == 0) put_and_notify(block, e);
  if (block.pe() == 1) wait_and_read(block, e);
};

void values(Programs& p) {
  for (const Epoch value : {0, 1})
    p.kernel(value == 0 ? "put, notify | late wait for what the word was before" : "put, notify | late wait",
             value == 0, [value](auto& block, const Env& e) {
               if (block.pe() == 0) put_and_notify(block, e);
               if (block.pe() != 1) return;
               be_late(block, e);
               block.wait(e.words, 1, value);
               read(block, e, e.data.local());
             });
  const auto two_adders = [&p](const char* name, bool racy, Cmp cmp, Epoch value) {
    p.kernel(name, racy, [cmp, value](auto& block, const Env& e) {
      const Size half = block.pe() == 2 ? kN / 2 : 0;
      if (block.pe() != 1) {
        block.put(e.data + half, e.local, kN / 2, 1);
        block.notify(e.words, 1, 1, SignalOp::kAdd);
        return;
      }
      be_late(block, e);
      block.signal_wait_until(e.words, cmp, value);
      read(block, e, e.data.local());
    });
  };
  two_adders("two puts, ADDs | late wait for != 0", kRacy, Cmp::kNe, 0);
  two_adders("two puts, ADDs | late wait for == 2", kClean, Cmp::kEq, 2);
  two_adders("two puts, ADDs | late wait for >= 1", kRacy, Cmp::kGe, 1);
  two_adders("two puts, ADDs | late wait for > 1", kClean, Cmp::kGt, 1);
  // A value lower than the one that stands for the data may be the one from before.
  p.kernel("put, notify of a lower value | late wait for <", kClean, [](auto& block, const Env& e) {
    if (block.pe() == 1) {
      block.notify(e.words, 5, 1);
      block.signal_wait_until(e.words, Cmp::kEq, 5);
      block.notify(e.words + 1, 1, 0);
      be_late(block, e);
      block.signal_wait_until(e.words, Cmp::kLt, 5);
      read(block, e, e.data.local());
    }
    if (block.pe() == 0) {
      block.wait(e.words + 1, 1, 1);
      put_and_notify(block, e);
    }
  });
}

/// The word is set back, or is another one's by now.
void lives(Programs& p) {
  const auto rounds = [&p](const char* name, auto set_back) {
    p.host(name, kClean, [set_back](World& world, const Env& env) {
      Stream stream = world.make_stream("main");
      for (int round = 0; round < 3; ++round) {
        stream.launch<Kernel<decltype(round_of_both)>>({1, 64}, {round_of_both, env});
        stream.synchronize();
        world.barrier();
        if (world.pe() == 1) set_back(world, stream, env);
        stream.synchronize();
        world.barrier();
      }
    });
  };
  rounds("rounds of one value, set back by a signal between barriers", [](World&, Stream& stream, const Env& env) {
    const auto set_back = [](auto& block, const Env& e) {
      block.notify(e.words, 0, 1);
      block.signal_wait_until(e.words, Cmp::kEq, 0);
    };
    stream.launch<Kernel<decltype(set_back)>>({1, 64}, {set_back, env});
  });
  rounds("rounds of one value, set back by a store between barriers", [](World&, Stream& stream, const Env& env) {
    const auto set_back = [](auto& block, const Env& e) { block.store_scalar(&e.words.local()->value, Epoch{0}); };
    stream.launch<Kernel<decltype(set_back)>>({1, 64}, {set_back, env});
  });
  rounds("rounds of one value, set back by the host program", [](World& world, Stream&, const Env& env) {
    const Epoch zero = 0;
    world.copy_in(env.words.local(), &zero, sizeof(zero));
  });
  p.host(
      "rounds of one value, set back by its sender, then quiet", kClean,
      [](World& world, const Env& env) {
        Stream stream = world.make_stream("main");
        for (int round = 0; round < 3; ++round) {
          stream.launch<Kernel<decltype(round_of_both)>>({1, 64}, {round_of_both, env});
          stream.synchronize();
          world.barrier();
          const auto set_back = [](auto& block, const Env& e) {
            block.notify(e.words, 0, 1);
            block.quiet();
          };
          if (world.pe() == 0) stream.launch<Kernel<decltype(set_back)>>({1, 64}, {set_back, env});
          stream.synchronize();
          world.barrier();
        }
      },
      Place::kManyNodes);
  for (const bool waits : {false, true})
    p.host(waits ? "words freed and allocated again" : "words allocated again, no wait for them", !waits,
           [waits](World& world, const Env& env) {
             Stream stream = world.make_stream("main");
             for (int round = 0; round < 2; ++round) {
               Env of_round = env;
               of_round.words = world.heap().signals(16, "words of a round");
               const auto body = [waits, round](auto& block, const Env& e) {
                 if (block.pe() == 0) put_and_notify(block, e);
                 if (block.pe() != 1) return;
                 be_late(block, e);
                 block.wait(e.words, 1, round == 0 || waits ? 1 : 0);
                 read(block, e, e.data.local());
               };
               world.barrier();
               stream.launch<Kernel<decltype(body)>>({1, 64}, {body, of_round});
               stream.synchronize();
               world.heap().free(of_round.words);
             }
           });
}

}  // namespace

void add_wait_programs(Programs& programs) {
  values(programs);
  lives(programs);
}

}  // namespace tandem::check_test
