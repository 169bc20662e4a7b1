#include "tools/tandem/launch/nccl_variables.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "tandem/error.h"

namespace tandem::cli {

namespace fs = std::filesystem;

/// The library lies in the folder of libraries beside the program's own, built or installed.
std::string nccl_library() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path above = program.parent_path().parent_path();
  for (const char* const folder : {"lib", TANDEM_LIBRARY_FOLDER}) {
    const fs::path file = above / folder / "tandem/nccl/libnccl.so.2";
    if (fs::exists(file, error)) return file.string();
  }
  throw Unsupported(fmt::format("--nccl: there is no {}", (above / "lib/tandem/nccl/libnccl.so.2").string()));
}

std::vector<std::string> nccl_variables() {
  const std::string file = nccl_library();
  const char* const preloaded = std::getenv("LD_PRELOAD");
  const bool has_others = preloaded != nullptr && *preloaded != '\0';
  return {"LD_PRELOAD=" + file + (has_others ? std::string(":") + preloaded : ""), "VLLM_NCCL_SO_PATH=" + file,
          "SGLANG_NCCL_SO_PATH=" + file};
}

}  // namespace tandem::cli
