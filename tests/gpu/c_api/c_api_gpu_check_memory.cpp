// The part of c_api_gpu_check that is about buffers of other kinds on some PEs than on the others.
#include "gpu/c_api/c_api_joined.h"
#include "gpu/c_api/c_api_parts.h"

namespace tandem::test {

namespace {

/// Returns memory of tandem_alloc, on all PEs.
unsigned* on_heap(const Joined& all, size_t words) {
  void* pointer = nullptr;
  well(tandem_alloc(all.world, words * 4, &pointer));
  return static_cast<unsigned*>(pointer);
}

Words of_device(const unsigned* from, size_t words) {
  Words found(words);
  cuda(cudaMemcpy(found.data(), from, words * 4, cudaMemcpyDeviceToHost));
  return found;
}

/// Only PE 0's buffers that no peer accesses lie on the heap.
void works_where_no_peer_touches_it() {
  const Joined all;
  const size_t count = 1003;
  const auto n = static_cast<size_t>(all.n);
  const Memory own(words(all.pe, 0, count));
  unsigned* const heap = on_heap(all, count);
  cuda(cudaMemcpy(heap, own.at(), count * 4, cudaMemcpyDeviceToDevice));
  const unsigned* const in = all.pe == 0 ? heap : own.at();
  unsigned* const gathered = on_heap(all, n * count);
  for (int call = 0; call < 20; ++call) well(tandem_all_gather(all.world, in, gathered, count, TANDEM_U32, nullptr));
  well(tandem_synchronize(all.world, nullptr));
  const Words found = of_device(gathered, n * count);
  for (int pe = 0; pe < all.n; ++pe) {
    const auto begin = found.begin() + static_cast<std::ptrdiff_t>(count) * pe;
    expect(Words(begin, begin + static_cast<std::ptrdiff_t>(count)) == words(pe, 0, count), "each PE's words");
  }
}

/// Every PE gets the error long before the timeout of a wait. That holds where the PEs make the plan together, and
/// where they have made all plans.
void is_named_where_peers_touch_it(bool has_plans) {
  const Joined all(600);
  if (all.n == 1) return;
  const size_t count = 1003;
  const Memory own(words(all.pe, 0, count));
  const Memory elsewhere(count * static_cast<size_t>(all.n));
  unsigned* const heap = on_heap(all, count * static_cast<size_t>(all.n));
  const auto gather = [&](unsigned* out) {
    return tandem_gather(all.world, own.at(), out, count, TANDEM_U32, 0, nullptr);
  };
  for (unsigned* const out : {heap, elsewhere.at()})
    if (has_plans) well(gather(out));
  tandem_status status = gather(all.pe == all.n - 1 ? elsewhere.at() : heap);
  if (status == TANDEM_SUCCESS) status = tandem_synchronize(all.world, nullptr);
  refused(status, TANDEM_INVALID_ARGUMENT, "out = memory of its own");
}

void takes_any_memory() {
  Joined all(10, 0, 0, true);
  const size_t count = 3'000'001;
  const Memory own(Words(count, static_cast<unsigned>(all.pe) + 1));
  unsigned* const heap = on_heap(all, count);
  cuda(cudaMemcpy(heap, own.at(), count * 4, cudaMemcpyDeviceToDevice));
  unsigned* const data = all.pe == 0 ? heap : own.at();
  well(tandem_all_reduce(all.world, data, data, count, TANDEM_U32, TANDEM_SUM, nullptr));
  well(tandem_synchronize(all.world, nullptr));
  expect(of_device(data, count) == Words(count, static_cast<unsigned>(all.n * (all.n + 1) / 2)), "the sum");
}

}  // namespace

void mixed_memory() {
  works_where_no_peer_touches_it();
  takes_any_memory();
  for (const bool has_plans : {false, true}) is_named_where_peers_touch_it(has_plans);
}

}  // namespace tandem::test
