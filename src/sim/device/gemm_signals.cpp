#include "sim/device/gemm_signals.h"

namespace tandem::sim {

void await_gemm_signal(Role& role, const Signal* word, Epoch value, Site site) {
  const Fault fault = role.fault(SyncOperation::kGate, site);
  if (fault == Fault::kDropped) return;
  const Time begin = role.engine().now();
  SignalWait wait;
  wait.words = word;
  wait.value = fault == Fault::kEarly ? role.sim.value_before(word, value) : value;
  Monitor* const monitor = role.sim.seams.monitor;
  if (monitor != nullptr) monitor->begin_wait(role.thread, word, 1, 1, Cmp::kGe, wait.value, site);
  role.await(wait);
  if (monitor != nullptr)
    monitor->end_wait(role.thread, word, 1, 1, Cmp::kGe, wait.value,
                      fault == Fault::kRelaxed ? Order::kRelaxed : Order::kAcquire, fault != Fault::kNoProxyFence,
                      site);
  role.report({.kind = OperationKind::kWait,
               .address = wait.words,
               .bytes = sizeof(Signal),
               .value = wait.value,
               .order = Order::kAcquire,
               .begin = begin,
               .released_by = wait.released_by.lane,
               .released_at = wait.released_by.time},
              site);
}

void send_gemm_signal(Role& role, const SignalUpdate& update, Time at, Site site) {
  const Fault fault = role.fault(SyncOperation::kTileNotify, site);
  if (fault == Fault::kDropped) return;
  constexpr std::uint32_t kCode = 111;
  Engine& engine = role.engine();
  const int target = role.sim.memory.pe_of(update.word);
  engine.trace(engine.current()->id(), kCode, target);
  Delivery delivery = signal_delivery(update, role.cause());
  if (role.sim.seams.monitor != nullptr)
    delivery.message = role.sim.seams.monitor->signal(
        role.thread, delivery.signal, fault == Fault::kRelaxed ? Order::kRelaxed : Order::kRelease, target, true, site);
  role.order_after(role.sim.deliver(at, std::move(delivery)));
  role.report({.kind = OperationKind::kSignal,
               .target = update.word,
               .value = update.value,
               .order = Order::kRelease,
               .begin = engine.now()},
              site);
}

}  // namespace tandem::sim
