#include "support/host_pes.h"

#include <sys/mman.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "tandem/error.h"
#include "tandem/impl/cuda/stall.h"

namespace tandem::test {

namespace {

constexpr Size kPartBytes = Size{256} << 20;  // of address space
constexpr Size kSymmetricBytes = kPartBytes / 2;
constexpr Size kAlignment = 256;

}  // namespace

struct HostPes::State {
  State(int count, const HostOptions& given) : pes(count), options(given) {}

  const int pes;
  const HostOptions options;
  Machine machine = load_machine("h200x8");
  std::byte* memory = nullptr;
  std::vector<cuda::WaitReport> reports;
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0;
  int round = 0;
  std::exception_ptr error;

  void barrier() {
    std::unique_lock lock(mutex);
    const int mine = round;
    if (++waiting == pes) {
      waiting = 0;
      ++round;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return round != mine || error != nullptr; });
    if (round == mine) throw Error("another PE has failed");
  }
  void fail(std::exception_ptr why) {
    const std::lock_guard lock(mutex);
    if (error == nullptr) error = std::move(why);
    changed.notify_all();
  }
};

namespace {

/// Something that has happened once it is set.
struct HostEvent final : detail::EventState {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_set = false;

  void set() {
    const std::lock_guard lock(mutex);
    is_set = true;
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return is_set; });
  }
};

}  // namespace

/// A thread that does the stream's work in order; nothing after what has failed.
class HostPes::HostStream final : public detail::StreamBackend {
 public:
  HostStream(const HostPes& pes, int pe) : pes_(pes), pe_(pe), thread_([this] { work(); }) {}
  ~HostStream() override {
    enqueue(nullptr);
    thread_.join();
  }

  void launch(detail::KernelLaunch kernel) override {
    enqueue([request = host::GridRequest{kernel.name(), kernel.grid.blocks, kernel.grid.threads, context(kernel.team),
                                         "test", pes_.state_->options.has_multicast, kernel.on_cpu(), by()},
             is_recorded = pes_.state_->options.is_recorded]() mutable {
      host::GridRecords records{1000, {}};
      records.blocks.resize(static_cast<std::size_t>(request.blocks));
      if (is_recorded) request.records = &records;
      host::run_grid(request);
    });
  }
  void gemm(const Gemm& gemm, const Team& team) override {
    enqueue([this, gemm, in = context(team)] { host::run_gemm(in, gemm, pes_.state_->machine.gpu.sm_count, by()); });
  }
  void copy(void* to, const void* from, Size bytes) override {
    enqueue([=] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
  }
  void write_signal(Signal* word, const Epoch* from, Epoch value) override {
    enqueue([=, in = pes_.context(pe_)] { host::write_signal(in, word, from != nullptr ? *from : value); });
  }
  void wait_signal(const Signal* word, Epoch value) override {
    enqueue([=, in = pes_.context(pe_)] { host::wait_signal(in, word, value); });
  }
  std::shared_ptr<detail::EventState> record() override {
    auto event = std::make_shared<HostEvent>();
    enqueue([event] { event->set(); }, true);
    return event;
  }
  void wait(const std::shared_ptr<detail::EventState>& event) override {
    enqueue([event] { static_cast<HostEvent&>(*event).wait(); }, true);
  }
  void synchronize() override {
    static_cast<HostEvent&>(*record()).wait();
    if (error_ != nullptr) std::rethrow_exception(error_);
    const cuda::WaitReport& report = pes_.report(pe_);
    if (__atomic_load_n(&report.set, __ATOMIC_ACQUIRE) != 0 || __atomic_load_n(&report.ended_by, __ATOMIC_RELAXED) != 0)
      throw Deadlock("a wait ended in vain");
  }
  void compare_call(const detail::CallComparison& comparison, const Team& team) override {
    enqueue([=, in = context(team)] {
      host::compare_calls(
          in, {comparison.words, comparison.calls.words, comparison.signature, static_cast<Epoch>(comparison.count)});
    });
  }
  Team world_team() const override { return pes_.context(pe_).team; }
  void* native() override { return nullptr; }

 private:
  host::GridThreads by() { return {&crew_, pes_.state_->options.threads}; }
  struct Task {
    std::function<void()> run;
    bool is_event;
  };

  cuda::Context context(const Team& team) const {
    cuda::Context context = pes_.context(pe_);
    context.team = team;
    return context;
  }
  void enqueue(std::function<void()> run, bool is_event = false) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back({std::move(run), is_event});
    changed_.notify_one();
  }
  Task next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !tasks_.empty(); });
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }
  void work() {
    for (Task task = next(); task.run != nullptr; task = next()) {
      if (error_ != nullptr && !task.is_event) continue;
      try {
        task.run();
      } catch (...) {
        error_ = std::current_exception();
        pes_.state_->fail(error_);  // before what the others throw for it
        for (int pe = 0; pe < pes_.state_->pes; ++pe) host::end_waits(pes_.context(pe_), pe, cuda::kAbortedByHost);
      }
    }
  }

  const HostPes& pes_;
  int pe_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::exception_ptr error_;
  host::Crew crew_;
  std::thread thread_;  // the last one: it uses the others
};

class HostPes::View final : public detail::WorldBackend {
 public:
  View(HostPes& pes, int pe) : pes_(pes), pe_(pe), symmetric_(cuda::wait_words_bytes(pes.state_->pes)) {}

  Team team() const override { return pes_.context(pe_).team; }
  const Machine& machine() const override { return pes_.state_->machine; }
  DeviceKind device() const override { return DeviceKind::kHost; }
  bool phantom() const override { return false; }
  Size stride() const override { return kPartBytes; }
  std::optional<Size> bytes_from(const void*) const override { return std::nullopt; }
  void* allocate_symmetric(Size bytes, const std::string& name, Size, bool) override {
    std::byte* const memory = pes_.state_->memory + take(symmetric_, bytes, kSymmetricBytes, name);
    barrier();
    return memory;
  }
  void* allocate_local(Size bytes, const std::string& name, Size, bool) override {
    return pes_.state_->memory + pe_ * kPartBytes + kSymmetricBytes + take(local_, bytes, kSymmetricBytes, name);
  }
  void free_symmetric(const void*) override { barrier(); }
  void release_symmetric(const void*) override {}
  void free_local(const void*) override {}
  void copy_in(void* to, const void* from, Size bytes) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void copy_out(void* to, const void* from, Size bytes) override { copy_in(to, from, bytes); }
  std::shared_ptr<detail::StreamBackend> make_stream(const std::string&) override {
    return std::make_shared<HostStream>(pes_, pe_);
  }
  void check_launch(const detail::KernelLaunch&) const override {}
  void check_gemm(const Gemm&) const override {}
  void barrier() override { pes_.state_->barrier(); }
  double time_us() const override { return 0; }

 private:
  static Size take(Size& next, Size bytes, Size most, const std::string& name) {
    const Size at = round_up(next, kAlignment);
    if (at + bytes > most) throw OutOfMemory(name + ": the test's memory is too small");
    next = at + bytes;
    return at;
  }

  HostPes& pes_;
  int pe_;
  Size symmetric_;
  Size local_ = 0;
};

HostPes::HostPes(int pes, const HostOptions& options) : state_(std::make_unique<State>(pes, options)) {
  void* const memory = mmap(nullptr, static_cast<std::size_t>(pes * kPartBytes), PROT_READ | PROT_WRITE,
                            (options.for_processes ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw OutOfMemory("the test's memory");
  state_->memory = static_cast<std::byte*>(memory);
  state_->reports.resize(static_cast<std::size_t>(pes));
}

HostPes::~HostPes() { munmap(state_->memory, static_cast<std::size_t>(state_->pes * kPartBytes)); }

cuda::Context HostPes::context(int pe) const {
  constexpr double kNs = 1e9;
  cuda::Context context;
  context.team = {0, 1, state_->pes, pe, state_->pes};
  context.abort_on_pe0 = reinterpret_cast<std::uint32_t*>(state_->memory);
  context.abort_stride = kPartBytes;
  context.abort = reinterpret_cast<std::uint32_t*>(state_->memory + pe * kPartBytes);
  context.world_pes = state_->pes;
  context.world_pe = pe;
  context.report = &state_->reports[static_cast<std::size_t>(pe)];
  context.timeout_ns = static_cast<std::uint64_t>(state_->options.timeout_s * kNs);
  context.arrival_timeout_ns = static_cast<std::uint64_t>(state_->options.arrival_timeout_s * kNs);
  return context;
}

const cuda::WaitReport& HostPes::report(int pe) const { return state_->reports[static_cast<std::size_t>(pe)]; }

void HostPes::run(const std::function<void(World&)>& program) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(state_->pes));
  for (int pe = 0; pe < state_->pes; ++pe)
    threads.emplace_back([&, pe] {
      try {
        View view(*this, pe);
        World world(view);
        program(world);
      } catch (...) {
        state_->fail(std::current_exception());
        for (int other = 0; other < state_->pes; ++other) host::end_waits(context(pe), other, cuda::kAbortedByHost);
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (state_->error != nullptr) std::rethrow_exception(state_->error);
}

}  // namespace tandem::test
