#pragma once
/// The real NCCL, for communicators that Tandem cannot serve. TANDEM_NCCL_FALLBACK names its file, or is "off". Without
/// the variable it is a library that is mapped already, or the one of Python's packages.

#include <optional>
#include <string>

#include "bindings/nccl/error.h"
#include "bindings/nccl/settings.h"

namespace tandem::nccl {

/// Returns the path of the real library, which is then open. Throws Unsupported with what was looked for.
const std::string& open_real_library();
/// Returns whether a communicator of the real library is in use.
bool uses_real_library();
/// Returns whether the code at `address` belongs to the real library. Its own calls may reach this one.
bool is_real_code(const void* address);

/// Makes a unique id of the real library.
ncclUniqueId make_real_id();
/// Makes a communicator of the real library. Throws with its error.
ncclComm_t make_real(int ranks, const ncclUniqueId& id, int rank, const Settings& settings);

/// Returns the function of the real library. Throws Failed if it has none of that name.
void* real_function(const char* name);

/// Returns the handle for the real library if that carries the communicator. `comm` then stands for it here, or is no
/// handle of this library. The function opens the real library's group if this thread is in a group.
std::optional<ncclComm_t> theirs(ncclComm_t comm, const void* caller);

/// Calls the function of that name in the real library. `none` is the result if it has no such function.
template <class Function, class Result, class... Arguments>
Result forwarded(const char* name, Result none, Arguments... arguments) {
  Function* function = nullptr;
  guarded([&] {
    function = reinterpret_cast<Function*>(real_function(name));
    return ncclSuccess;
  });
  return function == nullptr ? none : function(arguments...);
}

}  // namespace tandem::nccl

/// Passes a call with a communicator of the real library on to it. In the arguments `*real` is its handle.
#define TANDEM_NCCL_FORWARD(name, comm, none, ...)                               \
  if (const auto real = tandem::nccl::theirs(comm, __builtin_return_address(0))) \
  return tandem::nccl::forwarded<decltype(nccl##name)>("pnccl" #name, none, __VA_ARGS__)
/// Passes a call without a communicator on if the real library itself makes it.
#define TANDEM_NCCL_FORWARD_OWN(name, none, ...)               \
  if (tandem::nccl::is_real_code(__builtin_return_address(0))) \
  return tandem::nccl::forwarded<decltype(nccl##name)>("pnccl" #name, none, __VA_ARGS__)
