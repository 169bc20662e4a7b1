// `tandem calibrate`.
#include "tools/tandem/calibrate/calibrate.h"

#include <filesystem>
#include <iostream>

#include "tandem/machine.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/tune/tune.h"
#include "trace/timeline/output_file.h"

namespace tandem::cli {

int calibrate(const Arguments& a) {
  trace::check_writable(a.out);
  const std::string base = a.base.empty() ? "h200x4" : a.base;
  load_machine(base);
  const Calibration calibration = measure_gpus();
  const std::string model =
      calibrated_model(calibration, base, std::filesystem::path(a.out).stem().string(),
                       sweep_source(a, std::to_string(calibration.gpus) + " x " + calibration.gpu_name));
  trace::write_file(a.out, [&](std::ostream& out) { out << model; });
  std::cout << explain(parse_machine(model, a.out)) << "\nwrote " << a.out << '\n';
  return kRight;
}

}  // namespace tandem::cli
