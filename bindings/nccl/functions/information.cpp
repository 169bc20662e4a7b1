// Questions about the library itself.
#include <fmt/format.h>

#include <cstdlib>

#include "base/version.h"
#include "bindings/nccl/fallback.h"
#include "bindings/nccl/functions/exports.h"
#include "bindings/nccl/handles.h"

namespace {

using tandem::InvalidArgument;
using tandem::nccl::given;
using tandem::nccl::guarded;

/// The version whose interface is here.
constexpr int kVersion = 22809;

int version() {
  const char* const text = std::getenv("TANDEM_NCCL_VERSION");
  if (text == nullptr || *text == '\0') return kVersion;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  constexpr long kLeast = 2000, kMost = 99999;
  if (*end != '\0' || number < kLeast || number > kMost)
    throw InvalidArgument(
        fmt::format("TANDEM_NCCL_VERSION: '{}' given, allowed is a number such as {}", text, kVersion));
  return static_cast<int>(number);
}

}  // namespace

const char* tandem_nccl_identity() {
  static const std::string& text =
      *new std::string(fmt::format("Tandem {}, with the interface of NCCL {}.{}.{}", tandem::version(),
                                   kVersion / 10000, kVersion / 100 % 100, kVersion % 100));
  return text.c_str();
}

TANDEM_NCCL_EXPORT(GetVersion);
ncclResult_t pncclGetVersion(int* number) {
  return guarded([&] {
    given(number, "version") = version();
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(GetErrorString);
const char* pncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "success";
    case ncclUnhandledCudaError:
      return "a CUDA function failed";
    case ncclSystemError:
      return "a system call failed or memory is short";
    case ncclInternalError:
      return "the library failed";
    case ncclInvalidArgument:
      return "an argument is invalid";
    case ncclInvalidUsage:
      return "the call is not allowed here or not supported";
    case ncclRemoteError:
      return "another rank is lost or has ended the communicator";
    case ncclInProgress:
      return "the call is in progress";
    case ncclTimeout:
      return "a wait took too long";
    case ncclNumResults:
      break;
  }
  return "unknown result code";
}

TANDEM_NCCL_EXPORT(GetLastError);
const char* pncclGetLastError(ncclComm_t comm) {
  if (const auto real = tandem::nccl::theirs(comm, __builtin_return_address(0)))
    return tandem::nccl::forwarded<decltype(ncclGetLastError), const char*>("pncclGetLastError", "", *real);
  thread_local std::string text;
  const auto communicator = tandem::nccl::find_communicator(comm);
  text = communicator != nullptr ? communicator->last_problem() : tandem::nccl::last_problem();
  return text.c_str();
}

TANDEM_NCCL_EXPORT(ResetDebugInit);
void pncclResetDebugInit() {
  // The log is opened at its first line and kept.
}
