#include "bindings/nccl/fallback.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include "bindings/nccl/group.h"
#include "bindings/nccl/handles.h"

namespace tandem::nccl {

namespace {

/// Never closed: communicators may live until the process ends.
struct Library {
  std::mutex mutex;
  void* handle = nullptr;
  const void* base = nullptr;
  std::string path;
  std::atomic<bool> is_used = false;
};

Library& library() {
  static auto& one = *new Library;
  return one;
}

std::string_view name_of_file(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Returns the paths of all libraries of this process.
std::vector<std::string> mapped_libraries() {
  std::vector<std::string> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* all) {
        if (info->dlpi_name != nullptr && *info->dlpi_name != '\0')
          static_cast<std::vector<std::string>*>(all)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

/// Returns the libraries that may be the real one, in the order in which they are tried.
std::vector<std::string> candidates() {
  if (const char* const chosen = std::getenv("TANDEM_NCCL_FALLBACK"); chosen != nullptr && *chosen != '\0') {
    if (std::string_view(chosen) == "off") return {};
    return {chosen};
  }
  constexpr std::string_view packages = "/site-packages/";
  std::vector<std::string> mapped, installed;
  for (const std::string& path : mapped_libraries()) {
    if (name_of_file(path).starts_with("libnccl.so")) mapped.push_back(path);
    if (const std::size_t at = path.rfind(packages); at != std::string::npos) {
      const std::string other = path.substr(0, at + packages.size()) + "nvidia/nccl/lib/libnccl.so.2";
      if (::access(other.c_str(), R_OK) == 0) installed.push_back(other);
    }
  }
  mapped.insert(mapped.end(), installed.begin(), installed.end());
  return mapped;
}

/// Opens a library, unless it is this one or has no NCCL functions. Its own calls should stay within it.
void* opened(const std::string& path) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr int flags = RTLD_NOW | RTLD_LOCAL;  // the sanitizer refuses libraries that bind to themselves
#else
  constexpr int flags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif
  void* const handle = ::dlopen(path.c_str(), flags);
  if (handle == nullptr) return nullptr;
  if (::dlsym(handle, "tandem_nccl_identity") == nullptr && ::dlsym(handle, "pncclCommInitRankConfig") != nullptr)
    return handle;
  ::dlclose(handle);
  return nullptr;
}

const void* base_of(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(real_function(name));
}

/// Throws the error of a call of the real library.
void check_real(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  throw Failed(result, fmt::format("{} of {}: {}", call, library().path,
                                   real<decltype(ncclGetLastError)>("pncclGetLastError")(nullptr)));
}

}  // namespace

const std::string& open_real_library() {
  Library& one = library();
  const std::lock_guard lock(one.mutex);
  if (one.handle != nullptr) return one.path;
  std::string tried;
  for (const std::string& path : candidates()) {
    one.handle = opened(path);
    one.path = path;
    if (one.handle != nullptr) {
      one.base = base_of(::dlsym(one.handle, "pncclCommInitRankConfig"));
      return one.path;
    }
    tried += fmt::format("{}{} is not it", tried.empty() ? "" : ", ", path);
  }
  const char* const variable = std::getenv("TANDEM_NCCL_FALLBACK");
  throw Unsupported(fmt::format(
      "no other NCCL: {} (TANDEM_NCCL_FALLBACK={}; allowed are its file and 'off'; without it a mapped libnccl.so and "
      "nvidia/nccl/lib/libnccl.so.2 of Python's packages count)",
      tried.empty() ? "none was found" : tried, variable != nullptr ? variable : ""));
}

bool uses_real_library() { return library().is_used; }

bool is_real_code(const void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fbase == base_of(reinterpret_cast<const void*>(&is_real_code)))
    return false;
  Library& one = library();
  const std::lock_guard lock(one.mutex);
  if (one.handle != nullptr) return info.dli_fbase == one.base;
  return info.dli_fname != nullptr && name_of_file(info.dli_fname).starts_with("libnccl.so");
}

void* real_function(const char* name) {
  open_real_library();
  void* const function = ::dlsym(library().handle, name);
  if (function == nullptr) throw Failed(ncclInvalidUsage, fmt::format("{}: {} does not have it", name, library().path));
  return function;
}

ncclUniqueId make_real_id() {
  ncclUniqueId id{};
  check_real(real<decltype(ncclGetUniqueId)>("pncclGetUniqueId")(&id), "ncclGetUniqueId");
  return id;
}

ncclComm_t make_real(int ranks, const ncclUniqueId& id, int rank, const Settings& settings) {
  ncclConfig_t config = settings.config;
  config.blocking = 1;  // the caller's thread waits
  config.netName = settings.net_name.empty() ? nullptr : settings.net_name.c_str();
  config.commName = settings.name.empty() ? nullptr : settings.name.c_str();
  ncclComm_t comm = nullptr;
  const auto init = real<decltype(ncclCommInitRankConfig)>("pncclCommInitRankConfig");
  check_real(init(&comm, ranks, id, rank, &config), "ncclCommInitRankConfig");
  library().is_used = true;
  return comm;
}

std::optional<ncclComm_t> theirs(ncclComm_t comm, const void* caller) {
  if (comm == nullptr) return std::nullopt;
  std::optional<ncclComm_t> real;
  if (const auto own = find_communicator(comm))
    real = own->real();
  else if (!was_handle(comm) && (uses_real_library() || is_real_code(caller)))
    real = comm;
  if (real && !is_real_code(caller)) enter_real_group();
  return real;
}

}  // namespace tandem::nccl
