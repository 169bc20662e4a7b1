// Roles: what they leave under way goes over to their block.
#include "check/conformance.h"

namespace tandem::check_test {

namespace {

template <class Block, class Body>
void in_a_role(Block& block, const Body& body) {
  block.template parallel_for<1>(1, [&](auto& role, int) { body(role); });
}

}  // namespace

void add_role_programs(Programs& p) {
  for (const bool quiet : {false, true})
    p.kernel(quiet ? "role puts; role quiet, puts; block quiet, notify | wait, load"
                   : "role puts; role quiet, puts; block signal | wait, load",
             !quiet, [quiet](auto& block, const Env& e) {
               if (block.pe() == 0) {
                 in_a_role(block, [&](auto& role) { role.put_nbi(e.data, e.local, kN / 2, 1); });
                 in_a_role(block, [&](auto& role) {
                   role.quiet();
                   role.put_nbi(e.data + kN / 2, e.local + kN / 2, kN / 2, 1);
                 });
                 if (quiet) block.quiet();
                 block.signal(e.words, 1, 1);
               }
               if (block.pe() == 1) {
                 block.wait(e.words, 1, 1);
                 read(block, e, e.data.local());
               }
             });
  p.kernel("role put_signal, block notify of the same word", kClean, [](auto& block, const Env& e) {
    if (block.pe() == 0) {
      in_a_role(block, [&](auto& role) { role.put_signal(e.data, e.local, kN, e.words, 1, 1); });
      block.notify(e.words, 2, 1);
    }
    if (block.pe() == 1) block.wait(e.words, 1, 2);
  });
  p.kernel("two roles SET one word", kRacy, [](auto& block, const Env& e) {
    if (block.pe() != 0) return;
    block.template parallel_for<1>(2, [&](auto& role, int i) { role.notify(e.words, static_cast<Epoch>(i) + 1, 1); });
  });
  // A signal about a put's source does not cover a load of the same place.
  for (const bool loads : {false, true})
    p.kernel(
        loads ? "load, put_signal from there | wait, store over it" : "put_signal | wait, store over its source", loads,
        [loads](auto& block, const Env& e) {
          if (block.pe() == 0) {
            if (loads) read(block, e, e.other.local());
            block.put_signal(e.data, e.other.local(), kN, e.words, 1, 1);
          }
          if (block.pe() != 1) return;
          block.wait(e.words, 1, 1);
          be_late(block, e);
          write(block, e.other.on(0));
        },
        Place::kOneNode);
}

}  // namespace tandem::check_test
