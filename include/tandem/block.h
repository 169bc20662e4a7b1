#pragma once
/// The device side of the programming model: every operation that a kernel can use, with what it promises.
///
/// A kernel is a struct with `Args` (plain data) and
///
///   template <class Block> TANDEM_DEVICE static void run(Block& block, const Args& args);
///
/// and, where it puts and gets packets, `using Packet = P`, their type: fragments are laid out for these. With
/// `static constexpr bool kEpochFirst = true` it touches no memory and no signal before next_epoch.
///
/// A Block is a thread block seen as one actor: all its operations are block-cooperative, control flow is uniform, and
/// there is no threadIdx in portable code. The smallest actor is a role of one warp: no operation is a single thread's.
/// Each backend has a Block of its own with these operations; `BlockContract` is their common form, declared but not
/// defined, and the block with which portable kernels are compiled for a GPU as a check.
///
/// PE numbers are those of the team of the launch. Counts are elements. Nothing here throws; a wait is bounded by the
/// world's watchdog (GPUs, CPUs) or ends in a deadlock report (simulator).
///
/// What orders what (docs/concepts.md: every operation)
///   put, store, then notify           the data before the signal, as does a signal after fence or quiet
///   put_signal                        its own data before its signal, and no data of another put_signal
///   a block's changes of one word     are seen in their order, in whatever way they are made; the last of them tells
///                                     nothing of data that came with those before
///   a block's change of its own word  is seen by its waits and tests after a `sync`, `notify`, `fence` or `quiet`
///   put, store, then plain signal     nothing: an error that checkers report
///   wait, wait_all, true signal_test, acquire at system scope: what was visible before the signal may be read
///   signal_wait_until                 from then on
/// OpenSHMEM 1.5 sections 9.5 (RMA), 9.8 (signalling), 9.10 (point-to-point), 9.11 (ordering); PTX ISA, "Memory
/// consistency model".

#include "tandem/impl/block_ops.h"
#include "tandem/reduce_op.h"
#include "tandem/signal.h"

namespace tandem {

/// Elements of T that a block holds in registers, spread over its threads in 16-byte vectors. Operations on fragments
/// of the same layout are element by element and need no barrier. Fragments have the same layout where the elements of
/// the arrays from which they come have the same size; one that is loaded stays with the block or role that loaded it.
/// The simulator and CPUs refuse fragments of other layouts, holders or sizes than an operation takes.
template <class T>
class FragmentContract {
 public:
  TANDEM_DEVICE Size size() const;
  /// f(x) of every element / f(x, y) of every pair.
  template <class F>
  TANDEM_DEVICE FragmentContract map(F f) const;
  template <class U, class F>
  TANDEM_DEVICE FragmentContract zip(const FragmentContract<U>& other, F f) const;
  template <class U>
  TANDEM_DEVICE FragmentContract<U> convert() const;
  TANDEM_DEVICE FragmentContract copy() const;
  TANDEM_DEVICE FragmentContract operator+(const FragmentContract& other) const;
  TANDEM_DEVICE FragmentContract operator*(T scale) const;
};

class BlockContract : public BlockOps<BlockContract> {
 public:
  template <class T>
  using FragmentOf = FragmentContract<T>;

  // --- who and where ------------------------------------------------------------------------------------------------

  TANDEM_DEVICE int pe() const;       ///< this PE's number in the team
  TANDEM_DEVICE int num_pes() const;  ///< PEs of the team
  TANDEM_DEVICE int index() const;    ///< this block's number in the grid
  TANDEM_DEVICE int count() const;    ///< blocks of the grid
  TANDEM_DEVICE const Team& team() const;
  /// Whether loads and stores reach PE `pe` (the same node); put, get and signals reach every PE.
  TANDEM_DEVICE bool reachable(int pe) const;
  TANDEM_DEVICE bool has_multicast() const;

  // --- memory -------------------------------------------------------------------------------------------------------

  /// The steps of a loop over `range`, as many elements of T a step as the block moves at once: the most that an
  /// operation on a fragment takes.
  template <class T>
  TANDEM_DEVICE Tiles tiles(Range range) const;
  /// Address of PE `pe`'s copy; null where it is not reachable (OpenSHMEM 1.5 `shmem_ptr`).
  template <class T>
  TANDEM_DEVICE T* remote(Symm<T> symm, int pe) const;
  /// Elements `range` of a local or reachable array, converted to A. Relaxed.
  template <class A, class T>
  TANDEM_DEVICE FragmentContract<A> load(const T* from, Range range);
  /// An element of 1, 2, 4 or 8 bytes. Relaxed.
  template <class T>
  TANDEM_DEVICE T load_scalar(const T* from);
  /// The elements `range` of every PE's copy, reduced in PE order 0, 1, ...: all loads are in flight at once. All PEs
  /// must be reachable.
  template <class A, class T>
  TANDEM_DEVICE FragmentContract<A> load_reduce(Symm<T> from, Range range, ReduceOp op);
  /// Stores to a local or reachable array, converted to T. Asynchronous: visible elsewhere after notify, fence or
  /// quiet. Fastest where T has the size of the elements that were loaded.
  template <class T, class A>
  TANDEM_DEVICE void store(T* to, Range range, const FragmentContract<A>& values);
  template <class T>
  TANDEM_DEVICE void store_scalar(T* to, T value);
  /// `count` elements between local or reachable arrays that do not overlap.
  template <class T>
  TANDEM_DEVICE void copy(T* to, const std::type_identity_t<T>* from, Size count);
  /// op(a, b), element by element; see reduce_op.h.
  template <class A>
  TANDEM_DEVICE FragmentContract<A> combine(ReduceOp op, const FragmentContract<A>& a,
                                            const FragmentContract<A>& b) const;
  /// Sum over all elements, the same value for all threads; has a barrier of the block in it. T is a type in which
  /// values meet (Accumulator). Integers wrap. The same on every run; floats are added in an order that, on a GPU, the
  /// number of threads and the layout alone decide, elsewhere that of the elements: their last bits may differ.
  template <class T>
  TANDEM_DEVICE T sum(const FragmentContract<T>& values);

  // --- put and get ---------------------------------------------------------------------------------------------------
  // OpenSHMEM 1.5 section 9.5

  /// Copies to PE `pe`'s copy of `to`. Returns when `from` may be reused; visible there after fence/quiet and a signal.
  template <class T>
  TANDEM_DEVICE void put(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe);
  /// The same without waiting: `from` must stay as it is until quiet.
  template <class T>
  TANDEM_DEVICE void put_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe);
  /// A put whose data is visible at `pe` before `word` (its copy there) changes (section 9.8.2). Where several share
  /// a word, a wait by >= may see the value of a later one before the data of an earlier one: give each slot of a
  /// buffer a word of its own, or put a `fence` between them.
  template <class T>
  TANDEM_DEVICE void put_signal(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value,
                                int pe, SignalOp op = SignalOp::kSet);
  template <class T>
  TANDEM_DEVICE void put_signal_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word,
                                    Epoch value, int pe, SignalOp op = SignalOp::kSet);
  /// Copies from PE `pe`'s copy, and returns with the data.
  template <class T>
  TANDEM_DEVICE void get(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe);
  /// The same without waiting: neither `to` nor the source may be written, nor `to` be read, until quiet. A backend may
  /// complete it at once.
  template <class T>
  TANDEM_DEVICE void get_nbi(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe);
  /// Orders this block's earlier puts, stores and signals before its later ones, for each destination by itself; gets
  /// and loads it does not order (section 9.11.1).
  TANDEM_DEVICE void fence();
  /// All of this block's earlier puts, gets and stores are complete and visible (section 9.11.2).
  TANDEM_DEVICE void quiet();

  // --- signals -------------------------------------------------------------------------------------------------------
  // OpenSHMEM 1.5 sections 9.8 and 9.10

  /// Changes PE `pe`'s word. Relaxed: orders nothing.
  TANDEM_DEVICE void signal(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet);
  /// Changes PE `pe`'s word after everything that this block did before is visible to all: release at system scope.
  /// Has a barrier of the block in it. Through a NIC it follows this block's puts to the same PE; puts to others need
  /// quiet.
  TANDEM_DEVICE void notify(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet);
  /// Sets PE `pe`'s word after this block's earlier loads and packet reads whose values it has used: what they read may
  /// be written again, by the PE that had written it too, since a wait for its signal came before. Does not order
  /// stores, and so does not wait for those under way, as notify does.
  TANDEM_DEVICE void signal_after_reads(Signals word, Epoch value, int pe);
  /// notify of slot [this block][this PE] of `words` at every PE. `words`: (blocks of the grid) x num_pes words.
  TANDEM_DEVICE void notify_all(Signals words, Epoch value);
  /// Waits until this PE's words [0, n) are all >= value. Acquire at system scope; has a barrier of the block in it.
  TANDEM_DEVICE Token wait(Signals words, Size n, Epoch value);
  /// The counterpart of notify_all: waits for this block's slot of every PE.
  TANDEM_DEVICE Token wait_all(Signals words, Epoch value);
  TANDEM_DEVICE void signal_wait_until(Signals word, Cmp cmp, Epoch value);
  /// Whether the word compares true now; acquire if it does. A loop of tests polls: prefer a wait.
  TANDEM_DEVICE bool signal_test(Signals word, Cmp cmp, Epoch value);
  /// The pointer, to be read after the wait that gave the token; orders reads by the tensor-memory engine too
  /// (cross-proxy fence).
  template <class T>
  TANDEM_DEVICE T* consume_token(T* pointer, Token token) const;
  /// Takes the next `count` epochs of this block and returns the first of them: 1 in the first launch. Once a launch,
  /// by every block; the block's word holds the last epoch taken. What a kernel does before it without touching memory
  /// may overlap the launch before (programmatic dependent launch).
  TANDEM_DEVICE Epoch next_epoch(Epochs epochs, Epoch count = 1);
  /// Barrier of the block's threads; orders the block's own accesses to local memory.
  TANDEM_DEVICE void sync();

  // --- atomics -------------------------------------------------------------------------------------------------------
  // PTX ISA `atom`

  /// On one local or reachable integer of 4 or 8 bytes, by the block as one actor. Returns the old value. All atomics
  /// and signals of a word have its whole size: those that overlap in part have no order. `scope` is the least scope;
  /// GPUs use Scope::kSystem for every atomic.
  template <class T>
  TANDEM_DEVICE T fetch_add(T* word, T value, Scope scope = Scope::kSystem, Order order = Order::kAcqRel);
  template <class T>
  TANDEM_DEVICE T exchange(T* word, T value, Scope scope = Scope::kSystem, Order order = Order::kAcqRel);
  /// Writes `value` where the word was `expected`; otherwise the atomic is a load.
  template <class T>
  TANDEM_DEVICE T compare_swap(T* word, T expected, T value, Scope scope = Scope::kSystem,
                               Order order = Order::kAcqRel);

  // --- packets -------------------------------------------------------------------------------------------------------
  // Data that is its own signal: NCCL's LL and LL128 protocols. Packets begin at a multiple of 16 bytes. Fragments are
  // those of T: loaded from an array of elements of its size.

  /// Writes `count` elements as packets with flag `epoch` to PE `pe` (reachable). P: LLPacket (4 + 4 bytes) or
  /// LL128Line. A packet buffer may be written again when its reader is known to have read it. An LLPacket holds the
  /// lower half of `epoch`: never one of which that is 0, which a packet holds that nobody has written.
  template <class P, class T>
  TANDEM_DEVICE void ll_put(Symm<P> to, const T* from, Size count, Epoch epoch, int pe);
  /// The same from registers, converted to T.
  template <class T, class P, class A>
  TANDEM_DEVICE void ll_put_fragment(Symm<P> to, const FragmentContract<A>& values, Epoch epoch, int pe);
  /// ll_put_fragment to every PE but this one, the next one first.
  template <class T, class P, class A>
  TANDEM_DEVICE void ll_put_peers(Symm<P> to, const FragmentContract<A>& values, Epoch epoch);
  /// Waits for each packet of `count` elements of T to carry `epoch`, and returns them. Needs no other wait.
  template <class A, class T, class P>
  TANDEM_DEVICE FragmentContract<A> ll_get(const P* from, Size count, Epoch epoch);
  /// on_pe(p, fragment) for every PE in PE order: with `own` for this PE, with ll_get of what is at `from + p * stride`
  /// for the others, as many elements.
  template <class T, class A, class P, class F>
  TANDEM_DEVICE void ll_get_all(const FragmentContract<A>& own, const P* from, Size stride, Epoch epoch,
                                const F& on_pe);
  /// Waits for packets and passes them on to PE `pe` (reachable), unopened. Of any type, whatever the kernel's Packet.
  template <class P>
  TANDEM_DEVICE void ll_forward(Symm<P> to, const P* from, Size packets, Epoch epoch, int pe);

  // --- multicast -----------------------------------------------------------------------------------------------------
  // PTX ISA `multimem`; only where has_multicast, elsewhere a kernel that gets here ends with an error

  /// Stores to every PE's copy; the switch copies.
  template <class T, class A>
  TANDEM_DEVICE void multimem_store(Symm<T> to, Range range, const FragmentContract<A>& values);
  /// Reduces every PE's copy in the switch; its order is the hardware's on a GPU, PE order elsewhere.
  template <class A, class T>
  TANDEM_DEVICE FragmentContract<A> multimem_load_reduce(Symm<T> from, Range range, ReduceOp op);
  /// Reduces values into every PE's copy.
  template <class T, class A>
  TANDEM_DEVICE void multimem_reduce(Symm<T> to, Range range, const FragmentContract<A>& values, ReduceOp op);

  // --- roles ---------------------------------------------------------------------------------------------------------
  // Warps of one block that do different things side by side.

  /// Runs one function for each width (in warps) side by side, each with a Block at its own scope, and joins. At most
  /// 15, not nested; the sum of the widths is at most the block's warps. Barrier of the block before and after. Every
  /// operation but these two is a role's too.
  template <int... Widths, class... F>
  TANDEM_DEVICE void parallel(F&&... bodies);
  /// `n` roles (at most 15, together at most the block's warps) of `Width` warps: body(role, i).
  template <int Width, class F>
  TANDEM_DEVICE void parallel_for(int n, F&& body);
};

}  // namespace tandem
