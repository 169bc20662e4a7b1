// Checks a library with NCCL's interface: all calls, in processes of one rank each and in one process with all ranks.
//
//   nccl_interface_gpu_check [LIBRARY [RANKS [processes|one]]]
//
// LIBRARY: libtandem_nccl.so by default. RANKS: 2 (the default) or 3, whose results are exact. With TANDEM_DEVICE=host
// they are on this machine's processors. The last line counts what was right. The exit code is 1 if anything was wrong.

#include "gpu/nccl/nccl_interface_gpu_check.h"

namespace tandem::check {
namespace {

void make_streams(std::vector<Rank>& ranks) {
  for (Rank& rank : ranks) {
    rank.use();
    if (!on_host()) require(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
  }
}

std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  if (!on_host()) require(cudaMemGetInfo(&free, &total));
  return free;
}

void run_all(Checker& checker, double begin) {
  checker.part("calls", [&] { check_calls(checker); });
  checker.part("groups", [&] { check_groups(checker); });
  checker.part("multiplied sums", [&] { check_multiplied_sums(checker); });
  if (!on_host()) checker.part("graphs", [&] { check_graphs(checker); });
  checker.part("windows", [&] { check_windows(checker); });
  checker.part("large", [&] { check_large(checker); });
  checker.part("two communicators", [&] { check_two_communicators(checker); });
  checker.part("bad input", [&] { check_bad_input(checker); });
  if (checker.speaks()) std::printf("%.2f s in all\n", seconds() - begin);
}

int one_rank(const std::string& library, Shared& shared, int number, int count) {
  const double begin = seconds();
  const NcclLibrary nccl(library);
  std::vector<Rank> ranks{{{number, nullptr, nullptr}}};
  make_streams(ranks);
  if (number == 0) TANDEM_NCCL(nccl, GetUniqueId, &shared.id);
  shared.meet(count);
  const std::size_t before = free_bytes();
  const double ready = seconds();
  TANDEM_NCCL(nccl, CommInitRank, &ranks[0].comm, count, shared.id, number);
  if (number == 0) {
    std::printf("start: %.2f s, %zu MiB of the GPU\n", seconds() - ready, (before - free_bytes()) >> 20U);
  }
  Checker checker(nccl, ranks, count, shared);
  run_all(checker, begin);
  checker.part("split", [&] { check_split(checker); });
  checker.part("abort", [&] { check_abort(checker); });
  return 0;
}

int all_ranks(const std::string& library, Shared& shared, int count) {
  const double begin = seconds();
  const NcclLibrary nccl(library);
  std::vector<Rank> ranks(static_cast<std::size_t>(count));
  std::vector<ncclComm_t> comms(ranks.size());
  for (int i = 0; i < count; ++i) ranks[static_cast<std::size_t>(i)].number = i;
  make_streams(ranks);
  TANDEM_NCCL(nccl, CommInitAll, comms.data(), count, nullptr);
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].comm = comms[i];
  Checker checker(nccl, ranks, count, shared);
  run_all(checker, begin);
  for (const ncclComm_t comm : comms) TANDEM_NCCL(nccl, CommDestroy, comm);
  return 0;
}

}  // namespace
}  // namespace tandem::check

int main(int argc, char** argv) {
  using namespace tandem::check;
  const std::string library = argc > 1 ? argv[1] : "libtandem_nccl.so";
  const int ranks = argc > 2 ? ranks_of(argv[2]) : 2;
  const std::string only = argc > 3 ? argv[3] : "";
  if (ranks == 0) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Shared& shared = make_shared_memory();
  bool well = true;
  if (only != "one") {
    std::printf("== %d processes\n", ranks);
    well = in_processes(shared, ranks, [&](int rank) { return one_rank(library, shared, rank, ranks); });
  }
  if (only != "processes") {
    std::printf("== one process with %d ranks\n", ranks);
    well = in_processes(shared, 1, [&](int) { return all_ranks(library, shared, ranks); }) && well;
  }
  std::printf("%d passed, %d failed%s\n", shared.passed.load(), shared.failed.load(), well ? "" : ", a process failed");
  return well && shared.failed == 0 && shared.passed > 0 ? 0 : 1;
}
