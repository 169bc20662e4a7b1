#include "c_api/simulated/process.h"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "tandem/cuda.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

struct CUstream_st {
  tandem::Stream stream;
};

struct CUevent_st {
  tandem::Event event;
};

namespace tandem {

namespace {

/// By PE, while a simulation runs.
std::map<int, World*>& simulated_worlds() {
  static std::map<int, World*> all;
  return all;
}

}  // namespace

int cuda_devices() { return static_cast<int>(simulated_worlds().size()); }

struct CudaProcess::State {
  World* world;
  std::string failure;
};

CudaProcess::CudaProcess(const Placement& place, const CudaOptions&)
    : state_(std::make_unique<State>(State{simulated_worlds().at(place.pe), {}})) {}
CudaProcess::~CudaProcess() = default;
World& CudaProcess::world() { return *state_->world; }
int CudaProcess::pe() const { return state_->world->pe(); }
int CudaProcess::pes() const { return state_->world->num_pes(); }

Stream CudaProcess::borrow_stream(void* cuda_stream) {
  if (cuda_stream == nullptr) return world().make_stream("default");
  return static_cast<cudaStream_t>(cuda_stream)->stream;
}

Symm<std::byte> CudaProcess::register_buffer(void*, Size) { throw Unsupported("registration: not in the simulator"); }
void CudaProcess::unregister_buffer(void* pointer) {
  throw InvalidArgument(fmt::format("registration: {} is not registered", pointer));
}
std::unique_ptr<CudaProcess> CudaProcess::split(int, int, const CudaOptions&) {
  throw Unsupported("split: not in the simulator");
}
void CudaProcess::abort(const std::string& why) { state_->failure = "aborted: " + why; }
void CudaProcess::check() const {
  if (!state_->failure.empty()) throw RuntimeFailure(state_->failure);
}

namespace test {

namespace {

tandem_world* join(int pe, int pes, bool any_memory) {
  static const UniqueId id = UniqueId::create();
  tandem_world* world = nullptr;
  // The least, so that calls take several pieces.
  const tandem_options options{.staging_bytes = std::size_t{1} << 16, .any_memory = any_memory ? 1 : 0};
  EXPECT_EQ(unlike(tandem_world_create(&world, id.bytes().data(), pe, pes, &options), TANDEM_SUCCESS), "");
  return world;
}

}  // namespace

void run_in_c(int pes, const std::function<void(CPeer&)>& program, bool any_memory) {
  simulated_worlds().clear();
  Simulation(load_machine("h200x4"), pes).run([&](World& simulated) {
    simulated_worlds()[simulated.pe()] = &simulated;
    simulated.barrier();
    CUstream_st stream{simulated.make_stream("of the caller")};
    CPeer peer{simulated, join(simulated.pe(), pes, any_memory), simulated.pe(), pes, &stream};
    // Destroyed where the program throws, too, or another one's error ends this one.
    std::unique_ptr<tandem_world, tandem_status (*)(tandem_world*)> owner(peer.world, tandem_world_destroy);
    program(peer);
    EXPECT_EQ(unlike(tandem_world_destroy(owner.release()), TANDEM_SUCCESS), "");
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
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t rows, cudaMemcpyKind, cudaStream_t stream) {
  if (stream == nullptr || to == nullptr || from == nullptr) return cudaErrorInvalidValue;
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
  if (stream == nullptr) return cudaErrorInvalidValue;
  event->event = stream->stream.record();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (stream == nullptr) return cudaErrorInvalidValue;
  stream->stream.wait(event->event);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
