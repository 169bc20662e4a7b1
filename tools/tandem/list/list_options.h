#pragma once
/// The options of `tandem list` and `tandem machines`.

#include <string>

namespace tandem::cli {

struct ListOptions {};

struct MachinesOptions {
  std::string machine;  ///< name or file; empty: all
};

}  // namespace tandem::cli
