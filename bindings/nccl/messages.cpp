#include "bindings/nccl/messages.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tandem::nccl {

std::vector<MessageRound> rounds_of(const std::vector<Message>& messages, int rank, int ranks) {
  constexpr int kMost = SendRecvGroup::kMostMessages / 2;  // in each direction
  const auto is_sent = [&](const Message& message) { return message.peer != rank && message.bytes > 0; };
  const bool is_one = std::count_if(messages.begin(), messages.end(), is_sent) <= SendRecvGroup::kMostMessages;
  const int of_a_pair = std::max(1, kMost / std::max(1, ranks - 1));
  std::map<std::pair<bool, int>, int> numbers;  // of the messages so far, by direction and peer
  std::map<std::pair<int, int>, MessageRound> rounds;
  for (const Message& message : messages) {
    if (!is_sent(message)) continue;
    const int number = numbers[{message.is_send, message.peer}]++;
    // From the sender to the receiver, from 1.
    const int distance = (ranks + (message.is_send ? message.peer - rank : rank - message.peer)) % ranks;
    const auto place = is_one ? std::pair(0, 0) : std::pair(number / of_a_pair, (distance - 1) / kMost);
    MessageRound& round = rounds[place];
    if (message.is_send)
      round.sends.push_back({message.peer, message.data, message.bytes});
    else
      round.receives.push_back({message.peer, message.data, message.bytes});
  }
  std::vector<MessageRound> all;
  for (auto& [place, round] : rounds) all.push_back(std::move(round));
  return all;
}

}  // namespace tandem::nccl
