#pragma once
/// The options of `tandem calibrate`.

#include <string>

namespace tandem::cli {

struct CalibrateOptions {
  std::string out;              ///< file of the model
  std::string base = "h200x4";  ///< model with the figures that are not measured
  std::string command_line;     ///< as the model's sources show it
};

}  // namespace tandem::cli
