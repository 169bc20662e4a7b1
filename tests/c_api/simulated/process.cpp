#include "c_api/simulated/process.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "host/world/devices.h"
#include "host/world/stream.h"
#include "host_order.h"
#include "last_call.h"
#include "tandem/advanced/unique_id.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

std::atomic<int>& gpus_there() {
  static std::atomic<int> count{0};
  return count;
}

void note_use() { gpus_used().push_back(current_gpu()); }

/// Returns the stream of a handle in this thread.
CStream& usable(void* handle) {
  note_use();
  auto* const stream = handle == handle_of_thread() ? stream_of_thread() : static_cast<CStream*>(handle);
  if (stream == nullptr || !stream->is_there) throw RuntimeFailure("invalid argument");
  return *stream;
}

/// Returns a queue that runs nothing more, as work that is captured does not run: a task of it has failed.
std::shared_ptr<host::TaskQueue> queue_of_captures() {
  static const auto queue = [] {
    auto made = std::make_shared<host::TaskQueue>();
    made->add([] { throw RuntimeFailure("captured work does not run"); }, nullptr);
    return made;
  }();
  return queue;
}

/// CPUs that are told apart as GPUs are: one of them is current on each thread.
class SimulatedGpus final : public host::HostDevices {
 public:
  DeviceKind kind() const override { return DeviceKind::kGpu; }
  int count() override { return gpus_there(); }
  void require_any() override {
    if (count() == 0) throw Unsupported("cuda backend: no GPU, or no NVIDIA driver");
  }
  int current() override { return current_gpu(); }
  void set_current(int device) override { current_gpu() = device; }
  int enter(int device) override { return std::exchange(current_gpu(), device); }
  void leave(int, int before) noexcept override { current_gpu() = before; }
  world::DeviceMemory& memory() override {
    note_use();
    return HostDevices::memory();
  }
  void wait_until_idle(int device, const void* world) noexcept override {
    if (const auto hook = std::exchange(waits_for_gpu(), nullptr)) hook();
    HostDevices::wait_until_idle(device, world);
  }
  std::unique_ptr<world::DeviceStream> borrow_stream(const world::StreamUse& use, void* handle,
                                                     world::Profiler* profiler) override {
    const CStream& stream = usable(handle);
    if (stream.captured_in != 0) return std::make_unique<host::HostStream>(use, queue_of_captures(), false);
    return HostDevices::borrow_stream(use, stream.stream->native(), profiler);
  }
};

SimulatedGpus& simulated_gpus() {
  static SimulatedGpus& all = *new SimulatedGpus;
  return all;
}

struct SimulatedEvent {
  std::shared_ptr<detail::EventState> event;
  unsigned long long of_stream = 0;
  unsigned long long capture = 0;
};

class SimulatedStreamCalls final : public c::StreamCalls {
 public:
  unsigned long long capture_of(void* stream) const override { return usable(stream).captured_in; }
  unsigned long long number_of(void* stream) const override { return plain(usable(stream)).number; }
  bool is_of_thread(void* stream) const override { return stream == handle_of_thread(); }
  void* make_event() const override { return new SimulatedEvent; }
  void destroy_event(void* event) const noexcept override { delete static_cast<SimulatedEvent*>(event); }
  void record(void* event, void* handle) const override {
    const CStream& stream = usable(handle);
    *static_cast<SimulatedEvent*>(event) = {stream.stream->record(), stream.number, stream.captured_in};
  }
  void wait(void* handle, void* given) const override {
    CStream& stream = usable(handle);
    const SimulatedEvent& event = *static_cast<SimulatedEvent*>(given);
    if (stream.captured_in != event.capture) plain(stream);
    stream.captured_in = event.capture;  // a stream that waits for what is captured belongs to that capture
    stream.waited_for.push_back(event.of_stream);
    stream.stream->wait(event.event);
  }
  // Worlds of the C API leave graphs to the program.
  void* record_in_graph(void*, void*, void*) const override { return nullptr; }
  void wait_in_graph(void*, void*) const override {}
  void exchange_capture_mode(int& mode) const override {
    thread_local int of_thread = 0;
    std::swap(mode, of_thread);
  }

 private:
  static CStream& plain(CStream& stream) {
    if (stream.captured_in != 0) throw RuntimeFailure("the stream is captured");
    return stream;
  }
};

tandem_world* join(const UniqueId& id, int pe, int pes, const CRun& run) {
  tandem_world* world = nullptr;
  // The least, so that calls take several pieces.
  const tandem_options options{.heap_bytes = run.heap_bytes,
                               .staging_bytes = std::size_t{1} << 16,
                               .heap_limit_bytes = run.heap_bytes,
                               .any_memory = run.any_memory ? 1 : 0,
                               .max_blocks = run.max_blocks,
                               .algorithms = run.algorithms ? run.algorithms(pe) : nullptr};
  if (tandem_world_create(&world, id.bytes().data(), pe, pes, &options) != TANDEM_SUCCESS)
    throw InvalidArgument(tandem_last_error());
  return world;
}

void run_pe(const UniqueId& id, int pe, int pes, const std::function<void(CPeer&)>& program, const CRun& run) {
  current_gpu() = run.first_gpu + pe;
  CStream stream;
  CPeer peer{join(id, pe, pes, run), pe, pes, stream.handle()};
  try {
    program(peer);
  } catch (const std::exception& error) {
    tandem_world_abort(peer.world, error.what());  // the others are not left to wait
    tandem_world_destroy(peer.world);
    throw;
  }
  EXPECT_EQ(unlike(tandem_world_destroy(peer.world), TANDEM_SUCCESS), "");
}

}  // namespace

extern "C" world::Devices* tandem_gpu_devices() { return &simulated_gpus(); }

void run_in_c(int pes, const std::function<void(CPeer&)>& program, const CRun& run) {
  const UniqueId id = UniqueId::create();
  gpus_there() = run.first_gpu + pes;
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(pes));
  for (int pe = 0; pe < pes; ++pe)
    threads.emplace_back([&, pe] {
      try {
        run_pe(id, pe, pes, program, run);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (first == nullptr) first = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  gpus_there() = 0;
  if (first != nullptr) std::rethrow_exception(first);
}

void CStream::make_again() {
  static std::atomic<unsigned long long> numbers{0};
  world::StreamUse use;
  use.device = current_gpu();
  stream = simulated_gpus().make_stream(use, nullptr);
  number = ++numbers;
  is_there = true;
  waited_for.clear();
}

void* handle_of_thread() {
  static int handle = 0;
  return &handle;
}

CStream*& stream_of_thread() {
  thread_local CStream* own = nullptr;
  return own;
}

std::function<void()>& waits_for_gpu() {
  static std::function<void()> hook;
  return hook;
}

int& current_gpu() {
  thread_local int gpu = 0;
  return gpu;
}

std::vector<int>& gpus_used() {
  thread_local std::vector<int> all;
  return all;
}

tandem_status error_of(tandem_world* world) {
  tandem_status status = TANDEM_SUCCESS;
  while ((status = tandem_world_error(world)) == TANDEM_SUCCESS) std::this_thread::yield();
  return status;
}

std::string unlike(tandem_status status, tandem_status expected, const std::string& part) {
  const std::string text = tandem_last_error();
  if (status == expected && text.find(part) != std::string::npos && text.empty() == (status == TANDEM_SUCCESS))
    return "";
  return fmt::format("status {}: {}", static_cast<int>(status), text);
}

}  // namespace tandem::test

namespace tandem::c {

std::unique_ptr<StreamOrder> make_stream_order(DeviceKind kind, int device, int sms, bool orders_graphs) {
  static const test::SimulatedStreamCalls calls;
  if (kind == DeviceKind::kGpu) return std::make_unique<LastCall>(calls, launches_on(device), sms, orders_graphs);
  return std::make_unique<HostOrder>();
}

}  // namespace tandem::c
