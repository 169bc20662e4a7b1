#include "host/grid.h"

#include <fmt/format.h>

#include <cstring>

#include "host/bell.h"
#include "host/block_core.h"
#include "tandem/error.h"
#include "tandem/impl/cuda/stall.h"

namespace tandem::host {

namespace {

/// Runs `body` as one block without roles.
void run_alone(const cuda::Context& context, wire::Mailbox* mailbox,
               const std::function<void(Strand&, BlockCore&)>& body) {
  if (is_skipped(context)) return;
  const GridShape shape{context, 1, 1, "", false, mailbox};
  run_blocks(context, 1, {}, [&](Strand& strand, int) {
    BlockCore core(strand, shape, 0);
    body(strand, core);
  });
}

/// Waits for a PE's record of a call.
class CallWait final : public Wait {
 public:
  CallWait(int pe, const Signal* word, Epoch call, Epoch sent) : pe_(pe), word_(word), call_(call), sent_(sent) {}

  bool is_answered() override { return cuda::is_of_call(found_ = load(word_, std::memory_order_acquire), call_); }
  Awaited awaited() const override { return {0, word_, sent_, found_}; }
  /// The mismatch of a PE that makes another call: the report names that PE in place of a block.
  Awaited answer() const { return {pe_, word_, sent_, found_}; }
  Epoch found() const { return found_; }

 private:
  int pe_;
  const Signal* word_;
  Epoch call_;
  Epoch sent_;
  Epoch found_ = 0;
};

/// Reports the mismatch. Another PE may have reported first: this PE's report then notes at least which PE ended it.
void disagree(const cuda::Context& context, std::uint32_t why, const Awaited& answer) {
  abort_waits(context, why, answer);
  cuda::poke(context.report->ended_by, who_aborted(context) & ~cuda::kEndIsReported);
}

/// Two slots by parity suffice. No PE starts call e + 2 before all have finished comparing call e + 1, and so call e.
void tell_and_compare(Strand& strand, BlockCore& core, const cuda::Comparison& own, const cuda::Context& context) {
  const Epoch call = *own.calls + 1;
  const int n = core.num_pes();
  const Signals slot = own.words + 2 * n * static_cast<Size>(call % 2);
  const Epoch sent = cuda::signal_value_of(call, own.signature);
  for (int pe = 0; pe < n; ++pe) {
    Signal* const there = (slot + Size{2} * core.pe()).on(pe);
    core.signal({there + 1, own.count}, Order::kRelaxed, Site::here());
    core.signal({there, sent}, Order::kRelease, Site::here());
  }
  for (int pe = 0; pe < n; ++pe) {
    const Signal* const here = slot.local() + Size{2} * pe;
    CallWait wait(pe, here, call, sent);
    strand.await(wait);
    const Epoch count = load(here + 1, std::memory_order_relaxed);
    if (wait.found() != sent)
      disagree(context, cuda::kOtherCalls, wait.answer());
    else if (count != own.count)
      disagree(context, cuda::kCallsOfOtherCounts, {pe, here, own.count, count});
  }
  *own.calls = call;
}

}  // namespace

void run_grid(const GridRequest& request) {
  if (request.blocks < 1)
    throw InvalidArgument(
        fmt::format("launch of {}: {} blocks given, at least 1 is needed", request.name, request.blocks));
  if (is_skipped(request.context)) return;
  constexpr int kWarp = 32;
  const GridShape shape{request.context, request.blocks,        request.threads / kWarp,
                        request.machine, request.has_multicast, request.mailbox};
  run_blocks(request.context, request.blocks, request.by, [&](Strand& strand, int i) {
    BlockCore core(strand, shape, i);
    with_records(request.records, core, [&](cpu::BlockCore& used, BlockRecords*) {
      cpu::Block block(used);
      request.body(block);
    });
  });
}

bool is_far(const wire::Mailbox* mailbox, const void* to, const void* from) {
  return mailbox != nullptr && (mailbox->far_spot(to) || mailbox->far_spot(from));
}

void copy_far(const cuda::Context& context, void* to, const void* from, Size bytes, wire::Mailbox& mailbox) {
  run_alone(context, &mailbox, [&](Strand&, BlockCore& core) {
    if (mailbox.far_spot(from))
      core.get(to, from, bytes, cpu::Completion::kBlocking, Site::here());
    else
      core.put(to, from, bytes, cpu::Completion::kNonBlocking, nullptr, Site::here());
    core.quiet(Site::here());
  });
}

void write_signal(const cuda::Context& context, Signal* word, Epoch value, wire::Mailbox* mailbox) {
  if (mailbox != nullptr && mailbox->far_spot(word))
    return run_alone(context, mailbox, [&](Strand&, BlockCore& core) {
      core.signal({word, value}, Order::kRelease, Site::here());
    });
  change({word, value}, std::memory_order_release);
  ring_owner(context, word);
}

void wait_signal(const cuda::Context& context, const Signal* word, Epoch value) {
  run_alone(context, nullptr,
            [&](Strand&, BlockCore& core) { core.wait(word, 1, 1, Cmp::kGe, value, Order::kAcquire, Site::here()); });
}

void compare_calls(const cuda::Context& context, const cuda::Comparison& comparison, wire::Mailbox* mailbox) {
  run_alone(context, mailbox,
            [&](Strand& strand, BlockCore& core) { tell_and_compare(strand, core, comparison, context); });
}

}  // namespace tandem::host
