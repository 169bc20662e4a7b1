// The answers to what other PEs ask.
#include <fmt/format.h>

#include "tandem/error.h"
#include "wire/proxy/proxy.h"

namespace tandem::wire {

void Proxy::answer_get(const Header& header) {
  require_within(header, header.offset, header.bytes);
  if (header.bytes > piece_)
    throw InvalidArgument(
        fmt::format("PE {} asks for {} bytes at once, allowed are {}", header.from, header.bytes, piece_));
  Answer answer;
  answer.header.kind = Kind::kGot;
  answer.header.to = header.from;
  answer.header.bytes = header.bytes;
  answer.header.value = header.value;
  answer.data = own() + header.offset;
  answers_.push_back(answer);
}

bool Proxy::send_answers() {
  bool has_moved = false;
  for (; !answers_.empty(); answers_.pop_front()) {
    Answer& next = answers_.front();
    if (!is_ready(next) || !send(next.header, next.data_to_send())) break;
    if (next.reading) setup_.access->release(*next.reading);
    has_moved = true;
  }
  return has_moved;
}

/// Begins to read the answer's data where there is room for it.
bool Proxy::is_ready(Answer& answer) {
  if (!setup_.access->are_written(answer.writes)) return false;
  if (answer.data == nullptr || answer.header.bytes == 0) return true;
  if (!answer.reading && setup_.access->has_room())
    answer.reading = setup_.access->read(answer.data, answer.header.bytes);
  return answer.reading && setup_.access->is_read(*answer.reading);
}

}  // namespace tandem::wire
