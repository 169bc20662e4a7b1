#include "cuda/device/nodes_kernels.h"

#include <fmt/format.h>

#include <map>

#include "tandem/error.h"

namespace tandem::cuda {

namespace {

/// It is only looked up, because its iteration order is arbitrary.
std::map<const detail::DeviceKernel*, const detail::DeviceKernel*>& nodes_forms() {
  static std::map<const detail::DeviceKernel*, const detail::DeviceKernel*> forms;
  return forms;
}

}  // namespace

const detail::DeviceKernel* find_nodes_form(const detail::DeviceKernel* usual) {
  const auto found = nodes_forms().find(usual);
  return found == nodes_forms().end() ? nullptr : found->second;
}

void add_nodes_kernel(std::string_view name, const detail::DeviceKernel* usual, const detail::DeviceKernel* form) {
  if (usual == nullptr || usual->threads != form->threads)
    throw InvalidArgument(fmt::format("register_nodes_kernel of {}: blocks of {} threads given, register_kernel had {}",
                                      name, form == nullptr ? 0 : form->threads,
                                      usual == nullptr ? "no call" : std::to_string(usual->threads)));
  nodes_forms()[usual] = form;
}

}  // namespace tandem::cuda
