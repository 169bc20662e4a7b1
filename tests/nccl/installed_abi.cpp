// Sees the installed nccl.h, and nothing of ours.
#if TANDEM_HAS_NCCL_H
#include <nccl.h>
#if NCCL_VERSION_CODE >= 23200
#include <nccl_device.h>
#endif

// One function is deprecated there.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "abi_facts.inc"

std::map<std::string, std::string> installed_abi_facts() { return abi_facts(); }
#else
#include <map>
#include <string>

std::map<std::string, std::string> installed_abi_facts() { return {}; }
#endif
