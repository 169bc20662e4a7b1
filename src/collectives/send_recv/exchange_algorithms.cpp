#include "collectives/plan/copy_engine_plan.h"
#include "collectives/plan/plan.h"
#include "collectives/send_recv/exchange_put_signal.h"
#include "collectives/send_recv/ll.h"

namespace tandem::kernels {

std::span<const Algorithm> exchange_algorithms() {
  using enum PeerAccess;
  constexpr Collective kSelf = Collective::kExchange;
  static const Algorithm algorithms[] = {
      {{kSelf, "put_signal", "partners put to each other, both ways at once", false, false, kOutput},
       make_byte_plan<kSelf, ExchangePutSignal>},
      {{kSelf, "copy_engine", "copy engines write to the partner; no SM moves data", true, true, kOutput},
       make_copy_engine_push<kSelf, CopyPattern::kSwap>},
      {{kSelf, "ll", "packets that are their own signals: small sizes", true, false, kNeither},
       make_byte_plan<kSelf, ExchangeLL>},
      {{kSelf, "ll128", "lines of packets: middle sizes", true, false, kNeither}, make_byte_plan<kSelf, ExchangeLL128>},
  };
  return algorithms;
}

}  // namespace tandem::kernels
