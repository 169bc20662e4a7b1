#include "bootstrap/split.h"

#include <algorithm>
#include <tuple>

namespace tandem::bootstrap {

namespace {

struct Member {
  int color, key, pe;
};

/// All PEs' wishes, by PE.
std::vector<Member> exchange(Session& session, int color, int key) {
  const auto word = [](int value) { return static_cast<std::uint32_t>(value); };
  std::vector<Member> all;
  for (const Bytes& answer : session.all_gather(Writer().u32(word(color)).u32(word(key)).result(), "split")) {
    Reader reader(answer);
    const auto its_color = static_cast<int>(reader.u32());
    all.push_back({its_color, static_cast<int>(reader.u32()), static_cast<int>(all.size())});
  }
  return all;
}

}  // namespace

std::optional<Placement> split(Session& session, int color, int key) {
  std::vector<Member> members = exchange(session, color, key);
  std::erase_if(members, [&](const Member& member) { return member.color != color; });
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return std::tie(a.key, a.pe) < std::tie(b.key, b.pe); });
  const int first = members.front().pe;
  const bool leads = color >= 0 && first == session.pe();
  std::string own_id;
  session.together("split's rendezvous", [&] {
    // Where the others have come from, whatever hosts and network name spaces they are in.
    if (leads) own_id = UniqueId::create(session.address()).text();
  });
  const auto ids = session.all_gather(Writer().text(own_id).result(), "split's ids");
  if (color < 0) return std::nullopt;
  const auto own = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.pe == session.pe(); });
  const UniqueId id = UniqueId::from_text(Reader(ids[static_cast<std::size_t>(first)]).text());
  const int number = static_cast<int>(own - members.begin());
  const int size = static_cast<int>(members.size());
  return Placement{id, number, size, number, size};
}

}  // namespace tandem::bootstrap
