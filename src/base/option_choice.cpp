#include "tandem/advanced/option_choice.h"

namespace tandem {

const char* name(OptionSource source) {
  switch (source) {
    case OptionSource::kCaller:
      return "caller";
    case OptionSource::kCache:
      return "cache";
    case OptionSource::kTable:
      return "table";
    case OptionSource::kRule:
      return "rule";
  }
  return "";
}

}  // namespace tandem
