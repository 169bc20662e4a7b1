// Gets, and loads and stores of another PE's memory.
#include "check/conformance.h"

namespace tandem::check_test {

namespace {

template <class Block>
void get(Block& block, const Env& e) {
  block.get(e.local, e.data, kN, 1);
}

/// PE 1 owns the data: `owner` runs there, `origin` on PE 0.
template <class Owner, class Origin>
auto pair_of(Owner owner, Origin origin) {
  return [owner, origin](auto& block, const Env& e) {
    if (block.pe() == 1) owner(block, e);
    if (block.pe() == 0) origin(block, e);
  };
}

}  // namespace

void add_get_programs(Programs& p) {
  const auto store_it = [](auto& block, const Env& e) { write(block, e.data.local()); };
  const auto store_and_notify = [](auto& block, const Env& e) {
    write(block, e.data.local());
    block.notify(e.words, 1, 0);
  };
  const auto store_and_signal = [](auto& block, const Env& e) {
    write(block, e.data.local());
    block.signal(e.words, 1, 0);
  };
  const auto wait_and_store = [](auto& block, const Env& e) {
    block.wait(e.words, 1, 1);
    write(block, e.data.local());
  };
  const auto get_it = [](auto& block, const Env& e) { get(block, e); };
  const auto wait_and_get = [](auto& block, const Env& e) {
    block.wait(e.words, 1, 1);
    get(block, e);
  };
  p.kernel("store | get", kRacy, pair_of(store_it, get_it));
  p.kernel("store, notify | wait, get", kClean, pair_of(store_and_notify, wait_and_get));
  p.kernel("store, signal | wait, get", kRacy, pair_of(store_and_signal, wait_and_get));
  p.kernel("get, notify | wait, store", kClean, pair_of(wait_and_store, [](auto& block, const Env& e) {
             get(block, e);
             block.notify(e.words, 1, 1);
           }));
  p.kernel("get, signal | wait, store", kRacy, pair_of(wait_and_store, [](auto& block, const Env& e) {
             get(block, e);
             block.signal(e.words, 1, 1);
           }));
  for (const bool quiet : {false, true})
    p.kernel(
        std::string("get_nbi, ") + (quiet ? "quiet, " : "") + "notify a third | relay | wait, store", !quiet,
        [quiet](auto& block, const Env& e) {
          if (block.pe() == 0) {
            block.get_nbi(e.local, e.data, kN, 1);
            if (quiet) block.quiet();
            block.notify(e.words, 1, 2);
          }
          if (block.pe() == 2) {
            block.wait(e.words, 1, 1);
            block.notify(e.words, 1, 1);
          }
          if (block.pe() == 1) {
            block.wait(e.words, 1, 1);
            write(block, e.data.local());
          }
        },
        Place::kManyNodes);
  for (const bool quiet : {false, true}) {
    p.kernel(std::string("get_nbi, ") + (quiet ? "quiet, " : "") + "load of what it brings", !quiet,
             pair_of([](auto&, const Env&) {},
                     [quiet](auto& block, const Env& e) {
                       block.get_nbi(e.local, e.data, kN, 1);
                       if (quiet) block.quiet();
                       read(block, e, e.local);
                     }));
    p.kernel(std::string("put, ") + (quiet ? "quiet, " : "") + "get of the same", !quiet,
             pair_of([](auto&, const Env&) {},
                     [quiet](auto& block, const Env& e) {
                       block.put(e.data, e.result, kN, 1);
                       if (quiet) block.quiet();
                       get(block, e);
                     }));
  }
  p.kernel("get | get by another", kClean, [](auto& block, const Env& e) {
    if (block.pe() != 1) get(block, e);
  });
  p.kernel("get | put by another", kRacy, [](auto& block, const Env& e) {
    if (block.pe() == 0) get(block, e);
    if (block.pe() == 2) put(block, e);
  });
}

void add_store_programs(Programs& p) {
  const auto nothing = [](auto&, const Env&) {};
  const auto load_it = [](auto& block, const Env& e) { read(block, e, e.data.local()); };
  const auto wait_and_load = [](auto& block, const Env& e) {
    block.wait(e.words, 1, 1);
    read(block, e, e.data.local());
  };
  const auto add = [&](const char* name, bool racy, const auto& owner, const auto& origin) {
    p.kernel(name, racy, pair_of(owner, origin), Place::kOneNode);
  };
  add("remote store | load", kRacy, load_it, [](auto& block, const Env& e) { write(block, e.data.on(1)); });
  add("remote store, notify | wait, load", kClean, wait_and_load, [](auto& block, const Env& e) {
    write(block, e.data.on(1));
    block.notify(e.words, 1, 1);
  });
  add("remote store, signal | wait, load", kRacy, wait_and_load, [](auto& block, const Env& e) {
    write(block, e.data.on(1));
    block.signal(e.words, 1, 1);
  });
  add("remote store, fence, signal | wait, load", kClean, wait_and_load, [](auto& block, const Env& e) {
    write(block, e.data.on(1));
    block.fence();
    block.signal(e.words, 1, 1);
  });
  add("remote store, remote store", kClean, nothing, [](auto& block, const Env& e) {
    write(block, e.data.on(1));
    write(block, e.data.on(1));
  });
  add("remote store, remote load", kClean, nothing, [](auto& block, const Env& e) {
    write(block, e.data.on(1));
    read(block, e, e.data.on(1));
  });
  add(
      "store | remote load", kRacy, [](auto& block, const Env& e) { write(block, e.data.local()); },
      [](auto& block, const Env& e) { read(block, e, e.data.on(1)); });
  for (const bool acknowledged : {false, true})
    add(
        acknowledged ? "store, notify, wait, store | wait, remote load, notify"
                     : "store, notify, store | wait, remote load, notify",
        !acknowledged,
        [acknowledged](auto& block, const Env& e) {
          write(block, e.data.local());
          block.notify(e.words, 1, 0);
          if (acknowledged) block.wait(e.words, 1, 1);
          write(block, e.data.local());
        },
        [](auto& block, const Env& e) {
          block.wait(e.words, 1, 1);
          read(block, e, e.data.on(1));
          block.notify(e.words, 1, 1);
        });
  for (const bool quiet : {false, true})
    p.kernel(
        std::string("remote store, ") + (quiet ? "quiet" : "fence") + ", signal to a third | wait, remote load", !quiet,
        [quiet](auto& block, const Env& e) {
          if (block.pe() == 0) {
            write(block, e.data.on(1));
            if (quiet)
              block.quiet();
            else
              block.fence();
            block.signal(e.words, 1, 2);
          }
          if (block.pe() == 2) {
            block.wait(e.words, 1, 1);
            read(block, e, e.data.on(1));
          }
        },
        Place::kOneNode);
}

}  // namespace tandem::check_test
