#pragma once
/// A type's name in the compiler's spelling, for reports and timelines.

#include <string_view>

namespace tandem {

/// Returns "AllReduceRing<float>" for tandem::kernels::AllReduceRing<float>, without the namespaces of the outermost
/// name.
template <class T>
constexpr std::string_view type_name() {
  const std::string_view signature = __PRETTY_FUNCTION__;
  const auto begin = signature.find("T = ") + 4;
  const auto end = signature.find_first_of(";]", begin);
  std::string_view name = signature.substr(begin, end - begin);
  const auto template_begin = name.find('<');
  const auto last_colon = name.substr(0, template_begin).rfind("::");
  return last_colon == std::string_view::npos ? name : name.substr(last_colon + 2);
}

}  // namespace tandem
