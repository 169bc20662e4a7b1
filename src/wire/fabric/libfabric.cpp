#if __has_include(<rdma/fabric.h>)

#include "wire/fabric/libfabric.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <cstdlib>

#include "tandem/error.h"

namespace tandem::wire {

namespace {

/// The symbols with the layout of `fi_info` that the headers of libfabric up to 1.19 have. Later libraries give other
/// layouts to callers without a version.
constexpr const char* kLayout =
    FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) < FI_VERSION(1, 20) ? "FABRIC_1.3" : nullptr;

template <class Function>
void load(void* library, const char* name, const char* version, Function& function) {
  void* const symbol = version == nullptr ? ::dlsym(library, name) : ::dlvsym(library, name, version);
  if (symbol == nullptr)
    throw Unsupported(fmt::format("several hosts: libfabric has no {} of version {}; Tandem was built with {}.{}", name,
                                  version == nullptr ? "any" : version, FI_MAJOR_VERSION, FI_MINOR_VERSION));
  function = reinterpret_cast<Function>(symbol);
}

/// Restores the program's signal handlers. Some of libfabric's own libraries install handlers when they are loaded.
class KeptSignalHandlers {
 public:
  KeptSignalHandlers() {
    for (int signal = 1; signal < kSignals; ++signal) ::sigaction(signal, nullptr, &handler(signal));
  }
  ~KeptSignalHandlers() {
    for (int signal = 1; signal < kSignals; ++signal) ::sigaction(signal, &handler(signal), nullptr);
  }
  KeptSignalHandlers(const KeptSignalHandlers&) = delete;
  KeptSignalHandlers& operator=(const KeptSignalHandlers&) = delete;

 private:
  static constexpr int kSignals = 32;
  struct sigaction& handler(int signal) {
    return handlers_[static_cast<std::size_t>(signal)];
  }

  std::array<struct sigaction, kSignals> handlers_{};
};

/// The layer ofi_rxm sends a message at once that fits its buffers. It cuts a longer one into pieces or asks for it
/// first, which took 1.6 times as long at 64 KB (bench/NOTES.md). It has a buffer for each message that it may receive
/// or send, of which tcp's default of some thousand would take 1.3 GB. It reads the variables when it is loaded.
void set_buffers() {
  constexpr Size room_for_headers = 1024;
  setenv("FI_OFI_RXM_BUFFER_SIZE", std::to_string(kFabricMessageBytes + room_for_headers).c_str(), 0);
  for (const char* const messages : {"FI_OFI_RXM_MSG_RX_SIZE", "FI_OFI_RXM_MSG_TX_SIZE"}) setenv(messages, "128", 0);
}

Libfabric load_all() {
  const KeptSignalHandlers kept;
  set_buffers();
  const char* const chosen = std::getenv("TANDEM_FABRIC_LIBRARY");
  const std::string path = chosen == nullptr || *chosen == '\0' ? "libfabric.so.1" : chosen;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Unsupported(
        fmt::format("several hosts: {}; install libfabric (Debian and Ubuntu: libfabric1), or set "
                    "TANDEM_FABRIC_LIBRARY to its path",
                    ::dlerror()));
  Libfabric all;
  load(library, "fi_getinfo", kLayout, all.getinfo);
  load(library, "fi_freeinfo", kLayout, all.freeinfo);
  load(library, "fi_dupinfo", kLayout, all.dupinfo);
  load(library, "fi_fabric", kLayout == nullptr ? nullptr : "FABRIC_1.1", all.fabric);
  load(library, "fi_strerror", nullptr, all.strerror);
  load(library, "fi_version", nullptr, all.version);
  return all;
}

}  // namespace

const Libfabric& Libfabric::get() {
  static const Libfabric all = load_all();
  return all;
}

void check_fabric(long result, const std::string& what) {
  if (result >= 0) return;
  throw RuntimeFailure(fmt::format("libfabric: {}: {}", what, Libfabric::get().strerror(static_cast<int>(-result))));
}

}  // namespace tandem::wire

#endif
