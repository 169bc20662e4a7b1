// Atomics: their scopes, what they release and acquire, and atomics beside signals.
#include "check/conformance.h"

namespace tandem::check_test {

namespace {

void atomics(Programs& p) {
  p.kernel(
      "fetch_add | fetch_add by another", kClean,
      [](auto& block, const Env& e) { block.fetch_add(e.cell.on(1), Epoch{1}); }, Place::kOneNode);
  p.kernel(
      "fetch_add | store", kRacy,
      [](auto& block, const Env& e) {
        if (block.pe() == 0) block.fetch_add(e.cell.on(1), Epoch{1});
        if (block.pe() == 1) block.store_scalar(e.cell.local(), Epoch{5});
      },
      Place::kOneNode);
  const auto message = [&p](const char* name, bool racy, Scope scope, Order order) {
    p.kernel(
        name, racy,
        [scope, order](auto& block, const Env& e) {
          if (block.pe() == 0) {
            write(block, e.data.on(1));
            block.fetch_add(e.cell.on(1), Epoch{1}, scope, order);
          }
          if (block.pe() == 1) {
            while (block.fetch_add(e.cell.local(), Epoch{0}, scope, order) == 0) continue;
            read(block, e, e.data.local());
          }
        },
        Place::kOneNode);
  };
  message("store, atomic | poll by atomic, load", kClean, Scope::kSystem, Order::kAcqRel);
  message("store, relaxed atomic | poll by relaxed atomic, load", kRacy, Scope::kSystem, Order::kRelaxed);
  message("store, atomic of GPU scope | poll by atomic of GPU scope, load", kRacy, Scope::kGpu, Order::kAcqRel);
  for (const Order order : {Order::kRelaxed, Order::kAcqRel})
    p.kernel(
        order == Order::kRelaxed ? "lock of relaxed atomics" : "lock", order == Order::kRelaxed,
        [order](auto& block, const Env& e) {
          Epoch* const lock = e.cell.on(1);
          while (block.compare_swap(lock, Epoch{0}, Epoch{1}, Scope::kSystem, order) != 0) continue;
          const float value = block.load_scalar(e.data.on(1));
          block.store_scalar(e.data.on(1), value + 1);
          block.exchange(lock, Epoch{0}, Scope::kSystem, order);
        },
        Place::kOneNode);
}

/// Each of two atomics has to have the other's thread in its scope.
void scopes(Programs& p) {
  for (const Scope scope : {Scope::kBlock, Scope::kGpu})
    p.kernel(
        scope == Scope::kBlock ? "message between blocks by atomics of block scope"
                               : "message between blocks by atomics of GPU scope",
        scope == Scope::kBlock,
        [scope](auto& block, const Env& e) {
          if (block.index() == 0) {
            write(block, e.local);
            block.fetch_add(e.cell.local(), Epoch{1}, scope, Order::kAcqRel);
          } else {
            while (block.fetch_add(e.cell.local(), Epoch{0}, scope, Order::kAcqRel) == 0) continue;
            be_late(block, e);
            read(block, e, e.local);
          }
        },
        Place::kEverywhere, 2);
  for (const Scope scope : {Scope::kGpu, Scope::kSystem})
    p.kernel(
        scope == Scope::kGpu ? "released at system scope | acquired by its owner at GPU scope"
                             : "released at system scope | acquired by its owner at system scope",
        scope == Scope::kGpu,
        [scope](auto& block, const Env& e) {
          if (block.pe() == 0) {
            write(block, e.data.on(1));
            block.fetch_add(e.cell.on(1), Epoch{1}, Scope::kSystem, Order::kAcqRel);
          }
          if (block.pe() == 1) {
            while (block.fetch_add(e.cell.local(), Epoch{0}, scope, Order::kAcqRel) == 0) continue;
            be_late(block, e);
            read(block, e, e.data.local());
          }
        },
        Place::kOneNode);
  p.kernel("roles of a block by atomics of block scope", kClean, [](auto& block, const Env& e) {
    block.template parallel<4, 4>(
        [&](auto& role) {
          write(role, e.local);
          role.fetch_add(e.cell.local(), Epoch{1}, Scope::kBlock, Order::kAcqRel);
        },
        [&](auto& role) {
          while (role.fetch_add(e.cell.local(), Epoch{0}, Scope::kBlock, Order::kAcqRel) == 0) continue;
          read(role, e, e.local);
        });
  });
}

void beside_signals(Programs& p) {
  p.kernel(
      "exchange | SET by another", kRacy,
      [](auto& block, const Env& e) {
        if (block.pe() == 0) block.exchange(&e.words.on(1)->value, Epoch{1});
        if (block.pe() == 2) block.signal(e.words, 2, 1);
      },
      Place::kOneNode);
  p.kernel(
      "exchange | ADD by another", kClean,
      [](auto& block, const Env& e) {
        if (block.pe() == 0) block.exchange(&e.words.on(1)->value, Epoch{1});
        if (block.pe() == 2) block.signal(e.words, 2, 1, SignalOp::kAdd);
      },
      Place::kOneNode);
  p.kernel(
      "exchange | exchange by another", kClean,
      [](auto& block, const Env& e) { block.exchange(e.cell.on(1), static_cast<Epoch>(block.pe())); }, Place::kOneNode);
  // A compare_swap that fails changes nothing, and so tells nothing.
  for (const bool fails : {false, true})
    p.kernel(
        fails ? "put, compare_swap that fails | late fetch_add, load" : "put, compare_swap | late fetch_add, load",
        fails,
        [fails](auto& block, const Env& e) {
          if (block.pe() == 0) {
            put(block, e);
            block.compare_swap(e.cell.on(1), Epoch{fails ? 77U : 0U}, Epoch{1});
          }
          if (block.pe() == 1) {
            be_late(block, e);
            block.fetch_add(e.cell.local(), Epoch{0});
            read(block, e, e.data.local());
          }
        },
        Place::kOneNode);
  p.kernel(
      "SET | compare_swap that fails", kClean,
      [](auto& block, const Env& e) {
        if (block.pe() == 0) block.notify(e.words, 1, 1);
        if (block.pe() == 2) block.compare_swap(&e.words.on(1)->value, Epoch{77}, Epoch{78});
      },
      Place::kOneNode);
}

}  // namespace

void add_atomic_programs(Programs& programs) {
  atomics(programs);
  scopes(programs);
  beside_signals(programs);
}

}  // namespace tandem::check_test
