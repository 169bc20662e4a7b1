#pragma once
/// The caller's arrays as the data of a run: input is copied from them, and results into them.

#include <span>
#include <vector>

#include "tandem_sim.h"
#include "tools/tandem/data/collective_data.h"
#include "tools/tandem/data/operator_data.h"

namespace tandem::python {

using Arrays = std::span<const tandem_sim_array>;

/// One array per PE for input and output.
class GivenCollectiveData final : public cli::CollectiveData {
 public:
  /// Throws InvalidArgument where arrays are missing or of another size. `scales`: one for each PE, or none.
  GivenCollectiveData(const cli::CollectiveCall& call, Arrays in, Arrays out, const std::vector<double>& scales);

  double scale(int pe) const override { return scales_.empty() ? 1 : scales_[static_cast<std::size_t>(pe)]; }
  void fill_input(int pe, std::byte* in) const override;
  void check_part(int pe, Range part, const std::byte* out, cli::Check& check) const override;

 private:
  Size element_;
  Arrays in_, out_;
  const std::vector<double>& scales_;
};

/// The global A and B, and one C per PE.
class GivenMatrices final : public cli::OperatorMatrices {
 public:
  /// Throws InvalidArgument where arrays are missing or of another size.
  GivenMatrices(const cli::OperatorRun& run, int pes, Arrays in, Arrays out);

  void fill(int pe, std::byte* a, std::byte* b) const override;
  void check(int pe, const std::byte* c, cli::Check& check) const override;

 private:
  const cli::OperatorRun& run_;
  int pes_;
  Arrays in_, out_;
};

}  // namespace tandem::python
