// Packets (LL): when a slot may be sent to again, and what an answer tells.
#include "check/conformance.h"

namespace tandem::check_test {

namespace {

constexpr Size kValues = 8;  // of a message; a slot has as many packets
constexpr Epoch kRounds = 7;

Symm<LLPacket> slot_of(const Env& e, Epoch round, Epoch slots, int owner = 0) {
  return e.packets + (static_cast<Size>(round % slots) + Size{2} * owner) * kValues;
}
template <class Block>
void send(Block& block, const Env& e, Symm<LLPacket> slot, Epoch flag, int pe) {
  block.ll_put(slot, e.local, kValues, flag, pe);
}
template <class Block>
void receive(Block& block, const Env& e, Symm<LLPacket> slot, Epoch flag) {
  block.store(e.result, {0, kValues}, block.template ll_get<float, float>(slot.local(), kValues, flag));
}

/// The reader's answer to the sender of packets.
enum class PacketCredit { kNone, kAfterReads, kNotify, kRelaxed, kBeforeReads };

/// PE 0 sends rounds into `slots` slots and lets `ahead` of them be unread.
void one_way(Programs& p) {
  const auto add = [&p](const char* name, bool racy, PacketCredit credit, Epoch ahead) {
    p.kernel(
        name, racy,
        [credit, ahead](auto& block, const Env& e) {
          constexpr Epoch kSlots = 2;
          for (Epoch round = 1; round <= kRounds && block.pe() < 2; ++round) {
            const Symm<LLPacket> slot = slot_of(e, round, kSlots);
            if (block.pe() == 0) {
              if (credit != PacketCredit::kNone && round > ahead) block.wait(e.words, 1, round - ahead);
              send(block, e, slot, round, 1);
              continue;
            }
            if (credit == PacketCredit::kBeforeReads) block.notify(e.words, round, 0);
            receive(block, e, slot, round);
            if (credit == PacketCredit::kAfterReads) block.signal_after_reads(e.words, round, 0);
            if (credit == PacketCredit::kNotify) block.notify(e.words, round, 0);
            if (credit == PacketCredit::kRelaxed) block.signal(e.words, round, 0);
          }
        },
        Place::kOneNode);
  };
  add("packets one way: nothing returned", kRacy, PacketCredit::kNone, 2);
  add("packets one way, credits after the reads", kClean, PacketCredit::kAfterReads, 2);
  add("packets one way, credits by notify", kClean, PacketCredit::kNotify, 2);
  add("packets one way, credits by signal", kRacy, PacketCredit::kRelaxed, 2);
  add("packets one way, credits before the reads", kRacy, PacketCredit::kBeforeReads, 2);
  add("packets one way, more under way than slots", kRacy, PacketCredit::kAfterReads, 3);
}

/// All PEs send to all; `ahead`: a round is sent before the one before it is received.
void all_to_all(Programs& p) {
  const auto add = [&p](const char* name, bool racy, Epoch slots, bool ahead) {
    p.kernel(
        name, racy,
        [slots, ahead](auto& block, const Env& e) {
          const auto at = [&](Epoch round, int owner) { return slot_of(e, round, slots, 2 * owner); };
          const auto send_all = [&](Epoch round) {
            for (const int pe : block.peers_from_self())
              if (pe < 2) send(block, e, at(round, block.pe()), round, pe);
          };
          const auto receive_all = [&](Epoch round) {
            for (const int pe : block.peers_from_self())
              if (pe < 2) receive(block, e, at(round, pe), round);
          };
          if (block.pe() == 2) return;
          for (Epoch round = 1; round <= kRounds; ++round) {
            send_all(round);
            if (!ahead) receive_all(round);
            if (ahead && round > 1) receive_all(round - 1);
          }
          if (ahead) receive_all(kRounds);
        },
        Place::kOneNode);
  };
  add("packets both ways, one slot", kRacy, 1, false);
  add("packets both ways, two slots", kClean, 2, false);
  add("packets both ways, a round ahead, three slots", kRacy, 3, true);
  add("packets both ways, a round ahead, four slots", kClean, 4, true);
}

/// Rounds go on around a ring: whom a PE hears of is not whom it sends to.
void ring(Programs& p) {
  for (const bool twice : {false, true})
    p.kernel(
        twice ? "packets round a ring, sent when they came round" : "packets round a ring, two slots", !twice,
        [twice](auto& block, const Env& e) {
          const int n = block.num_pes();
          const int next = (block.pe() + 1) % n;
          for (Epoch round = 1; round <= kRounds; ++round) {
            send(block, e, slot_of(e, round, 2), round, next);
            receive(block, e, slot_of(e, round, 2), round);
            if (!twice) continue;
            // The second and third hop: what PE `next` read comes back from the PE before.
            for (int hop = 1; hop < n; ++hop) {
              send(block, e, slot_of(e, round, 2, 2 * hop), round, next);
              receive(block, e, slot_of(e, round, 2, 2 * hop), round);
            }
          }
        },
        Place::kOneNode);
}

/// An answer tells that its question was read.
void answers(Programs& p) {
  for (const bool answered : {false, true})
    p.kernel(
        answered ? "ll_put, ll_get of the answer, store over the question" : "ll_put, store over the question",
        !answered,
        [answered](auto& block, const Env& e) {
          const Symm<LLPacket> question = slot_of(e, 0, 2);
          const Symm<LLPacket> answer = slot_of(e, 1, 2);
          if (block.pe() == 0) {
            send(block, e, question, 1, 1);
            if (answered) receive(block, e, answer, 1);
            send(block, e, question, 2, 1);
          }
          if (block.pe() == 1) {
            receive(block, e, question, 1);
            send(block, e, answer, 1, 0);
          }
        },
        Place::kOneNode);
}

/// Packets made here, put to another node, and made again at the same place.
void packed_again(Programs& p) {
  for (const bool quiet : {false, true})
    p.kernel(quiet ? "packets put_nbi, quiet, packed again" : "packets put_nbi, packed again", !quiet,
             [quiet](auto& block, const Env& e) {
               for (Epoch round = 1; round <= 2; ++round) {
                 const Symm<LLPacket> there = slot_of(e, round, 2);
                 if (block.pe() == 0) {
                   const Symm<LLPacket> here = e.packets + 6 * kValues;
                   send(block, e, here, round, 0);
                   receive(block, e, here, round);  // then they are there
                   block.put_nbi(there, here.local(), kValues, 1);
                   if (quiet) block.quiet();
                 }
                 if (block.pe() == 1) receive(block, e, there, round);
               }
             });
}

}  // namespace

void add_packet_programs(Programs& programs) {
  one_way(programs);
  all_to_all(programs);
  ring(programs);
  answers(programs);
  packed_again(programs);
}

}  // namespace tandem::check_test
