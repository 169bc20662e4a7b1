// The parts of c_api_gpu_check, as one process of each goes through them.
#include <cuda_runtime.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gpu/c_api_parts.h"
#include "tandem.h"

namespace tandem::test {

namespace {

using Words = std::vector<unsigned>;

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

void cuda(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

/// What has to go well.
void well(tandem_status status) {
  if (status != TANDEM_SUCCESS)
    throw std::runtime_error("status " + std::to_string(status) + ": " + tandem_last_error());
}

/// What has to fail like this.
void refused(tandem_status status, tandem_status expected, const std::string& part) {
  const std::string text = tandem_last_error();
  expect(status == expected && text.find(part) != std::string::npos,
         "status " + std::to_string(expected) + " and '" + part + "', not " + std::to_string(status) + ": " + text);
}

/// Memory of cudaMalloc, some words of which are used.
class Memory {
 public:
  explicit Memory(size_t words) : size_(words) { cuda(cudaMalloc(&begin_, (words + 1) * 4)); }
  explicit Memory(const Words& contents) : Memory(contents.size()) {
    cuda(cudaMemcpy(begin_, contents.data(), contents.size() * 4, cudaMemcpyHostToDevice));
  }
  ~Memory() { cudaFree(begin_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  unsigned* at(size_t word = 0) const { return begin_ + word; }
  Words contents() const {
    Words words(size_);
    cuda(cudaMemcpy(words.data(), begin_, size_ * 4, cudaMemcpyDeviceToHost));
    return words;
  }

 private:
  unsigned* begin_ = nullptr;
  size_t size_;
};

unsigned word(int from, int to, size_t i) {
  return static_cast<unsigned>(from) * 1'000'003U + static_cast<unsigned>(to) * 10'007U + static_cast<unsigned>(i) * 7U;
}

Words words(int from, int to, size_t count) {
  Words all(count);
  for (size_t i = 0; i < count; ++i) all[i] = word(from, to, i);
  return all;
}

/// A world, and what its PEs need to know of it.
struct Joined {
  tandem_world* world = nullptr;
  int pe = 0;
  int n = 0;

  explicit Joined(double timeout_s = 10) {
    tandem_options options{};
    options.timeout_s = timeout_s;
    well(tandem_world_from_environment(&world, &options));
    number();
  }
  Joined(const Joined& whole, int color, int key) {
    well(tandem_world_split(&world, whole.world, color, key, nullptr));
    number();
  }
  ~Joined() { tandem_world_destroy(world); }
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

 private:
  void number() {
    pe = tandem_pe(world);
    n = tandem_num_pes(world);
  }
};

void check_all_reduce(const Joined& all, cudaStream_t stream) {
  const Memory data(Words(1003, static_cast<unsigned>(all.pe) + 1));
  well(tandem_all_reduce(all.world, data.at(), data.at(), 1003, TANDEM_U32, TANDEM_SUM, stream));
  well(tandem_synchronize(all.world, stream));
  expect(data.contents() == Words(1003, static_cast<unsigned>(all.n * (all.n + 1) / 2)), "the sum");
}

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
  expect(out.contents() == gathered, "everybody's words");
  cuda(cudaMemset(out.at(), 0, gathered.size() * 4));
  cuda(cudaMemcpy(out.at(offsets[me]), own.at(), counts[me] * 4, cudaMemcpyDeviceToDevice));
  well(tandem_all_gather_v(all.world, out.at(offsets[me]), out.at(), counts.data(), offsets.data(), TANDEM_U32,
                           nullptr));
  well(tandem_synchronize(all.world, nullptr));
  expect(out.contents() == gathered, "everybody's words, in place");

  const Memory from(sent);
  const Memory to(wanted.size());
  cudaStream_t stream = nullptr;
  cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  well(tandem_all_to_all_v(all.world, from.at(), out_counts.data(), out_offsets.data(), to.at(), in_counts.data(),
                           in_offsets.data(), TANDEM_U32, stream));
  cuda(cudaStreamEndCapture(stream, &graph));
  cuda(cudaGraphInstantiate(&made, graph, 0));
  for (int replay = 0; replay < 20; ++replay) cuda(cudaGraphLaunch(made, stream));
  well(tandem_synchronize(all.world, stream));
  expect(to.contents() == wanted, "everybody's words for this PE");
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

/// Parts of a world work beside it and beside each other, and may go before or after it.
void splits() {
  cudaStream_t stream = nullptr;
  cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < 3; ++round) {
    const Joined all;
    const Joined turned(all, 3, -all.pe);
    expect(turned.pe == all.n - 1 - all.pe && turned.n == all.n, "numbers turned round");
    const Joined alone(all, all.pe, 0);
    expect(alone.pe == 0 && alone.n == 1, "a world of one PE");
    tandem_world* none = all.world;
    well(tandem_world_split(&none, all.world, -1, 0, nullptr));
    expect(none == nullptr, "no world for a negative color");
    check_all_reduce(turned, stream);
    check_all_reduce(all, nullptr);
    check_all_reduce(alone, stream);
    check_all_reduce(turned, nullptr);
  }
  cudaStreamDestroy(stream);
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

/// All wait for a message that nobody sends; a thread of the last PE ends that.
void aborts() {
  {
    const Joined all(60);
    const Memory in(100);
    check_all_reduce(all, nullptr);
    std::thread other;
    const auto begin = std::chrono::steady_clock::now();
    well(tandem_recv(all.world, in.at(), 100, TANDEM_U32, (all.pe + 1) % all.n, nullptr));
    if (all.pe == all.n - 1)
      other = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        well(tandem_world_abort(all.world, "on purpose"));
      });
    refused(tandem_synchronize(all.world, nullptr), TANDEM_FAILED, "aborted: on purpose");
    if (other.joinable()) other.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    expect(took.count() < 10, "an end at once, not after " + std::to_string(took.count()) + " s");
    refused(tandem_world_error(all.world), TANDEM_FAILED, "aborted: on purpose");
    refused(tandem_barrier(all.world), TANDEM_FAILED, "aborted: on purpose");
  }
  check_all_reduce(Joined(), nullptr);
}

}  // namespace

const std::vector<CApiPart>& c_api_parts() {
  static const std::vector<CApiPart> all{{"messages", messages},         {"parts_that_differ", parts_that_differ},
                                         {"gather", gather_and_scatter}, {"splits", splits},
                                         {"wrong_calls", wrong_calls},   {"aborts", aborts}};
  return all;
}

}  // namespace tandem::test
