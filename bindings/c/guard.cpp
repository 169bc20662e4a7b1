#include "guard.h"

namespace tandem::c {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

Handles<tandem_world>& worlds() {
  // Never destroyed: at the process's end another thread may still be in a call.
  static auto& all = *new Handles<tandem_world>("tandem_world");
  return all;
}

}  // namespace tandem::c
