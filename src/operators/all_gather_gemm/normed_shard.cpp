/// The transport of a shard whose rows are normed first. Its parts follow each other in the main stream, and each
/// leaves as soon as it is there.
#include "operators/all_gather_gemm/all_gather_push.h"
#include "operators/all_gather_gemm/gather_transport.h"

namespace tandem::ops {

void GatherTransport::norm_own(Stream& main, const OperatorCall& call) {
  const Range shard = rows_.shard(team_.me);
  if (copies_.empty()) {
    if (pushes_norm_)
      return norm_->push(main, call, shard.size(), place_of_own(), ready_ + rows_.slot(team_.me, 0), rows_.splits);
    return norm_->run(main, call, {0, shard.size()}, place_of_own());
  }
  for (int part = 0; part < rows_.splits; ++part) {
    const Range rows = rows_.part(team_.me, part);
    norm_->run(main, call, {rows.begin - shard.begin, rows.end - shard.begin}, place_of_own());
    normed_.push_back(main.record());
  }
}

void GatherTransport::await_normed(Stream& stream, int part) {
  if (!normed_.empty()) stream.wait(normed_[static_cast<std::size_t>(part)]);
}

void GatherTransport::await_all_normed(Stream& stream) {
  if (!normed_.empty()) stream.wait(normed_.back());
}

/// Waits before each part. Between nodes, blocks also pass on what arrives, so they start once all parts are there.
void GatherTransport::push_normed(Stream& stream, AllGatherPush::Args args) {
  for (args.only_part = 0; args.only_part < rows_.splits; ++args.only_part) {
    await_normed(stream, args.only_part);
    stream.launch<AllGatherPush>({sms_, kSmThreads}, args);
  }
}

}  // namespace tandem::ops
