#pragma once
/// The device side of the programming model: all operations of kernels with their guarantees.
///
/// A kernel is a struct with `Args` (plain data) and
///
///   template <class Block> TANDEM_DEVICE static void run(Block& block, const Args& args);
///
/// A kernel that puts and gets packets also has `using Packet = P`, their type, which determines the layout of
/// fragments. A kernel with `static constexpr bool kEpochFirst = true` accesses no memory and no signal before
/// next_epoch.
///
/// A Block is a thread block seen as one actor. All its operations are block-cooperative, control flow is uniform, and
/// portable code has no threadIdx. The smallest actor is a role of one warp; no operation belongs to a single thread.
/// Each backend has its own Block with these operations. `BlockContract` is their common form. It is declared but not
/// defined, and portable kernels are compiled with it for a GPU as a check.
///
/// PE numbers are those of the team of the launch. Counts are elements. Nothing here throws; a wait is bounded by the
/// world's watchdog (GPUs, CPUs) or ends in a deadlock report (simulator).
///
/// The order between operations (docs/concepts.md: every operation)
///   put, store, then notify           the data before the signal, as does a signal after fence or quiet
///   put_signal                        its own data before its signal, and no data of another put_signal
///   a block's changes of one word     are seen in their order, in whatever way they are made; the last of them tells
///                                     nothing of data that came with those before
///   a block's change of its own word  is seen by its waits and tests after a `sync`, `notify`, `fence` or `quiet`
///   put, store, then plain signal     nothing: an error that checkers report
///   wait, wait_all, true signal_test  what was visible before the signal may be read from then on: an acquire at
///   or signal_wait_until              system scope
/// OpenSHMEM 1.5 sections 9.5 (RMA), 9.8 (signalling), 9.10 (point-to-point), 9.11 (ordering); PTX ISA, "Memory
/// consistency model".

#include "tandem/impl/block_ops.h"
#include "tandem/reduce_op.h"
#include "tandem/signal.h"

namespace tandem {

/// Elements of T that a block holds in registers, spread over its threads in 16-byte vectors. Operations on fragments
/// of the same layout are element by element and need no barrier. Fragments have the same layout if they are loaded
/// from arrays with elements of the same size. A loaded fragment stays with the block or role that loaded it. The
/// simulator rejects fragments of other layouts, holders or sizes than an operation takes.
template <class T>
class FragmentContract {
 public:
  /// Returns the number of elements.
  TANDEM_DEVICE Size size() const;
  /// Returns f(x) for every element, or f(x, y) for every pair.
  template <class F>
  TANDEM_DEVICE FragmentContract map(F f) const;
  /// Returns f(x, y) of each pair of elements. Both fragments have the same layout.
  template <class U, class F>
  TANDEM_DEVICE FragmentContract zip(const FragmentContract<U>& other, F f) const;
  /// Returns the elements converted to U.
  template <class U>
  TANDEM_DEVICE FragmentContract<U> convert() const;
  /// Returns a copy; fragments are not copied implicitly.
  TANDEM_DEVICE FragmentContract copy() const;
  /// Returns the sum, element by element.
  TANDEM_DEVICE FragmentContract operator+(const FragmentContract& other) const;
  /// Returns each element times `scale`.
  TANDEM_DEVICE FragmentContract operator*(T scale) const;
};

/// At most 32 scalars that all threads of a block or role know. On a GPU each lane of a warp holds one.
template <class T>
class FewContract {
 public:
  /// Returns the number of scalars.
  TANDEM_DEVICE int count() const;
  /// Returns scalar i.
  TANDEM_DEVICE T at(int i) const;
  /// Returns f(x) for every scalar.
  template <class F>
  TANDEM_DEVICE FewContract map(F f) const;
  /// Returns f(x, y) for every pair of scalars with the same index.
  template <class U, class F>
  TANDEM_DEVICE FewContract zip(const FewContract<U>& other, F f) const;
  /// Returns a word with bit i set if f(x) holds for scalar i.
  template <class F>
  TANDEM_DEVICE std::uint32_t mask(F f) const;
  /// Returns the bits that f(x), of 64 bits, has set for any scalar.
  template <class F>
  TANDEM_DEVICE std::uint64_t join(F f) const;
};

/// The operations of a thread block. Each backend defines a class with these members.
class BlockContract : public BlockOps<BlockContract> {
 public:
  /// The type of a fragment, for code that is written for any block.
  template <class T>
  using FragmentOf = FragmentContract<T>;
  /// Likewise of a few scalars.
  template <class T>
  using FewOf = FewContract<T>;

  // --- who and where ------------------------------------------------------------------------------------------------

  TANDEM_DEVICE int pe() const;       ///< this PE's number in the team
  TANDEM_DEVICE int num_pes() const;  ///< PEs of the team
  TANDEM_DEVICE int index() const;    ///< this block's number in the grid
  TANDEM_DEVICE int count() const;    ///< blocks of the grid
  /// The team of the launch. PE numbers of all operations are numbers within it.
  TANDEM_DEVICE const Team& team() const;
  /// Returns whether loads and stores reach PE `pe` (the same node). Put, get and signals reach every PE.
  TANDEM_DEVICE bool reachable(int pe) const;
  /// Whether the multimem operations exist here.
  TANDEM_DEVICE bool has_multicast() const;

  // --- memory -------------------------------------------------------------------------------------------------------

  /// Returns the steps of a loop over `range`. A step has as many elements of T as the block moves at once, which is
  /// the most that an operation on a fragment takes.
  template <class T>
  TANDEM_DEVICE Tiles tiles(Range range) const;
  /// Returns the address of PE `pe`'s copy, or null if it is not reachable (OpenSHMEM 1.5 `shmem_ptr`).
  template <class T>
  TANDEM_DEVICE T* remote(Symm<T> symm, int pe) const;
  /// Loads the elements `range` of a local or reachable array, converted to A. Relaxed.
  template <class A, class T>
  TANDEM_DEVICE FragmentContract<A> load(const T* from, Range range);
  /// Does the same with the layout of elements of U, for values that are stored or sent as U. Elements of U are not
  /// larger than those of T. The range is as large as a step of U at most.
  template <class U, class A, class T>
  TANDEM_DEVICE FragmentContract<A> load_as(const T* from, Range range);
  /// Loads an element of 1, 2, 4 or 8 bytes. Relaxed.
  template <class T>
  TANDEM_DEVICE T load_scalar(const T* from);
  /// Loads `count` such elements at once, at most 32.
  template <class T>
  TANDEM_DEVICE FewContract<T> load_few(const T* from, int count);
  /// Loads the elements `range` of every PE's copy and reduces them in PE order 0, 1, ... All loads are in flight at
  /// once. All PEs must be reachable.
  template <class A, class T>
  TANDEM_DEVICE FragmentContract<A> load_reduce(Symm<T> from, Range range, ReduceOp op);
  /// Stores to a local or reachable array, converted to T. Asynchronous: visible elsewhere after notify, fence or
  /// quiet. It is fastest if T has the size of the loaded elements.
  template <class T, class A>
  TANDEM_DEVICE void store(T* to, Range range, const FragmentContract<A>& values);
  /// Stores one element of 1, 2, 4 or 8 bytes, with the visibility of `store`.
  template <class T>
  TANDEM_DEVICE void store_scalar(T* to, T value);
  /// Copies `count` elements between local or reachable arrays that do not overlap.
  template <class T>
  TANDEM_DEVICE void copy(T* to, const std::type_identity_t<T>* from, Size count);
  /// Returns op(a, b), element by element; see reduce_op.h.
  template <class A>
  TANDEM_DEVICE FragmentContract<A> combine(ReduceOp op, const FragmentContract<A>& a,
                                            const FragmentContract<A>& b) const;
  /// Returns the sum over all elements, the same value for all threads. It contains a barrier of the block. T is an
  /// accumulator type (Accumulator). Integers wrap. The result is the same on every run. On a GPU the number of threads
  /// and the layout determine the order of float additions; in the simulator the elements' order does. The last bits
  /// may differ between the two.
  template <class T>
  TANDEM_DEVICE T sum(const FragmentContract<T>& values);
  /// Returns the greatest of all elements, none of which is negative; 0 if there are none. All threads get the same
  /// value. It contains a barrier of the block. A NaN is greater than any number. T is float.
  template <class T>
  TANDEM_DEVICE T greatest(const FragmentContract<T>& values);
  /// Returns for each element the greatest one of its group, as `greatest` does. Groups are `Group` consecutive
  /// elements from the fragment's first on; the last may be shorter. `Group` is a multiple of 16.
  template <int Group, class T>
  TANDEM_DEVICE FragmentContract<T> group_greatest(const FragmentContract<T>& values);
  /// Stores the first element of group i to `to[i]`, with the visibility of `store`.
  template <int Group, class T, class A>
  TANDEM_DEVICE void store_group_firsts(T* to, const FragmentContract<A>& values);
  /// Returns the first element of each group, with the layout of elements of 4 bytes, which T has. It contains a
  /// barrier of the block.
  template <int Group, class T>
  TANDEM_DEVICE FragmentContract<T> group_firsts(const FragmentContract<T>& values);
  /// Returns a fragment with the layout of `like`, in which each element of group i is `from[i]`.
  template <int Group, class T, class A>
  TANDEM_DEVICE FragmentContract<T> load_groups(const T* from, const FragmentContract<A>& like);
  /// Returns for each element the sum of all elements before it, 0 for the first. It contains a barrier of the block. T
  /// is an integer of 4 or 8 bytes, and sums wrap.
  template <class T>
  TANDEM_DEVICE FragmentContract<T> exclusive_sum(const FragmentContract<T>& values);
  /// Ranks elements by keys from 0 to `keys` - 1; elements with other values have none. There are at most as many keys
  /// as a step of a loop over std::int32_t has elements. It contains a barrier of the block. On a GPU, key_ranks,
  /// look_up and column_sums take shared memory: a block that calls them all has at most 512 threads with LL128 lines,
  /// else 256.
  TANDEM_DEVICE KeyRanks<FragmentContract<std::int32_t>> key_ranks(const FragmentContract<std::int32_t>& values,
                                                                   int keys);
  /// Returns element `at[i]` of a table for each element i of `at`, 0 if it is negative. Elements of the table have 4
  /// bytes. It contains a barrier of the block.
  template <class T>
  TANDEM_DEVICE FragmentContract<T> look_up(const FragmentContract<T>& table, const FragmentContract<std::int32_t>& at);
  /// Returns the sum of each column over some rows of `table`, which has `columns` columns. Sums wrap. It contains a
  /// barrier of the block.
  TANDEM_DEVICE FragmentContract<std::int32_t> column_sums(const std::int32_t* table, Range rows, Size columns);
  /// Returns `count` elements from element `first` on, at most 32. It contains a barrier of the block.
  template <class T>
  TANDEM_DEVICE FewContract<T> pick(const FragmentContract<T>& values, Size first, int count);
  /// Stores element i to `to[at[i]]`, with the visibility of `store`. It skips elements whose place is negative. The
  /// places of the others differ.
  template <class T, class A>
  TANDEM_DEVICE void store_at(T* to, const FragmentContract<std::int32_t>& at, const FragmentContract<A>& values);

  // --- put and get ---------------------------------------------------------------------------------------------------
  // OpenSHMEM 1.5 section 9.5

  /// Copies to PE `pe`'s copy of `to`. Returns when `from` may be reused. The data is visible there after fence or
  /// quiet and a signal.
  template <class T>
  TANDEM_DEVICE void put(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe);
  /// Does the same without waiting. `from` may be read at any time until quiet, and must not change before.
  template <class T>
  TANDEM_DEVICE void put_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, int pe);
  /// A put whose data is visible at `pe` before `word` (its copy there) changes (section 9.8.2). If several puts share
  /// a word, a wait by >= may see the value of a later one before the data of an earlier one. Give each slot of a
  /// buffer its own word, or put a `fence` between the puts.
  template <class T>
  TANDEM_DEVICE void put_signal(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word, Epoch value,
                                int pe, SignalOp op = SignalOp::kSet);
  /// put_signal without waiting: `from` must stay as it is until quiet.
  template <class T>
  TANDEM_DEVICE void put_signal_nbi(Symm<T> to, const std::type_identity_t<T>* from, Size count, Signals word,
                                    Epoch value, int pe, SignalOp op = SignalOp::kSet);
  /// Copies from PE `pe`'s copy. Returns when the data is here.
  template <class T>
  TANDEM_DEVICE void get(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe);
  /// Does the same without waiting. Until quiet, `to` and the source must not be written, and `to` must not be read. A
  /// backend may complete it at once.
  template <class T>
  TANDEM_DEVICE void get_nbi(T* to, std::type_identity_t<Symm<const T>> from, Size count, int pe);
  /// Orders this block's earlier puts, stores and signals before its later ones, for each destination separately. It
  /// does not order gets and loads (section 9.11.1).
  TANDEM_DEVICE void fence();
  /// Waits until all of this block's earlier puts, gets and stores are complete and visible (section 9.11.2).
  TANDEM_DEVICE void quiet();

  // --- signals -------------------------------------------------------------------------------------------------------
  // OpenSHMEM 1.5 sections 9.8 and 9.10

  // The additions of PEs of other nodes to a word need not be atomic with those of its own node. So a word to which
  // other nodes add is added to by them alone, or in an order.

  /// Changes PE `pe`'s word. Relaxed: it orders nothing.
  TANDEM_DEVICE void signal(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet);
  /// Changes PE `pe`'s word after all earlier operations of this block are visible to all: release at system scope. It
  /// contains a barrier of the block. Through a NIC it follows this block's puts to the same PE; puts to others need
  /// quiet.
  TANDEM_DEVICE void notify(Signals word, Epoch value, int pe, SignalOp op = SignalOp::kSet);
  /// Sets PE `pe`'s word after this block's earlier loads and packet reads whose values it has used. The memory that
  /// they read may then be written again. That also holds for the PE that wrote it, because a wait for its signal came
  /// before. It does not order stores, so unlike notify it does not wait for stores in flight.
  TANDEM_DEVICE void signal_after_reads(Signals word, Epoch value, int pe);
  /// Calls notify at every PE for slot [this block][this PE] of `words`, which has (blocks of the grid) x num_pes
  /// words.
  TANDEM_DEVICE void notify_all(Signals words, Epoch value);
  /// Waits until this PE's words [0, n) are all >= value. Acquire at system scope; it contains a barrier of the block.
  TANDEM_DEVICE Token wait(Signals words, Size n, Epoch value);
  /// The counterpart of notify_all: waits for this block's slot of every PE.
  TANDEM_DEVICE Token wait_all(Signals words, Epoch value);
  /// Waits until this PE's word compares true. Acquire at system scope, as `wait`.
  TANDEM_DEVICE void signal_wait_until(Signals word, Cmp cmp, Epoch value);
  /// Returns whether the comparison holds now; acquire if it does. A loop of tests is polling: prefer a wait.
  TANDEM_DEVICE bool signal_test(Signals word, Cmp cmp, Epoch value);
  /// Returns the pointer for reads after the wait that gave the token. It also orders reads by the tensor-memory engine
  /// (cross-proxy fence).
  template <class T>
  TANDEM_DEVICE T* consume_token(T* pointer, Token token) const;
  /// Takes the next `count` epochs of this block and returns the first of them, which is 1 in the first launch. Every
  /// block calls it once in a launch; its word holds the last epoch taken. Work before it that accesses no memory may
  /// overlap the previous launch (programmatic dependent launch).
  TANDEM_DEVICE Epoch next_epoch(Epochs epochs, Epoch count = 1);
  /// Barrier of the block's threads. It orders the block's own accesses to local memory.
  TANDEM_DEVICE void sync();

  // --- atomics -------------------------------------------------------------------------------------------------------
  // PTX ISA `atom`

  /// Atomics on one local or reachable integer of 4 or 8 bytes, by the block as one actor. They return the old value.
  /// All atomics and signals of a word have its whole size; partial overlaps have no order. `scope` is a lower bound:
  /// GPUs use Scope::kSystem for every atomic.
  template <class T>
  TANDEM_DEVICE T fetch_add(T* word, T value, Scope scope = Scope::kSystem, Order order = Order::kAcqRel);
  /// Replaces the word by `value`. Returns the old value.
  template <class T>
  TANDEM_DEVICE T exchange(T* word, T value, Scope scope = Scope::kSystem, Order order = Order::kAcqRel);
  /// Writes `value` if the word was `expected`. Otherwise the atomic is a load.
  template <class T>
  TANDEM_DEVICE T compare_swap(T* word, T expected, T value, Scope scope = Scope::kSystem,
                               Order order = Order::kAcqRel);

  // --- packets -------------------------------------------------------------------------------------------------------
  // Packets carry their own signal: NCCL's LL and LL128 protocols. They start at a multiple of 16 bytes. Their
  // fragments are fragments of T, as loaded from an array of elements of its size.

  /// Writes `count` elements as packets with flag `epoch` to PE `pe` (reachable). P is LLPacket (4 + 4 bytes) or
  /// LL128Line. A packet buffer may be written again once its reader has read it. An LLPacket holds the lower half of
  /// `epoch`, which must not be 0, the value of a packet that was never written.
  template <class P, class T>
  TANDEM_DEVICE void ll_put(Symm<P> to, const T* from, Size count, Epoch epoch, int pe);
  /// The same from registers, converted to T.
  template <class T, class P, class A>
  TANDEM_DEVICE void ll_put_fragment(Symm<P> to, const FragmentContract<A>& values, Epoch epoch, int pe);
  /// Calls ll_put_fragment for every PE but this one, the next one first.
  template <class T, class P, class A>
  TANDEM_DEVICE void ll_put_peers(Symm<P> to, const FragmentContract<A>& values, Epoch epoch);
  /// Waits for packets with `count` elements of T and flag `epoch`, and returns the elements. It needs no other wait.
  template <class A, class T, class P>
  TANDEM_DEVICE FragmentContract<A> ll_get(const P* from, Size count, Epoch epoch);
  /// Calls on_pe(p, fragment) for every PE in PE order. The fragment is `own` for this PE. For the others it has as
  /// many elements, from ll_get at `from + p * stride`.
  template <class T, class A, class P, class F>
  TANDEM_DEVICE void ll_get_all(const FragmentContract<A>& own, const P* from, Size stride, Epoch epoch,
                                const F& on_pe);
  /// Returns the sum over the elements of `parts` blocks of this PE, the same value to all of them. Each passes its own
  /// elements as number `part`. They meet in `packets`, kPartPackets for each part at a multiple of 128 bytes,
  /// independent of the kernel's Packet. It contains a barrier of the block. As with `sum`, the last bits may differ
  /// between a GPU and the simulator.
  template <class T>
  TANDEM_DEVICE float sum_of_parts(const FragmentContract<T>& values, LLPacket* packets, int part, int parts,
                                   Epoch epoch);
  /// The same for the greatest element, as `greatest` returns it.
  template <class T>
  TANDEM_DEVICE float greatest_of_parts(const FragmentContract<T>& values, LLPacket* packets, int part, int parts,
                                        Epoch epoch);
  /// Waits for packets and forwards them unopened to PE `pe` (reachable). They may have any type, independent of the
  /// kernel's Packet.
  template <class P>
  TANDEM_DEVICE void ll_forward(Symm<P> to, const P* from, Size packets, Epoch epoch, int pe);

  // --- multicast -----------------------------------------------------------------------------------------------------
  // PTX ISA `multimem`. They need has_multicast; a kernel that calls them without it ends with an error.

  /// Stores to every PE's copy through the switch.
  template <class T, class A>
  TANDEM_DEVICE void multimem_store(Symm<T> to, Range range, const FragmentContract<A>& values);
  /// Reduces every PE's copy in the switch. The order is the hardware's on a GPU, and PE order in the simulator.
  template <class A, class T>
  TANDEM_DEVICE FragmentContract<A> multimem_load_reduce(Symm<T> from, Range range, ReduceOp op);
  /// Reduces values into every PE's copy.
  template <class T, class A>
  TANDEM_DEVICE void multimem_reduce(Symm<T> to, Range range, const FragmentContract<A>& values, ReduceOp op);

  // --- roles ---------------------------------------------------------------------------------------------------------
  // Roles are warps of one block that run different code concurrently.

  /// Runs one function for each width (in warps) concurrently, each with a Block at its own scope, and joins. There are
  /// at most 15 functions, not nested, and their widths fit the block's warps. The call contains a barrier of the block
  /// before and after. Roles have all operations except these two.
  template <int... Widths, class... F>
  TANDEM_DEVICE void parallel(F&&... bodies);
  /// `n` roles (at most 15, together at most the block's warps) of `Width` warps: body(role, i).
  template <int Width, class F>
  TANDEM_DEVICE void parallel_for(int n, F&& body);
};

}  // namespace tandem
