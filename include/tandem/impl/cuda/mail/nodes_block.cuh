#pragma once
/// The Block of a kernel that runs between nodes. It has the operations of block.cuh. For PEs of other nodes, whose
/// memory it does not reach, it posts requests to the proxy.
///
/// It is a separate compilation of a kernel, so worlds of one node have no extra cost.

#include <utility>

#include "tandem/impl/cuda/block.cuh"
#include "tandem/impl/cuda/mail/mail.cuh"

namespace tandem::cuda {

/// `Base` is a Group: the block's, or that of a role.
template <class Base>
class BetweenNodes : public Base {
 public:
  __device__ BetweenNodes(const Base& base, const MailLink& mail) : Base(base), mail_(mail) {}

  __device__ bool reachable(int pe) const { return mail_.is_near(world_pe(pe)); }

  /// Null for a PE of another node, as the contract has it, so that kernels put instead of storing.
  template <class T>
  __device__ T* remote(Symm<T> symm, int pe) const {
    return reachable(pe) ? symm.on(pe) : nullptr;
  }

  template <class T>
  __device__ void put(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe) {
    if (reachable(pe)) return Base::put(to, from, count, pe);
    post_put_of_group(to.on(pe), from, count * Size{sizeof(T)}, nullptr, 0, pe, SignalOp::kSet, true);
  }
  template <class T>
  __device__ void put_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe) {
    if (reachable(pe)) return Base::put_nbi(to, from, count, pe);
    post_put_of_group(to.on(pe), from, count * Size{sizeof(T)}, nullptr, 0, pe, SignalOp::kSet, false);
  }
  template <class T>
  __device__ void put_signal(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value,
                             int pe, SignalOp op = SignalOp::kSet) {
    if (reachable(pe)) return Base::put_signal(to, from, count, word, value, pe, op);
    post_put_of_group(to.on(pe), from, count * Size{sizeof(T)}, word.on(pe), value, pe, op, true);
  }
  template <class T>
  __device__ void put_signal_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value,
                                 int pe, SignalOp op = SignalOp::kSet) {
    if (reachable(pe)) return Base::put_signal_nbi(to, from, count, word, value, pe, op);
    post_put_of_group(to.on(pe), from, count * Size{sizeof(T)}, word.on(pe), value, pe, op, false);
  }
  template <class T>
  __device__ void get(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe) {
    if (reachable(pe)) return Base::get(to, from, count, pe);
    post_get_of_group(to, from.on(pe), count * Size{sizeof(T)}, pe, true);
  }
  template <class T>
  __device__ void get_nbi(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe) {
    if (reachable(pe)) return Base::get_nbi(to, from, count, pe);
    post_get_of_group(to, from.on(pe), count * Size{sizeof(T)}, pe, false);
  }
  /// Messages to a PE are carried out in the order of their requests.
  __device__ void fence() { Base::quiet(); }
  __device__ void quiet() {
    Base::quiet();
    if (is_first()) flush_requests(this->context_, mail_);
    this->sync();
  }

  /// See collectives/steps/quiet_at_end.h. Other PEs of the node learn of this one's work without its proxy, so then
  /// there is no way but to wait.
  __device__ void quiet_at_end() {
    if (mail_.node_size > 1) return quiet();
    Base::quiet();
    if (is_first()) order_requests(this->context_, mail_);
    this->sync();
  }

  __device__ void signal(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet) {
    if (reachable(pe)) return Base::signal(word, value, pe, op);
    if (is_first()) post_signal(this->context_, mail_, word.on(pe), value, world_pe(pe), op);
  }
  __device__ void notify(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet) {
    if (reachable(pe)) return Base::notify(word, value, pe, op);
    this->sync();
    if (is_first()) post_signal(this->context_, mail_, word.on(pe), value, world_pe(pe), op);
  }
  __device__ void signal_after_reads(Signals word, Epoch value, int pe) {
    if (reachable(pe)) return Base::signal_after_reads(word, value, pe);
    notify(word, value, pe);
  }
  __device__ void notify_all(Signals words, Epoch value) {
    for (const int pe : this->pes_from_self()) notify(this->slots(words) + this->pe(), value, pe);
  }

  template <int... Widths, class... F>
  __device__ void parallel(F&&... bodies) {
    Base::template parallel<Widths...>(RoleBody<F>{mail_, bodies}...);
  }
  template <int Width, class F>
  __device__ void parallel_for(int n, F&& body) {
    Base::template parallel_for<Width>(n, [&](auto& role, int i) {
      BetweenNodes<std::remove_reference_t<decltype(role)>> own(role, mail_);
      body(own, i);
    });
  }

 private:
  /// The function of a role: its body, with a block between nodes. (A struct, because nvcc does not expand packs in
  /// lambdas.)
  template <class F>
  struct RoleBody {
    const MailLink& mail;
    F& body;
    template <class Role>
    __device__ void operator()(Role& role) const {
      BetweenNodes<Role> own(role, mail);
      body(own);
    }
  };

  __device__ bool is_first() const { return this->thread_ == 0; }
  __device__ int world_pe(int pe) const { return this->team().world_pe(pe); }

  /// The barriers order the stores of all threads before the request, and later ones behind a wait.
  __device__ void post_put_of_group(const void* to, const void* from, Size bytes, const Signal* word, Epoch value,
                                    int pe, SignalOp op, bool waits) {
    if (bytes > kMostHeld && bytes <= kMostBeside)
      return post_put_beside_of_group(to, from, bytes, word, value, pe, op);
    this->sync();
    if (is_first() && (bytes > 0 || word != nullptr)) {
      const std::uint64_t number = post_put(this->context_, mail_, to, from, bytes, word, value, world_pe(pe), op);
      if (waits && bytes > kMostHeld && number != 0) await_proxy(this->context_, &mail_.progress->sent, number);
    }
    if (waits) this->sync();
  }
  /// The threads copy the data to memory of the host themselves, which takes less time than a copy by the proxy.
  __device__ void post_put_beside_of_group(const void* to, const void* from, Size bytes, const Signal* word,
                                           Epoch value, int pe, SignalOp op) {
    const std::uint64_t number =
        this->once(Order::kRelaxed, [&] { return take_request_number(this->context_, mail_, kMailPlaces); });
    if (number == 0) return;
    this->copy(mail_.ring->places[number % kMailPlaces], static_cast<const std::byte*>(from), bytes);
    if (is_first()) post_put_beside(mail_, number, to, bytes, word, value, world_pe(pe), op);
  }
  __device__ void post_get_of_group(void* to, const void* from, Size bytes, int pe, bool waits) {
    this->sync();
    if (is_first() && bytes > 0) {
      const std::uint64_t number = post_get(this->context_, mail_, to, from, bytes, world_pe(pe));
      if (waits && number != 0) await_proxy(this->context_, &mail_.progress->answered, number);
    }
    if (waits) this->sync();
  }

  const MailLink& mail_;
};

}  // namespace tandem::cuda
