#include "c_api/simulated/process.h"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "host/world/devices.h"
#include "tandem/error.h"
#include "tandem/simulation.h"
#include "tandem/worlds.h"

struct CUstream_st {
  tandem::Stream stream;
  unsigned long long number = 0;   // cudaStreamGetId's
  unsigned long long capture = 0;  // 0: none
  bool is_there = true;
  std::vector<unsigned long long> waited_for = {};
};

struct CUevent_st {
  tandem::Event event;
  unsigned long long of_stream = 0;
  unsigned long long capture = 0;
};

namespace {

/// Returns the stream of a handle in this thread.
cudaStream_t meant(cudaStream_t stream) {
  if (stream != cudaStreamPerThread) return stream;
  const tandem::test::CStream* const own = tandem::test::stream_of_thread();
  return own == nullptr ? nullptr : own->state;
}

}  // namespace

namespace tandem {

namespace {

/// By PE, while a simulation runs.
std::map<int, World*>& simulated_worlds() {
  static std::map<int, World*> all;
  return all;
}

/// Notes a use of something that depends on the current GPU.
void note_use() { test::gpus_used().push_back(test::current_gpu()); }

/// GPUs, of which only the current one matters.
class SimulatedGpus final : public host::HostDevices {
 public:
  DeviceKind kind() const override { return DeviceKind::kGpu; }
  int count() override { return static_cast<int>(simulated_worlds().size()); }
  void require_any() override {
    if (count() == 0) throw Unsupported("cuda backend: no GPU, or no NVIDIA driver");
  }
  int current() override { return test::current_gpu(); }
  int enter(int device) override { return std::exchange(test::current_gpu(), device); }
  void leave(int, int before) noexcept override { test::current_gpu() = before; }
};

}  // namespace

namespace world {

extern "C" Devices* tandem_gpu_devices() {
  static SimulatedGpus& all = *new SimulatedGpus;
  return &all;
}

}  // namespace world

struct WorldProcess::State {
  World* world;
  int device;
  std::string failure;
};

WorldProcess::WorldProcess(const Placement& place, const WorldOptions& options)
    : state_(std::make_unique<State>(State{simulated_worlds().at(place.pe), options.device, {}})) {}
void WorldProcess::leave() {
  if (const auto& hook = test::process_hooks().waits_at_the_end) hook();
}
WorldProcess::~WorldProcess() {
  if (const auto& hook = test::process_hooks().goes) hook();
}
World& WorldProcess::world() {
  note_use();
  return *state_->world;
}
DeviceKind WorldProcess::kind() const { return DeviceKind::kGpu; }
int WorldProcess::pe() const { return state_->world->pe(); }
int WorldProcess::device() const { return state_->device; }
int WorldProcess::pes() const { return state_->world->num_pes(); }

Stream WorldProcess::borrow_stream(void* cuda_stream) {
  note_use();
  if (cuda_stream == nullptr) return world().make_stream("default");
  return meant(static_cast<cudaStream_t>(cuda_stream))->stream;
}

Symm<std::byte> WorldProcess::register_buffer(void*, Size) {
  note_use();
  throw Unsupported("registration: not in the simulator");
}
void WorldProcess::unregister_buffer(void* pointer) {
  note_use();
  throw InvalidArgument(fmt::format("registration: {} is not registered", pointer));
}
std::unique_ptr<WorldProcess> WorldProcess::split(int, int, const WorldOptions&) {
  note_use();
  throw Unsupported("split: not in the simulator");
}
void WorldProcess::abort(const std::string& why) { state_->failure = "aborted: " + why; }
void WorldProcess::check() const {
  if (const auto& hook = test::process_hooks().checks) hook();
  if (!state_->failure.empty()) throw RuntimeFailure(state_->failure);
}

namespace test {

ProcessHooks& process_hooks() {
  static ProcessHooks hooks;
  return hooks;
}

int& current_gpu() {
  thread_local int gpu = 0;
  return gpu;
}

CStream*& stream_of_thread() {
  static CStream* own = nullptr;
  return own;
}

std::vector<int>& gpus_used() {
  static std::vector<int> all;
  return all;
}

namespace {

unsigned long long next_number() {
  static unsigned long long number = 0;
  return ++number;
}

}  // namespace

CStream::CStream(World& simulated) : state(new CUstream_st{simulated.make_stream("of the caller"), next_number()}) {}
CStream::~CStream() { delete state; }
void CStream::destroy() { state->is_there = false; }
void CStream::make_again(World& simulated) { *state = {simulated.make_stream("again"), next_number()}; }
void CStream::capture(unsigned long long id) { state->capture = id; }
unsigned long long CStream::captured_in() const { return state->capture; }
std::vector<unsigned long long> CStream::waited_for() const { return state->waited_for; }
unsigned long long CStream::number() const { return state->number; }

namespace {

tandem_world* join(int pe, int pes, const CRun& run) {
  static const UniqueId id = UniqueId::create();
  tandem_world* world = nullptr;
  // The least, so that calls take several pieces.
  const tandem_options options{.staging_bytes = std::size_t{1} << 16,
                               .any_memory = run.any_memory ? 1 : 0,
                               .max_blocks = run.max_blocks,
                               .algorithms = run.algorithms ? run.algorithms(pe) : nullptr};
  if (tandem_world_create(&world, id.bytes().data(), pe, pes, &options) != TANDEM_SUCCESS)
    throw InvalidArgument(tandem_last_error());
  return world;
}

}  // namespace

void run_in_c(int pes, const std::function<void(CPeer&)>& program, const CRun& run) {
  simulated_worlds().clear();
  SimOptions options;
  options.heap_bytes = run.heap_bytes;
  Simulation(load_machine("h200x4"), pes, options).run([&](World& simulated) {
    simulated_worlds()[simulated.pe()] = &simulated;
    simulated.barrier();
    CStream stream(simulated);
    CPeer peer{simulated, join(simulated.pe(), pes, run), simulated.pe(), pes, stream.handle()};
    // Destroyed where the program throws, too, or another one's error ends this one.
    const auto destroy = [](CPeer* left) { tandem_world_destroy(left->world); };
    std::unique_ptr<CPeer, decltype(destroy)> owner(&peer, destroy);
    program(peer);
    EXPECT_EQ(unlike(tandem_world_destroy(owner.release()->world), TANDEM_SUCCESS), "");
  });
  simulated_worlds().clear();
}

std::string unlike(tandem_status status, tandem_status expected, const std::string& part) {
  const std::string text = tandem_last_error();
  if (status == expected && text.find(part) != std::string::npos && text.empty() == (status == TANDEM_SUCCESS))
    return "";
  return fmt::format("status {}: {}", static_cast<int>(status), text);
}

}  // namespace test

}  // namespace tandem

using tandem::Size;

const char* cudaGetErrorString(cudaError_t code) { return code == cudaSuccess ? "no error" : "invalid argument"; }

cudaError_t cudaGetDevice(int* device) {
  *device = tandem::test::current_gpu();
  return cudaSuccess;
}

namespace {

/// As CUDA would do in its own stream.
bool is_usable(cudaStream_t stream) {
  tandem::test::gpus_used().push_back(tandem::test::current_gpu());
  return stream != nullptr && stream->is_there;
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t rows, cudaMemcpyKind, cudaStream_t stream) {
  stream = meant(stream);
  if (!is_usable(stream) || to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  for (std::size_t row = 0; row < rows; ++row)
    stream->stream.copy_async(static_cast<std::byte*>(to) + row * to_pitch,
                              static_cast<const std::byte*>(from) + row * from_pitch, static_cast<Size>(width));
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  stream = meant(stream);
  if (!is_usable(stream)) return cudaErrorInvalidValue;
  *event = {stream->stream.record(), stream->number, stream->capture};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  stream = meant(stream);
  if (!is_usable(stream) || (stream->capture != 0 && stream->capture != event->capture)) return cudaErrorInvalidValue;
  stream->capture = event->capture;  // a stream that waits for what is captured belongs to that capture
  stream->waited_for.push_back(event->of_stream);
  stream->stream.wait(event->event);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status, nullptr);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
  stream = meant(stream);
  if (stream != nullptr && !is_usable(stream)) return cudaErrorInvalidValue;
  const unsigned long long capture = stream == nullptr ? 0 : stream->capture;
  *status = capture == 0 ? cudaStreamCaptureStatusNone : cudaStreamCaptureStatusActive;
  if (id != nullptr) *id = capture;
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  stream = meant(stream);
  // As CUDA does, a stream that is captured refuses to tell.
  if (stream != nullptr && (!is_usable(stream) || stream->capture != 0)) return cudaErrorInvalidValue;
  *id = stream == nullptr ? ~0ULL : stream->number;
  return cudaSuccess;
}
