#pragma once
/// Events of connections.

#include <array>

#include "wire/fabric/objects.h"

namespace tandem::wire {

/// Calls `on_event(kind, entry, data behind it)` and `on_error(entry)` for each event that is there.
template <class OnEvent, class OnError>
void for_each_event(fid_eq* events, const OnEvent& on_event, const OnError& on_error) {
  constexpr std::size_t most_behind = 256;
  union {
    fi_eq_cm_entry entry;
    std::array<std::byte, sizeof(fi_eq_cm_entry) + most_behind> room;
  } event{};
  for (std::uint32_t kind = 0;;) {
    const ssize_t bytes = ::fi_eq_read(events, &kind, &event, sizeof event, 0);
    if (bytes == -FI_EAGAIN) return;
    if (bytes == -FI_EAVAIL) {
      fi_eq_err_entry error{};
      check_fabric(::fi_eq_readerr(events, &error, 0), "events");
      on_error(error);
      continue;
    }
    check_fabric(bytes, "events");
    on_event(kind, event.entry,
             View(event.room).first(static_cast<std::size_t>(bytes)).subspan(sizeof(fi_eq_cm_entry)));
  }
}

}  // namespace tandem::wire
