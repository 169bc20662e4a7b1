#include "collectives/all_reduce/multi_ring.h"
#include "collectives/all_reduce/multimem.h"
#include "collectives/all_reduce/one_shot.h"
#include "collectives/all_reduce/one_shot_ll.h"
#include "collectives/all_reduce/recursive_doubling.h"
#include "collectives/all_reduce/ring.h"
#include "collectives/all_reduce/ring_simple.h"
#include "collectives/all_reduce/stream.h"
#include "collectives/all_reduce/tree.h"
#include "collectives/all_reduce/two_level.h"
#include "collectives/all_reduce/two_shot.h"
#include "collectives/all_reduce/two_shot_ll.h"
#include "collectives/plan/plan.h"
#include "collectives/plan/reduce_copies_plan.h"

namespace tandem::kernels {

namespace {

constexpr Collective kThis = Collective::kAllReduce;

/// The operations of PTX ISA `multimem.ld_reduce`: sums, minima and maxima of floats and of integers of 32 and 64 bits.
std::string multimem_unfit(const Machine& machine, const CollectiveOptions& options) {
  if (!machine.link.multicast) return "needs multicast, which machine '" + machine.name + "' does not have";
  if (options.op == ReduceOp::kProd) return "cannot multiply: the switch adds and compares";
  if (options.type == DType::kI8 || options.type == DType::kU8)
    return std::string("cannot reduce ") + name(options.type) + ": the switch knows integers of 32 and 64 bits";
  return "";
}

}  // namespace

std::span<const Algorithm> all_reduce_algorithms() {
  using enum PeerAccess;
  static const Algorithm algorithms[] = {
      {{kThis, "two_shot", "each PE sums its own shard over all PEs and writes the sum to all", true},
       make_plan<kThis, AllReduceTwoShot>},
      {{kThis, "one_shot", "each PE reads the inputs of all PEs and sums them", true, false, kNeither},
       make_plan<kThis, AllReduceOneShot>},
      {{kThis, "one_shot_ll", "one shot with packets that are their own signal, for small messages", true, false,
        kNeither},
       make_plan<kThis, AllReduceOneShotLL>},
      {{kThis, "one_shot_ll128", "one shot with lines of packets, for middle sizes", true, false, kNeither},
       make_plan<kThis, AllReduceOneShotLL128>},
      {{kThis, "two_shot_ll", "two shots with packets that are their own signal", true, false, kNeither},
       make_plan<kThis, AllReduceTwoShotLL>},
      {{kThis, "two_shot_ll128", "two shots with lines of packets, for middle sizes", true, false, kNeither},
       make_plan<kThis, AllReduceTwoShotLL128>},
      {{kThis, "copy_engine", "copy engines bring each PE its shard of all inputs and spread the sums", true, true,
        kOutput},
       make_copied_reduce<kThis>},
      {{kThis, "multimem", "one shot through the switch; needs multicast, which CPUs do by software", true, false, kNeither},
       make_plan<kThis, AllReduceMultimem>,
       multimem_unfit},
      {{kThis, "ring", "reduce phase and broadcast phase over n chunks in a ring", false, false, kOutput},
       make_plan<kThis, AllReduceRing>},
      {{kThis, "ring_simple", "the whole buffer goes once round the ring, for small messages", false, false, kNeither},
       make_plan<kThis, AllReduceRingSimple>},
      {{kThis, "multi_ring", "as many rings as PEs a node, alternating over the node's rail-aligned NICs", false, false,
        kOutput},
       make_plan<kThis, AllReduceMultiRing>},
      {{kThis, "two_level", "sums within the node, then along the rail; results within the node", false, false, kBoth},
       make_plan<kThis, AllReduceTwoLevel>},
      {{kThis, "recursive_doubling", "whole buffers swapped with the PE at distance 1, 2, 4, ...; few steps", false,
        false, kOutput},
       make_plan<kThis, AllReduceRecursiveDoubling>},
      {{kThis, "tree", "sums go up a binary tree and results down, in chunks", false, false, kOutput},
       make_plan<kThis, AllReduceTree>,
       narrow_unfit<AllReduceTree>},
      {{kThis, "stream", "two shots through slots, for memory that peers do not reach: large sizes", true, false,
        kNeither},
       make_plan<kThis, AllReduceStream>,
       narrow_unfit<AllReduceStream>},
  };
  return algorithms;
}

}  // namespace tandem::kernels
