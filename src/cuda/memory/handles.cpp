#include "cuda/memory/handles.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "cuda/driver/driver.h"
#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

/// A driver that does not know the attribute has not got it.
bool has(CUdevice_attribute attribute, int device) {
  int supported = 0;
  return driver().device_attribute(&supported, attribute, device) == CUDA_SUCCESS && supported != 0;
}

/// TANDEM_HANDLES; empty: the environment leaves the choice.
std::string chosen() {
  const char* const text = std::getenv("TANDEM_HANDLES");
  std::string choice = text == nullptr ? "" : text;
  if (!choice.empty() && choice != "fd" && choice != "fabric")
    throw InvalidArgument(fmt::format("TANDEM_HANDLES: '{}' given, allowed are fd and fabric", choice));
  return choice;
}

/// What this process lacks for the one way; empty: nothing.
std::string lacks_descriptors(const bootstrap::Session& session, const bootstrap::FdExchange& exchange, int device) {
  if (chosen() == "fabric") return "TANDEM_HANDLES is fabric";
  for (int pe = 0; pe < session.size(); ++pe)
    if (!exchange.is_here(pe)) return fmt::format("PE {} is on another host, or in another network name space", pe);
  return has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device) ? "" : "the GPU exports none";
}

/// That a GPU has fabric handles does not mean that this process may make them.
std::string lacks_fabric(int device) {
  if (chosen() == "fd") return "TANDEM_HANDLES is fd";
  if (!has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, device)) return "the GPU has none";
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  std::size_t bytes = 0;
  check(driver().mem_granularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "cuMemGetAllocationGranularity");
  CUmemGenericAllocationHandle handle{};
  const CUresult made = driver().mem_create(&handle, bytes, &properties, 0);
  if (made == CUDA_SUCCESS) driver().mem_release(handle);
  // Too little memory is said where it is asked for.
  if (made == CUDA_SUCCESS || made == CUDA_ERROR_OUT_OF_MEMORY) return "";
  const char* text = "unknown error";
  driver().error_string(made, &text);
  return fmt::format("{} (is there an IMEX channel, /dev/nvidia-caps-imex-channels?)", text);
}

/// By PE; empty: it has not been imported.
using Chunks = std::vector<std::vector<Chunk>>;

void exchange_descriptors(bootstrap::Session& session, bootstrap::FdExchange& exchange, const std::vector<Chunk>& own,
                          Chunks& all) {
  std::vector<bootstrap::Fd> exported;
  std::vector<int> numbers;
  session.together("memory is exported", [&] {
    for (const Chunk& chunk : own) {
      int fd = -1;
      check(driver().mem_export(&fd, chunk.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            "cuMemExportToShareableHandle");
      exported.emplace_back(fd);
      numbers.push_back(fd);
    }
  });
  const auto received = exchange.exchange(numbers, session.world());
  session.together("memory is imported", [&] {
    for (std::size_t pe = 0; pe < received.size(); ++pe)
      for (std::size_t i = 0; i < received[pe].size(); ++i) {
        auto* const fd = reinterpret_cast<void*>(static_cast<std::uintptr_t>(received[pe][i].get()));
        Chunk chunk{0, own.at(i).bytes};
        check(driver().mem_import(&chunk.handle, fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              "cuMemImportFromShareableHandle");
        all[pe].push_back(chunk);
      }
  });
}

void exchange_fabric(bootstrap::Session& session, const std::vector<Chunk>& own, Chunks& all) {
  // Whoever has a handle and an IMEX channel can map the memory.
  const bootstrap::Key key = bootstrap::derive(session.secret(), "fabric handles");
  Writer writer;
  session.together("memory is exported", [&] {
    for (const Chunk& chunk : own) {
      CUmemFabricHandle handle{};
      check(driver().mem_export(&handle, chunk.handle, CU_MEM_HANDLE_TYPE_FABRIC, 0), "cuMemExportToShareableHandle");
      writer.bytes(bootstrap::encrypt(key, std::as_bytes(std::span(&handle, 1))));
    }
  });
  const std::vector<Bytes> blobs = session.all_gather(writer.result(), "fabric handles");
  session.together("memory is imported", [&] {
    for (std::size_t pe = 0; pe < blobs.size(); ++pe) {
      if (pe == static_cast<std::size_t>(session.pe())) continue;
      Reader reader(blobs[pe]);
      for (const Chunk& its : own) {
        CUmemFabricHandle handle{};
        const auto bytes = bootstrap::decrypt(key, reader.bytes());
        if (!bytes || bytes->size() != sizeof handle)
          throw RuntimeFailure(fmt::format("no fabric handle of PE {}", pe));
        std::memcpy(&handle, bytes->data(), sizeof handle);
        Chunk chunk{0, its.bytes};
        check(driver().mem_import(&chunk.handle, &handle, CU_MEM_HANDLE_TYPE_FABRIC), "cuMemImportFromShareableHandle");
        all[pe].push_back(chunk);
      }
    }
  });
}

/// Why a way is closed, for the first PE that says so; empty: it is open to all.
std::string first_problem(bootstrap::Session& session, const std::string& own) {
  const std::vector<Bytes> all = session.all_gather(Writer().text(own).result(), "handles of memory");
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    if (const std::string its = Reader(all[pe]).text(); !its.empty()) return fmt::format("PE {}: {}", pe, its);
  return "";
}

}  // namespace

CUmemAllocationHandleType agree_on_handles(bootstrap::Session& session, const bootstrap::FdExchange& exchange,
                                           int device) {
  const std::string no_descriptors = first_problem(session, lacks_descriptors(session, exchange, device));
  if (no_descriptors.empty()) return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const std::string no_fabric = first_problem(session, lacks_fabric(device));
  if (no_fabric.empty()) return CU_MEM_HANDLE_TYPE_FABRIC;
  throw Unsupported(
      fmt::format("cuda backend: memory cannot be handed to other processes by file descriptors ({}), nor by fabric "
                  "handles ({}); run the PEs as threads of one process",
                  no_descriptors, no_fabric));
}

std::vector<std::vector<Chunk>> exchange_chunks(bootstrap::Session& session, bootstrap::FdExchange& exchange,
                                                CUmemAllocationHandleType type, const std::vector<Chunk>& own) {
  Chunks all(static_cast<std::size_t>(session.size()));
  try {
    type == CU_MEM_HANDLE_TYPE_FABRIC ? exchange_fabric(session, own, all)
                                      : exchange_descriptors(session, exchange, own, all);
  } catch (...) {
    for (const std::vector<Chunk>& chunks : all) release(chunks);
    throw;
  }
  return all;
}

void release(const std::vector<Chunk>& chunks) {
  for (const Chunk& chunk : chunks) driver().mem_release(chunk.handle);
}

}  // namespace tandem::cuda
