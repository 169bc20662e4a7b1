#include "guard.h"

namespace tandem::c {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

Handles<tandem_world>& worlds() {
  static Handles<tandem_world> all("tandem_world");
  return all;
}

}  // namespace tandem::c
