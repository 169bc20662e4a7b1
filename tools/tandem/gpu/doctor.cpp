// Properties of a machine's GPUs, from CUDA and from measurements.
#include <cuda.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cuda/driver/error.h"
#include "tandem/cuda.h"
#include "tandem/error.h"
#include "tools/tandem/doctor/doctor.h"
#include "tools/tandem/gpu/measure/probe.h"
#include "tools/tandem/main/gpu.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr Size kCopied = Size{256} << 20;

using GetAttribute = CUresult (*)(int*, CUdevice_attribute, CUdevice);

/// This code does not link against the driver.
GetAttribute find_get_attribute() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion("cuDeviceGetAttribute", &function, 12000, cudaEnableDefault, &found);
  return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<GetAttribute>(function)
                                                                     : nullptr;
}

bool has(GetAttribute get, CUdevice_attribute attribute, int device) {
  int value = 0;
  return get != nullptr && get(&value, attribute, device) == CUDA_SUCCESS && value != 0;
}

bool has_imex_channels() {
  std::error_code ignored;
  return std::filesystem::exists("/dev/nvidia-caps-imex-channels", ignored);
}

Json inspect_gpu(int device, GetAttribute get, std::vector<Finding>& findings) {
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  Json gpu;
  gpu["name"] = properties.name;
  gpu["pci"] =
      fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
  gpu["compute_capability"] = fmt::format("{}{}", properties.major, properties.minor);
  gpu["sms"] = properties.multiProcessorCount;
  gpu["memory_gib"] = static_cast<double>(properties.totalGlobalMem) / (1 << 30);
  gpu["copy_engines"] = properties.asyncEngineCount;
  std::vector<std::string> handles;
  if (has(get, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device))
    handles.emplace_back("file descriptor");
  // The GPU may support it and the process may still lack the permission.
  if (has(get, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, device))
    handles.emplace_back(has_imex_channels() ? "fabric" : "fabric (no IMEX channel)");
  gpu["handle_types"] = handles;
  gpu["multicast"] = has(get, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, device);
  if (handles.empty())
    findings.push_back({true, fmt::format("GPU {} cannot share memory by handles", device),
                        "a driver of CUDA 11 or newer, without virtualisation of the GPU"});
  return gpu;
}

Json measure_links(std::vector<Finding>& findings) {
  const Probe probe;
  Json links = Json::array();
  double best = 0;
  for (int from = 0; from < probe.gpus(); ++from)
    for (int to = 0; to < probe.gpus(); ++to) {
      if (from == to) continue;
      Json link;
      link["from"] = from;
      link["to"] = to;
      link["peer_access"] = probe.reaches(from, to);
      link["copy_gbps"] = probe.copy_gbps(from, to, kCopied);
      link["signal_us"] = nullptr;
      best = std::max(best, link["copy_gbps"].get<double>());
      if (!probe.reaches(from, to)) {
        findings.push_back({true, fmt::format("GPU {} cannot load and store in GPU {}'s memory", from, to),
                            "see `nvidia-smi topo -p2p rw`; on PCIe turn ACS and the IOMMU off"});
      } else {
        const double us = probe.one_way_us(from, to, true);
        if (us > 0) link["signal_us"] = us;
        if (us == 0)
          findings.push_back({true, fmt::format("a signal from GPU {} does not reach GPU {}", from, to),
                              "another program may hold the GPU; try again when it is idle"});
      }
      links.push_back(link);
    }
  for (const Json& link : links) {
    constexpr double slow = 0.8;
    if (link["copy_gbps"].get<double>() < slow * best)
      findings.push_back(
          {true,
           fmt::format("the link from GPU {} to GPU {} moves {:.0f} GB/s, the best one {:.0f}", link["from"].get<int>(),
                       link["to"].get<int>(), link["copy_gbps"].get<double>(), best),
           "compare `nvidia-smi nvlink -s`; another program may be using it"});
  }
  return links;
}

}  // namespace

Json inspect_gpus(std::vector<Finding>& findings) {
  Json report;
  report["build"] = cuda_build();
  report["cuda_driver"] = nullptr;
  report["gpus"] = Json::array();
  report["links"] = Json::array();
  const int gpus = cuda_devices();
  int version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0)
    report["cuda_driver"] = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  if (gpus == 0) {
    findings.push_back({true, "there is no GPU that CUDA can use: the simulator works, --backend cuda does not",
                        "check CUDA_VISIBLE_DEVICES, the driver, and that its CUDA is as new as this build's"});
    return report;
  }
  const GetAttribute get = find_get_attribute();
  for (int device = 0; device < gpus; ++device) report["gpus"].push_back(inspect_gpu(device, get, findings));
  try {
    report["links"] = measure_links(findings);
  } catch (const Error& error) {
    findings.push_back({true, fmt::format("the GPUs cannot be measured: {}", error.what()),
                        "another program may hold them or their memory"});
  }
  return report;
}

}  // namespace tandem::cli
