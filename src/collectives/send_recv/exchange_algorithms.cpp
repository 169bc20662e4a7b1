#include "collectives/plan/copy_engine_plan.h"
#include "collectives/plan/plan.h"
#include "collectives/send_recv/exchange_put_signal.h"
#include "collectives/send_recv/ll.h"

namespace tandem::kernels {

std::span<const Algorithm> exchange_algorithms() {
  using enum PeerAccess;
  constexpr Collective kThis = Collective::kExchange;
  static const Algorithm algorithms[] = {
      {{kThis, "put_signal", "partners put to each other, both ways at once", false, false, kOutput},
       make_byte_plan<kThis, ExchangePutSignal>},
      {{kThis, "copy_engine", "copy engines write to the partner; no SM moves data", true, true, kOutput},
       make_copy_engine_push<kThis, CopyPattern::kSwap>},
      {{kThis, "ll", "packets that are their own signals: small sizes", true, false, kNeither},
       make_byte_plan<kThis, ExchangeLL>},
      {{kThis, "ll128", "lines of packets: middle sizes", true, false, kNeither}, make_byte_plan<kThis, ExchangeLL128>},
  };
  return algorithms;
}

}  // namespace tandem::kernels
