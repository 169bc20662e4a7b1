// `tandem calibrate`.
#include "tools/tandem/calibrate/calibrate.h"

#include <filesystem>
#include <iostream>

#include "tandem/machine.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/options/json_file.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/tune/tune.h"
#include "trace/timeline/output_file.h"

namespace tandem::cli {

int execute(const CalibrateOptions& a) {
  check_output("--out", a.out);
  for_option("--base", "machine", [&] { return load_machine(a.base); });
  const Calibration calibration = measure_gpus();
  const std::string model =
      calibrated_model(calibration, a.base, std::filesystem::path(a.out).stem().string(),
                       sweep_source(a.command_line, std::to_string(calibration.gpus) + " x " + calibration.gpu_name));
  trace::write_file(a.out, [&](std::ostream& out) { out << model; });
  std::cout << explain(parse_machine(model, a.out)) << "\nwrote " << a.out << '\n';
  return kRight;
}

}  // namespace tandem::cli
