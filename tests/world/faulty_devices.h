#pragma once
/// The CPUs as devices, of which single calls fail where a test says so.

#include <map>
#include <mutex>
#include <string>

#include "host/world/devices.h"
#include "tandem/error.h"

namespace tandem::test {

/// The calls that shall fail, each once.
class Faults {
 public:
  enum class Kind { kRuntimeFailure, kOutOfMemory };

  void fail_next(const std::string& call, Kind kind = Kind::kRuntimeFailure) {
    const std::lock_guard lock(mutex_);
    to_fail_[call] = kind;
  }
  void enter(const std::string& call) {
    const std::lock_guard lock(mutex_);
    const auto found = to_fail_.find(call);
    if (found == to_fail_.end()) return;
    const Kind kind = found->second;
    to_fail_.erase(found);
    if (kind == Kind::kOutOfMemory) throw OutOfMemory("symmetric heap: " + call + " was told to fail");
    throw RuntimeFailure(call + " was told to fail");
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Kind> to_fail_;
};

class FaultyMemory final : public host::HostMemory {
 public:
  explicit FaultyMemory(Faults& faults) : faults_(faults) {}

  world::MemoryHandle create(int device, world::Handles handles, Size bytes) override {
    faults_.enter("create");
    return HostMemory::create(device, handles, bytes);
  }
  std::byte* reserve(Size bytes) override {
    faults_.enter("reserve");
    return HostMemory::reserve(bytes);
  }
  void map(std::byte* at, const world::Chunk& chunk) override {
    faults_.enter("map");
    HostMemory::map(at, chunk);
  }
  void allow(std::byte* at, Size bytes, const std::vector<int>& devices) override {
    faults_.enter("allow");
    HostMemory::allow(at, bytes, devices);
  }
  void commit(std::byte* at, Size bytes) override {
    faults_.enter("commit");
    HostMemory::commit(at, bytes);
  }
  int export_descriptor(world::MemoryHandle handle) override {
    faults_.enter("export");
    return HostMemory::export_descriptor(handle);
  }
  world::MemoryHandle import_descriptor(int descriptor, Size bytes) override {
    faults_.enter("import");
    return HostMemory::import_descriptor(descriptor, bytes);
  }

 private:
  Faults& faults_;
};

class FaultyDevices final : public host::HostDevices {
 public:
  Faults faults;

  world::DeviceMemory& memory() override { return memory_; }
  std::unique_ptr<world::LoadedKernels> load_kernels(const std::vector<int>& devices, bool several_nodes) override {
    faults.enter("load_kernels");
    return HostDevices::load_kernels(devices, several_nodes);
  }

 private:
  FaultyMemory memory_{faults};
};

}  // namespace tandem::test
