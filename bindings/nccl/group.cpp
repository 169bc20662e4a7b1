#include "bindings/nccl/group.h"

#include <algorithm>
#include <future>
#include <utility>
#include <vector>

#include "bindings/nccl/fallback.h"
#include "bindings/nccl/handles.h"

namespace tandem::nccl {

namespace {

/// The calls of one communicator in a group.
struct Part {
  std::shared_ptr<Communicator> communicator;
  Work work;
  std::vector<std::shared_ptr<Communicator>> made;
};

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Part> parts;
  bool has_calls = false, has_changes = false;
  bool has_real = false;  // calls of the real NCCL

  Part& part(const std::shared_ptr<Communicator>& communicator) {
    for (Part& part : parts)
      if (part.communicator == communicator) return part;
    return parts.emplace_back(Part{communicator, {}, {}});
  }
};

Group& group() {
  thread_local Group mine;
  return mine;
}

/// `is_alone`: no other rank of this thread waits for this part.
ncclResult_t run_part(Part& part, bool is_alone) {
  const Use use(part.communicator);
  try {
    for (const auto& change : part.work.changes) change();
    const Work& work = part.work;
    if (!work.collectives.empty() || !work.messages.empty() || !work.one_sided.empty())
      part.communicator->run(part.work);
    return ncclSuccess;
  } catch (...) {
    const Problem problem = problem_now();
    // Ranks of this thread would wait for the call that has failed, and nobody could end that.
    if (!is_alone) part.communicator->abort("a call of the same group has failed: " + problem.text);
    const bool is_lasting = problem.result == ncclRemoteError || !part.communicator->settings().is_blocking;
    for (const auto& made : part.made) made->keep(problem, true);
    return part.communicator->keep(problem, is_lasting);
  }
}

/// Runs a part on its communicator's thread. The result counts if the communicator blocks.
std::future<ncclResult_t> start_part(Part part, bool is_alone) {
  auto promise = std::make_shared<std::promise<ncclResult_t>>();
  auto result = promise->get_future();
  const auto communicator = part.communicator;
  const auto made = part.made;
  communicator->begin_job();
  for (const auto& other : made)
    if (other != communicator) other->begin_job();
  const auto mine = std::make_shared<Part>(std::move(part));
  communicator->jobs().add_always([mine, promise, is_alone] {
    const ncclResult_t code = run_part(*mine, is_alone);
    for (const auto& other : mine->made)
      if (other != mine->communicator) other->end_job();
    mine->communicator->end_job();
    promise->set_value(code);
  });
  return result;
}

ncclResult_t run_parts(std::vector<Part> parts) {
  if (parts.size() == 1 && parts.front().communicator->settings().is_blocking) return run_part(parts.front(), true);
  const bool is_alone = parts.size() == 1;
  std::vector<std::pair<std::future<ncclResult_t>, bool>> results;
  for (Part& part : parts) {
    const bool is_blocking = part.communicator->settings().is_blocking;
    results.emplace_back(start_part(std::move(part), is_alone), is_blocking);
  }
  ncclResult_t all = ncclSuccess;
  for (auto& [result, is_blocking] : results) {
    const ncclResult_t code = is_blocking ? result.get() : ncclInProgress;
    if (all == ncclSuccess || all == ncclInProgress) all = code == ncclSuccess ? all : code;
  }
  return all;
}

/// Ends the real NCCL's group. It runs after this library's calls.
ncclResult_t end_real_group() { return forwarded<decltype(ncclGroupEnd)>("pncclGroupEnd", ncclInvalidUsage); }

ncclResult_t run_group(Group& ended) {
  if (ended.error != ncclSuccess) return ended.error;
  if (ended.has_calls && ended.has_changes)
    throw Failed(ncclInvalidUsage, "group: calls and new communicators given, allowed is one of the two");
  return run_parts(std::move(ended.parts));
}

ncclResult_t end_outermost() {
  Group ended = std::exchange(group(), Group{});
  const ncclResult_t own = guarded([&] { return run_group(ended); });
  if (!ended.has_real) return own;
  const ncclResult_t real = end_real_group();
  return own == ncclSuccess ? real : own;
}

}  // namespace

void start_group() { ++group().depth; }

void enter_real_group() {
  if (group().depth == 0 || group().has_real) return;
  group().has_real = forwarded<decltype(ncclGroupStart)>("pncclGroupStart", ncclInvalidUsage) == ncclSuccess;
}

ncclResult_t end_group() {
  if (group().depth == 0) throw Failed(ncclInvalidUsage, "group: ncclGroupEnd without ncclGroupStart");
  if (group().depth > 1) {
    --group().depth;
    return ncclSuccess;
  }
  return end_outermost();
}

double simulate_group() {
  if (group().depth == 0) throw Failed(ncclInvalidUsage, "group: ncclGroupSimulateEnd without ncclGroupStart");
  const Group ended = std::exchange(group(), Group{});
  if (ended.has_real) end_real_group();
  if (ended.error != ncclSuccess) throw Failed(ended.error, "group: a call of it has failed");
  double most = 0;
  for (const Part& part : ended.parts) {
    const Use use(part.communicator);
    most = std::max(most, part.communicator->simulate(part.work));
  }
  return most;
}

ncclResult_t failed_in_group(ncclResult_t result) {
  if (group().depth > 0 && group().error == ncclSuccess) group().error = result;
  return result;
}

namespace {

template <class Add>
ncclResult_t add(const std::shared_ptr<Communicator>& communicator, bool is_change, const Add& add_to) {
  start_group();
  Group& mine = group();
  add_to(mine.part(communicator));
  (is_change ? mine.has_changes : mine.has_calls) = true;
  return end_group();
}

}  // namespace

ncclResult_t add_collective(const std::shared_ptr<Communicator>& communicator, const c::Call& call) {
  return add(communicator, false, [&](Part& part) { part.work.collectives.push_back(call); });
}

ncclResult_t add_message(const std::shared_ptr<Communicator>& communicator, const Message& message) {
  return add(communicator, false, [&](Part& part) { part.work.messages.push_back(message); });
}

ncclResult_t add_one_sided(const std::shared_ptr<Communicator>& communicator, std::function<void()> call) {
  return add(communicator, false, [&](Part& part) { part.work.one_sided.push_back(std::move(call)); });
}

ncclResult_t add_change(const std::shared_ptr<Communicator>& on, const std::shared_ptr<Communicator>& made,
                        std::function<void()> change) {
  return add(on, true, [&](Part& part) {
    part.work.changes.push_back(std::move(change));
    if (made != on) part.made.push_back(made);
  });
}

}  // namespace tandem::nccl
