// The parts of c_api_gpu_check that are about calls, as one process of each goes through them.
#include <vector>

#include "gpu/c_api/c_api_joined.h"
#include "gpu/c_api/c_api_parts.h"

namespace tandem::test {

namespace {

/// Round a ring, of sizes from one word to some MiB, also where only two PEs call.
void messages() {
  const Joined all;
  const int next = (all.pe + 1) % all.n;
  const int before = (all.pe + all.n - 1) % all.n;
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1003}, size_t{3'000'001}}) {
    const Memory out(words(all.pe, next, count));
    const Memory in(count);
    const tandem_message to{out.at(), count, TANDEM_U32, next};
    const tandem_message from{in.at(), count, TANDEM_U32, before};
    well(tandem_send_recv(all.world, &to, 1, &from, 1, nullptr));
    well(tandem_synchronize(all.world, nullptr));
    expect(in.contents() == words(before, all.pe, count), "the words of the PE before");
  }
  const Memory pair(words(0, 1, 5000));
  for (int i = 0; i < 20 && all.n > 1; ++i) {
    if (all.pe == 0) well(tandem_send(all.world, pair.at(1), 4999, TANDEM_U32, all.n - 1, nullptr));
    if (all.pe == all.n - 1) {
      const Memory in(4999);
      well(tandem_recv(all.world, in.at(), 4999, TANDEM_U32, 0, nullptr));
      well(tandem_synchronize(all.world, nullptr));
      const Words all_words = words(0, 1, 5000);
      expect(in.contents() == Words(all_words.begin() + 1, all_words.end()), "PE 0's words");
    }
  }
  check_all_reduce(all, nullptr);
}

/// Parts of all sizes, none among them; in place too, and captured.
void parts_that_differ() {
  const Joined all;
  const auto size = [](int from, int to) { return static_cast<size_t>((from * 5 + to * 3) % 7) * 1001; };
  std::vector<size_t> counts, offsets, out_counts, out_offsets, in_counts, in_offsets;
  Words gathered, sent, wanted;
  for (int pe = 0; pe < all.n; ++pe) {
    const auto add = [](std::vector<size_t>& some, std::vector<size_t>& at, Words& contents, const Words& part) {
      some.push_back(part.size());
      at.push_back(contents.size());
      contents.insert(contents.end(), part.begin(), part.end());
    };
    add(counts, offsets, gathered, words(pe, pe, size(pe, pe) + 1));
    add(out_counts, out_offsets, sent, words(all.pe, pe, size(all.pe, pe)));
    add(in_counts, in_offsets, wanted, words(pe, all.pe, size(pe, all.pe)));
  }
  const auto me = static_cast<size_t>(all.pe);
  const Memory own(words(all.pe, all.pe, counts[me]));
  const Memory out(gathered.size());
  well(tandem_all_gather_v(all.world, own.at(), out.at(), counts.data(), offsets.data(), TANDEM_U32, nullptr));
  well(tandem_synchronize(all.world, nullptr));
  expect(out.contents() == gathered, "all PEs' words");
  cuda(cudaMemset(out.at(), 0, gathered.size() * 4));
  cuda(cudaMemcpy(out.at(offsets[me]), own.at(), counts[me] * 4, cudaMemcpyDeviceToDevice));
  well(tandem_all_gather_v(all.world, out.at(offsets[me]), out.at(), counts.data(), offsets.data(), TANDEM_U32,
                           nullptr));
  well(tandem_synchronize(all.world, nullptr));
  expect(out.contents() == gathered, "all PEs' words, in place");

  const Memory from(sent);
  const Memory to(wanted.size());
  cudaStream_t stream = nullptr;
  cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  well(tandem_barrier_on(all.world, stream));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  well(tandem_all_to_all_v(all.world, from.at(), out_counts.data(), out_offsets.data(), to.at(), in_counts.data(),
                           in_offsets.data(), TANDEM_U32, stream));
  well(tandem_barrier_on(all.world, stream));
  cuda(cudaStreamEndCapture(stream, &graph));
  cuda(cudaGraphInstantiate(&made, graph, 0));
  for (int replay = 0; replay < 20; ++replay) cuda(cudaGraphLaunch(made, stream));
  well(tandem_synchronize(all.world, stream));
  expect(to.contents() == wanted, "all PEs' words for this PE");
  well(tandem_barrier(all.world));
  cudaGraphExecDestroy(made);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

void gather_and_scatter() {
  const Joined all;
  const int root = all.n - 1;
  const size_t count = 1003;
  const Memory own(words(all.pe, 0, count));
  const Memory whole(count * static_cast<size_t>(all.n));
  const Memory back(count);
  well(tandem_gather(all.world, own.at(), whole.at(), count, TANDEM_U32, root, nullptr));
  well(tandem_scatter(all.world, whole.at(), back.at(), count, TANDEM_U32, root, nullptr));
  well(tandem_synchronize(all.world, nullptr));
  expect(back.contents() == own.contents(), "what was gathered");
  for (int pe = 0; pe < all.n && all.pe == root; ++pe) {
    const Words found = whole.contents();
    const auto begin = found.begin() + static_cast<std::ptrdiff_t>(count) * pe;
    expect(Words(begin, begin + static_cast<std::ptrdiff_t>(count)) == words(pe, 0, count), "each PE's words");
  }
}

void wrong_calls() {
  const Joined all;
  const Memory data(Words(100, 1));
  refused(tandem_world_split(nullptr, all.world, 0, 0, nullptr), TANDEM_INVALID_ARGUMENT, "part: NULL");
  refused(tandem_world_abort(nullptr, ""), TANDEM_INVALID_ARGUMENT, "world: NULL");
  refused(tandem_world_error(nullptr), TANDEM_INVALID_ARGUMENT, "world: NULL");
  refused(tandem_send(all.world, data.at(), 4, TANDEM_U32, all.n, nullptr), TANDEM_INVALID_ARGUMENT, "peer");
  refused(tandem_recv(all.world, nullptr, 4, TANDEM_U32, 0, nullptr), TANDEM_INVALID_ARGUMENT, "without data");
  refused(tandem_send(all.world, data.at(), 4, static_cast<tandem_dtype>(77), 0, nullptr), TANDEM_INVALID_ARGUMENT,
          "type");
  refused(tandem_send(all.world, data.at(), ~size_t{0}, TANDEM_U32, 0, nullptr), TANDEM_INVALID_ARGUMENT, "count");
  refused(tandem_send_recv(all.world, nullptr, 2, nullptr, 0, nullptr), TANDEM_INVALID_ARGUMENT, "sends: NULL");
  refused(tandem_all_gather_v(all.world, data.at(), data.at(), nullptr, nullptr, TANDEM_U32, nullptr),
          TANDEM_INVALID_ARGUMENT, "counts: NULL");
  refused(tandem_gather(all.world, data.at(), data.at(), 4, TANDEM_U32, all.n, nullptr), TANDEM_INVALID_ARGUMENT,
          "root");
  well(tandem_world_error(all.world));
  check_all_reduce(all, nullptr);
  // A message of another size than its receiver expects: found when it has come.
  const Memory in(50);
  const tandem_message to{data.at(), 60, TANDEM_U32, all.pe};
  const tandem_message from{in.at(), 50, TANDEM_U32, all.pe};
  well(tandem_send_recv(all.world, &to, 1, &from, 1, nullptr));
  refused(tandem_synchronize(all.world, nullptr), TANDEM_INVALID_ARGUMENT, "another size");
  expect(in.contents() == Words(50, 1), "what fits");
}

}  // namespace

const std::vector<CApiPart>& c_api_parts() {
  static const std::vector<CApiPart> all{{"messages", messages},
                                         {"parts_that_differ", parts_that_differ},
                                         {"gather", gather_and_scatter},
                                         {"mixed_memory", mixed_memory},
                                         {"splits", splits},
                                         {"growth", growth},
                                         {"other_threads", other_threads},
                                         {"streams_that_go", streams_that_go},
                                         {"wrong_calls", wrong_calls},
                                         {"aborts", aborts}};
  return all;
}

}  // namespace tandem::test
