#include "trace/report/report_page.h"

#include "base/builtin_files.h"

namespace tandem::trace {

std::string_view report_file(std::string_view name) {
  for (const detail::BuiltinFile& file : detail::report_files())
    if (file.name == name) return file.text;
  return {};
}

}  // namespace tandem::trace
