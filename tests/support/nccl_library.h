#pragma once
/// A library with NCCL's interface that is opened at run time, for programs that compare two of them.

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "bindings/nccl/abi.h"

namespace tandem::check {

/// The functions of one library with NCCL's interface.
struct NcclLibrary {
  explicit NcclLibrary(const std::string& file) : handle(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) throw std::runtime_error(dlerror());
  }
  template <typename Function>
  Function* find(const char* name) const {
    void* const found = dlsym(handle, name);
    if (found == nullptr) throw std::runtime_error(std::string("the library lacks ") + name);
    return reinterpret_cast<Function*>(found);
  }
  void require(ncclResult_t result, const char* name) const {
    if (result == ncclSuccess) return;
    throw std::runtime_error(std::string(name) + ": " + std::to_string(result) + " " +
                             find<decltype(ncclGetLastError)>("ncclGetLastError")(nullptr));
  }
  void* handle;
};

/// Calls `ncclNAME` of `library` and throws where it fails.
#define TANDEM_NCCL(library, name, ...) \
  (library).require((library).find<decltype(nccl##name)>("nccl" #name)(__VA_ARGS__), #name)

/// One rank of a communicator, with the stream of its calls.
struct Member {
  int number = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

}  // namespace tandem::check
