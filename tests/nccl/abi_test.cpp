// Our declarations beside those of an installed nccl.h.
#include "bindings/nccl/abi.h"

#include <gmock/gmock.h>

#define NCCL_VERSION_CODE 23200  // all that this library declares
#include "abi_facts.inc"

/// Returns the declarations of the installed header (installed_abi.cpp); empty where there is none.
std::map<std::string, std::string> installed_abi_facts();

namespace {

TEST(NcclAbi, EqualsTheInstalledHeader) {
  const auto installed = installed_abi_facts();
  if (installed.empty()) GTEST_SKIP() << "no nccl.h is installed";
  auto own = abi_facts();
  for (const auto& [name, fact] : installed) EXPECT_EQ(own[name], fact) << name;
}

}  // namespace
