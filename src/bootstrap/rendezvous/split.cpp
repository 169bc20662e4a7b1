#include "bootstrap/rendezvous/split.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "bootstrap/rendezvous/host.h"
#include "bootstrap/rendezvous/id_contents.h"

namespace tandem::bootstrap {

namespace {

struct Member {
  int color, key, pe;
};

/// Returns the colors and keys of all PEs, by PE.
std::vector<Member> exchange(WorldMember& world, int color, int key) {
  const auto word = [](int value) { return static_cast<std::uint32_t>(value); };
  std::vector<Member> all;
  for (const Bytes& answer : world.all_gather(Writer().u32(word(color)).u32(word(key)).result(), "split")) {
    Reader reader(answer);
    const auto its_color = static_cast<int>(reader.u32());
    all.push_back({its_color, static_cast<int>(reader.u32()), static_cast<int>(all.size())});
  }
  return all;
}

/// Derives a secret that only the world's processes can know.
Key secret_of(WorldMember& world, int color) {
  const Bytes salt = Writer().u64(world.count_split()).u32(static_cast<std::uint32_t>(color)).result();
  return derive(world.secret(), "split", salt);
}

}  // namespace

std::optional<Placement> split(WorldMember& world, int color, int key) {
  IdContents contents{"", 0, secret_of(world, color)};
  std::vector<Member> members = exchange(world, color, key);
  std::erase_if(members, [&](const Member& member) { return member.color != color; });
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return std::tie(a.key, a.pe) < std::tie(b.key, b.pe); });
  const int first = members.front().pe;
  const bool leads = color >= 0 && first == world.pe();
  Writer place;
  std::unique_ptr<Host> opened;  // closed again if another leader cannot open one
  world.all_or_none("split's rendezvous", [&] {
    if (!leads) return;
    // The other members reach this address as they reached the old rendezvous.
    opened = std::make_unique<Host>(contents.secret, world.address());
    place.text(opened->contents().address).u32(opened->contents().port);
  });
  const auto places = world.all_gather(place.result(), "split's addresses");
  if (opened != nullptr) keep_rendezvous(std::move(opened));
  if (color < 0) return std::nullopt;
  Reader leaders(places[static_cast<std::size_t>(first)]);
  contents.address = leaders.text();
  contents.port = static_cast<std::uint16_t>(leaders.u32());
  const auto own = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.pe == world.pe(); });
  const int number = static_cast<int>(own - members.begin());
  const int size = static_cast<int>(members.size());
  return Placement{id_of(contents), number, size, number, size};
}

}  // namespace tandem::bootstrap
