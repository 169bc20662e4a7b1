#pragma once
/// Checks of a grouped GEMM, before it runs and while it reads its table.

#include <string>

#include "tandem/advanced/gemm.h"

namespace tandem {

/// Returns "gemm 4096x8192x1024" or "gemm 4096x8192x1024 of 8 groups", for traces.
std::string gemm_name(const Gemm& gemm);

/// Throws InvalidArgument or Unsupported with the field that no grouped GEMM has. Without groups it returns.
void check_groups(const Gemm& gemm);

/// Throws InvalidArgument if the table's number of panels is not one that the GEMM may have.
void check_panel_count(const Gemm& gemm, int count);
/// Throws InvalidArgument if panel `number` of `count` names rows or a B that the GEMM does not have.
void check_panel(const Gemm& gemm, const GemmPanel& panel, int number, int count);
/// Throws InvalidArgument if `row`, the value of a_rows for row `at` of C, is not a row of A.
void check_a_row(const Gemm& gemm, Size at, Size row);

}  // namespace tandem
