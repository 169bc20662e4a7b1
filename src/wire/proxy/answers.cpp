// The answers to what other PEs ask.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/error.h"
#include "wire/proxy/proxy.h"

namespace tandem::wire {

void Proxy::answer_get(const Header& header) {
  require_within(header, header.offset, header.bytes);
  if (header.bytes > piece_)
    throw InvalidArgument(
        fmt::format("PE {} asks for {} bytes at once, allowed are {}", header.from, header.bytes, piece_));
  Answer got;
  got.header.kind = Kind::kGot;
  got.header.to = header.from;
  got.header.bytes = header.bytes;
  got.header.value = header.value;
  got.data = own() + header.offset;
  answer(std::move(got));
}

void Proxy::answer(Answer answer) {
  std::deque<Answer>& answers = peer(answer.header.to).answers;
  answers.push_back(std::move(answer));
  ++answers_;
}

/// Sends each PE its next answer, the PE behind the last one that got one first. A PE that is not reached, or takes its
/// time, holds up no answer to another one while readings are left. Nobody needs one once the world is over.
bool Proxy::send_answers() {
  const std::size_t before = answers_;
  if (before == 0 || setup_.is_over()) return false;
  const int first = first_to_answer_;
  for (int i = 0; i < setup_.place.pes; ++i) {
    const int pe = (first + i) % setup_.place.pes;
    std::deque<Answer>& answers = peer(pe).answers;
    if (answers.empty() || !send_answer(answers.front())) continue;
    answers.pop_front();
    --answers_;
    first_to_answer_ = (pe + 1) % setup_.place.pes;
  }
  return answers_ != before;
}

bool Proxy::send_answer(Answer& answer) {
  if (!is_ready(answer)) return false;
  const bool is_sent = send(answer.header, answer.data_to_send());
  if (is_sent || gives_way(answer)) end_reading(answer);
  return is_sent;
}

void Proxy::end_reading(Answer& answer) {
  if (!answer.reading) return;
  setup_.access->release(*answer.reading);
  answer.reading.reset();
  answer.held_up.reset();
  --answer_readings_;
}

/// Returns whether an answer that finds no room gives its reading up, to read again later. It has held the reading for
/// a time then, and another PE's answer waits for one. So PEs that take their answers slowly hold up no other one.
bool Proxy::gives_way(Answer& answer) const {
  constexpr std::chrono::milliseconds patience{1};
  const auto now = std::chrono::steady_clock::now();
  if (!answer.held_up) answer.held_up = now;
  if (answer_readings_ < most_answer_readings_ || now - *answer.held_up < patience) return false;
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    if (peer.answers.empty()) return false;
    const Answer& first = peer.answers.front();
    return first.data != nullptr && first.header.bytes > 0 && !first.reading;
  });
}

/// Begins to read the answer's data where there is room for it. Most of the room is for puts.
bool Proxy::is_ready(Answer& answer) {
  if (!setup_.access->are_written(answer.writes)) return false;
  if (answer.data == nullptr || answer.header.bytes == 0) return true;
  if (!answer.reading && answer_readings_ < most_answer_readings_) {
    answer.reading = setup_.access->read(answer.data, answer.header.bytes);
    ++answer_readings_;
  }
  return answer.reading && setup_.access->is_read(*answer.reading);
}

}  // namespace tandem::wire
