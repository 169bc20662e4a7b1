// Puts: against loads of the target, against other writes, and against the reuse of their source.
#include "check/conformance.h"

namespace tandem::check_test {

namespace {

/// PE 0 does `send`, PE 1 waits for word 0 and reads the data.
template <class Send>
auto sent_and_read(Send send) {
  return [send](auto& block, const Env& e) {
    if (block.pe() == 0) send(block, e);
    if (block.pe() == 1) {
      block.wait(e.words, 1, 1);
      read(block, e, e.data.local());
    }
  };
}

/// PE 0 does `send`; PE 2 waits for it and tells PE 1, which reads the data.
template <class Send>
auto relayed(Send send) {
  return [send](auto& block, const Env& e) {
    if (block.pe() == 0) send(block, e);
    if (block.pe() == 2) {
      block.wait(e.words, 1, 1);
      block.notify(e.words, 1, 1);
    }
    if (block.pe() == 1) {
      block.wait(e.words, 1, 1);
      read(block, e, e.data.local());
    }
  };
}

/// PE 0 alone.
template <class Body>
auto origin(Body body) {
  return [body](auto& block, const Env& e) {
    if (block.pe() == 0) body(block, e);
  };
}

void against_loads(Programs& p) {
  p.kernel("put | load: nothing", kRacy, [](auto& block, const Env& e) {
    if (block.pe() == 0) put(block, e);
    if (block.pe() == 1) read(block, e, e.data.local());
  });
  p.kernel("put, signal | wait, load", kRacy, sent_and_read([](auto& block, const Env& e) {
             put(block, e);
             block.signal(e.words, 1, 1);
           }));
  p.kernel("put, fence, signal | wait, load", kClean, sent_and_read([](auto& block, const Env& e) {
             put(block, e);
             block.fence();
             block.signal(e.words, 1, 1);
           }));
  p.kernel("put, quiet, signal | wait, load", kClean, sent_and_read([](auto& block, const Env& e) {
             put(block, e);
             block.quiet();
             block.signal(e.words, 1, 1);
           }));
  p.kernel("put, notify | wait, load", kClean, sent_and_read([](auto& block, const Env& e) {
             put(block, e);
             block.notify(e.words, 1, 1);
           }));
  p.kernel("notify, put | wait, load", kRacy, sent_and_read([](auto& block, const Env& e) {
             block.notify(e.words, 1, 1);
             put(block, e);
           }));
  p.kernel("put_nbi, signal | wait, load", kRacy, sent_and_read([](auto& block, const Env& e) {
             block.put_nbi(e.data, e.local, kN, 1);
             block.signal(e.words, 1, 1);
           }));
  p.kernel("put_nbi, fence, signal | wait, load", kClean, sent_and_read([](auto& block, const Env& e) {
             block.put_nbi(e.data, e.local, kN, 1);
             block.fence();
             block.signal(e.words, 1, 1);
           }));
  p.kernel("put_nbi, quiet, signal | wait, load", kClean, sent_and_read([](auto& block, const Env& e) {
             block.put_nbi(e.data, e.local, kN, 1);
             block.quiet();
             block.signal(e.words, 1, 1);
           }));
  p.kernel("put_signal | wait, load", kClean,
           sent_and_read([](auto& block, const Env& e) { block.put_signal(e.data, e.local, kN, e.words, 1, 1); }));
  p.kernel("put_signal_nbi | wait, load", kClean,
           sent_and_read([](auto& block, const Env& e) { block.put_signal_nbi(e.data, e.local, kN, e.words, 1, 1); }));
  p.kernel("put_signal | load", kRacy, [](auto& block, const Env& e) {
    if (block.pe() == 0) block.put_signal(e.data, e.local, kN, e.words, 1, 1);
    if (block.pe() == 1) read(block, e, e.data.local());
  });
  p.kernel("put, put_signal of other data | wait, load", kRacy, sent_and_read([](auto& block, const Env& e) {
             put(block, e);
             block.put_signal(e.other, e.local, kN, e.words, 1, 1);
           }));
  p.kernel("put, fence, put_signal of other data | wait, load", kClean, sent_and_read([](auto& block, const Env& e) {
             put(block, e);
             block.fence();
             block.put_signal(e.other, e.local, kN, e.words, 1, 1);
           }));
  p.kernel("put, fence, signal to a third | relay | wait, load", kRacy, relayed([](auto& block, const Env& e) {
             put(block, e);
             block.fence();
             block.signal(e.words, 1, 2);
           }));
  p.kernel("put, quiet, signal to a third | relay | wait, load", kClean, relayed([](auto& block, const Env& e) {
             put(block, e);
             block.quiet();
             block.signal(e.words, 1, 2);
           }));
  p.kernel("put, notify a third through a NIC | relay | wait, load", kRacy, relayed([](auto& block, const Env& e) {
             put(block, e);
             block.notify(e.words, 1, 2);
           }),
           Place::kManyNodes);
  p.kernel("put | wait for another PE's signal, load", kRacy, [](auto& block, const Env& e) {
    if (block.pe() == 0) block.put_signal(e.data, e.local, kN, e.words, 1, 1);
    if (block.pe() == 2) block.notify(e.words + 1, 1, 1);
    if (block.pe() == 1) {
      block.wait(e.words + 1, 1, 1);
      read(block, e, e.data.local());
    }
  });
  p.kernel("put, barrier_all | barrier_all, load", kClean, [](auto& block, const Env& e) {
    if (block.pe() == 0) put(block, e);
    barrier_all(block, e.barrier);
    if (block.pe() == 1) read(block, e, e.data.local());
  });
  p.kernel("barrier_all, put | barrier_all, load", kRacy, [](auto& block, const Env& e) {
    barrier_all(block, e.barrier);
    if (block.pe() == 0) put(block, e);
    if (block.pe() == 1) read(block, e, e.data.local());
  });
  for (const bool quiet : {false, true})
    p.kernel(
        std::string("put to a third, ") + (quiet ? "barrier_all" : "team_sync") + ", get from it", !quiet,
        [quiet](auto& block, const Env& e) {
          if (block.pe() == 0) put(block, e, 2);
          if (quiet)
            barrier_all(block, e.barrier);
          else
            team_sync(block, e.barrier);
          if (block.pe() == 1) block.get(e.local, e.data, kN, 2);
        },
        Place::kManyNodes);
}

void against_writes(Programs& p) {
  p.kernel("put | put by another", kRacy, [](auto& block, const Env& e) {
    if (block.pe() != 1) put(block, e);
  });
  p.kernel("put | put by another elsewhere", kClean, [](auto& block, const Env& e) {
    if (block.pe() == 0) block.put(e.data, e.local, kN / 2, 1);
    if (block.pe() == 2) block.put(e.data + kN / 2, e.local, kN / 2, 1);
  });
  for (const bool quiet : {false, true})
    p.kernel(
        std::string("put, ") + (quiet ? "quiet, " : "") + "notify | wait, put by another", !quiet,
        [quiet](auto& block, const Env& e) {
          if (block.pe() == 0) {
            put(block, e);
            if (quiet) block.quiet();
            block.notify(e.words, 1, 2);
          }
          if (block.pe() == 2) {
            block.wait(e.words, 1, 1);
            put(block, e);
          }
        },
        quiet ? Place::kEverywhere : Place::kManyNodes);
  p.kernel("put, put", kRacy, origin([](auto& block, const Env& e) {
             put(block, e);
             put(block, e);
           }));
  p.kernel("put, put elsewhere", kClean, origin([](auto& block, const Env& e) {
             put(block, e);
             block.put(e.other, e.local, kN, 1);
           }));
  p.kernel("put, fence, put", kClean, origin([](auto& block, const Env& e) {
             put(block, e);
             block.fence();
             put(block, e);
           }));
  p.kernel("put, quiet, put", kClean, origin([](auto& block, const Env& e) {
             put(block, e);
             block.quiet();
             put(block, e);
           }));
  p.kernel("put | store by the target", kRacy, [](auto& block, const Env& e) {
    if (block.pe() == 0) put(block, e);
    if (block.pe() == 1) write(block, e.data.local());
  });
  p.kernel("store by the target, notify | wait, put", kClean, [](auto& block, const Env& e) {
    if (block.pe() == 1) {
      write(block, e.data.local());
      block.notify(e.words, 1, 0);
    }
    if (block.pe() == 0) {
      block.wait(e.words, 1, 1);
      put(block, e);
    }
  });
  p.kernel("put_signal | wait, store by the target", kClean, [](auto& block, const Env& e) {
    if (block.pe() == 0) block.put_signal(e.data, e.local, kN, e.words, 1, 1);
    if (block.pe() == 1) {
      block.wait(e.words, 1, 1);
      write(block, e.data.local());
    }
  });
}

void source_reuse(Programs& p) {
  p.kernel("put, store to the source", kClean, origin([](auto& block, const Env& e) {
             put(block, e);
             write(block, e.local);
           }));
  p.kernel("put_nbi, store to the source", kRacy, origin([](auto& block, const Env& e) {
             block.put_nbi(e.data, e.local, kN, 1);
             write(block, e.local);
           }));
  p.kernel("put_nbi, fence, store to the source", kRacy, origin([](auto& block, const Env& e) {
             block.put_nbi(e.data, e.local, kN, 1);
             block.fence();
             write(block, e.local);
           }));
  p.kernel("put_nbi, quiet, store to the source", kClean, origin([](auto& block, const Env& e) {
             block.put_nbi(e.data, e.local, kN, 1);
             block.quiet();
             write(block, e.local);
           }));
  p.kernel("put_nbi, load of the source", kClean, origin([](auto& block, const Env& e) {
             block.put_nbi(e.data, e.local, kN, 1);
             read(block, e, e.local);
           }));
  p.kernel("put_signal_nbi, store to the source", kRacy, origin([](auto& block, const Env& e) {
             block.put_signal_nbi(e.data, e.local, kN, e.words, 1, 1);
             write(block, e.local);
           }));
  for (const bool waits : {false, true})
    p.kernel(std::string("put_signal_nbi | wait, notify | ") + (waits ? "wait, " : "") + "store to the source", !waits,
             [waits](auto& block, const Env& e) {
               if (block.pe() == 0) {
                 block.put_signal_nbi(e.data, e.local, kN, e.words, 1, 1);
                 if (waits) block.wait(e.words, 1, 1);
                 write(block, e.local);
               }
               if (block.pe() == 1) {
                 block.wait(e.words, 1, 1);
                 block.notify(e.words, 1, 0);
               }
             });
}

}  // namespace

void add_put_programs(Programs& programs) {
  against_loads(programs);
  against_writes(programs);
  source_reuse(programs);
}

}  // namespace tandem::check_test
