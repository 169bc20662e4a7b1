#pragma once
/// What one process of tests/gpu/processes_gpu_check.cpp does: each part throws where something is not as it should be.

#include <string>

namespace tandem::test {

/// Runs the part of that name; what went wrong is printed and gives exit code 1.
int run_peer(const std::string& part);

}  // namespace tandem::test
