#ifndef TANDEM_H
#define TANDEM_H
/** @file
 * The C API: worlds of processes on GPUs, and collectives on plain device pointers in a CUDA stream. The library is
 * libtandem_c.so. A PE (processing element) is one GPU with its process; other libraries call it a rank.
 *
 *   tandem_world* world;
 *   tandem_world_from_environment(&world, NULL);                      under torchrun, srun or tandem launch
 *   tandem_all_reduce(world, in, out, count, TANDEM_BF16, TANDEM_SUM, stream);
 *   tandem_synchronize(world, stream);
 *   tandem_world_destroy(world);
 *
 * Errors. Every function that can fail returns a tandem_status, and tandem_last_error() returns the text. The world's
 * next call, tandem_synchronize() or tandem_world_error() reports a failure on the GPU, such as a timeout. A program
 * that synchronizes by other means calls tandem_world_error() before it relies on results. A handle that is NULL or
 * destroyed gives TANDEM_INVALID_ARGUMENT, but NULL may be destroyed. A function that fails sets its new handle to
 * NULL.
 *
 * Threads. One thread at a time uses a handle. tandem_world_abort() and tandem_world_error() may be called from any
 * thread at any time.
 *
 * GPU. Pointers are device addresses of the GPU that was current when the world was made. Every call uses that GPU and
 * its `stream`, and leaves the caller's current GPU as it was.
 *
 * Calls. Sizes are in elements and mean what NCCL's calls mean; tandem/collectives.h has the table. A call enqueues its
 * work in `stream` (a cudaStream_t; NULL is the default stream of that GPU) and returns at once. All PEs make the same
 * calls in the same order. Every PE passes both pointers, also where it has no elements (`in` of broadcast and `out` of
 * reduce on PEs other than the root). Output may be input where NCCL allows it.
 *
 * Streams and graphs. Calls in several streams run one after the other, and so do calls that are captured into one
 * graph, in any of its branches. Nothing orders a captured call with work outside its graph: the caller keeps replays
 * apart from other calls and from other graphs. The first call of a kind (collective, type, operation, size class)
 * meets the other processes and allocates, so make it once before you capture it. A stream may be destroyed or captured
 * once its calls have returned; if all plain calls of the world used that one stream, call tandem_synchronize() first.
 *
 * Several worlds. Calls that wait for peers occupy SMs meanwhile. If collectives and messages of several worlds do not
 * fit on a GPU side by side, a call waits in stream order for those before it. All PEs make them in the same order, as
 * NCCL asks for several communicators. Calls in graphs, calls of plans and NCCL's are not counted. They can each wait
 * for SMs that another one holds, until the timeout, so the caller orders them by one stream or by events.
 *
 * Buffers. Any memory of the GPU may be a buffer. A buffer that no peer accesses is used in place: the input of
 * algorithms that do not pull, and the output of small calls. A buffer that peers access must lie alike on all PEs:
 * at the same place of the same tandem_alloc() or tandem_register(), or outside such memory on all of them. In the
 * second case the call copies it through staging memory in stream order, and large calls in chunks of `staging_bytes`.
 * If PEs differ in this, or make different calls, every PE gets TANDEM_INVALID_ARGUMENT at once. The text names what
 * two of them passed, and the world is over. tandem_options.any_memory lifts the rule.
 *
 * Memory. A world starts with heap_bytes, twice staging_bytes and 340 MiB on each GPU; its heap grows as it fills. The
 * first call of a kind (which also depends on the root and on the buffers that peers reach) takes a part of the heap
 * for all calls of that kind: at most 64 MiB. Reductions with partial results take up to twice the larger buffer, or
 * twice staging_bytes if they run in chunks; on most machines these are the large ones. Size classes are 64 KiB times
 * powers of four up to 256 MiB; above, a class is at most an eighth larger than the call.
 * Above 256 MiB a larger call first returns the memory of smaller calls of its kind. A call that finds no room returns
 * the memory of all other kinds, which allocate again when they are called. Both block until `stream` is empty, spare
 * memory that was ever captured, and never happen during a capture. Returned memory, like that of tandem_free(), stays
 * with the heap until the world ends. If a call finds no room even then, all PEs get TANDEM_OUT_OF_MEMORY and the world
 * continues. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The size of a unique id in bytes. */
#define TANDEM_UNIQUE_ID_BYTES 128

/* A fixed underlying type, so that a wrong number in an enumeration is defined behaviour in C++ as in C. */
#ifdef __cplusplus
#define TANDEM_INT : int
#else
#define TANDEM_INT
#endif

/** The result of a call. tandem_last_error() has the text of an error. */
typedef enum TANDEM_INT {
  TANDEM_SUCCESS = 0,
  TANDEM_INVALID_ARGUMENT = 1, /**< the text names the argument, its value and the values allowed */
  TANDEM_UNSUPPORTED = 2,      /**< this machine or build cannot do it */
  TANDEM_OUT_OF_MEMORY = 3,
  TANDEM_TIMEOUT = 4, /**< a PE did not arrive or a wait timed out; the world is over */
  TANDEM_FAILED = 5   /**< a PE has ended or a GPU failed; the world is over */
} tandem_status;

/** The devices of a world. */
typedef enum TANDEM_INT {
  TANDEM_ANY_DEVICE = 0,
  TANDEM_GPU = 1,
  TANDEM_HOST = 2 /**< the CPUs of this computer */
} tandem_device;

/** Element types. 0 is no type, so that a forgotten field is detected. */
typedef enum TANDEM_INT {
  TANDEM_F32 = 1,
  TANDEM_F16 = 2,
  TANDEM_BF16 = 3,
  TANDEM_E4M3 = 4,
  TANDEM_E5M2 = 5,
  TANDEM_I8 = 6,
  TANDEM_U8 = 7,
  TANDEM_I32 = 8,
  TANDEM_U32 = 9,
  TANDEM_I64 = 10,
  TANDEM_U64 = 11,
  TANDEM_F64 = 12
} tandem_dtype;

/** Reductions, as NCCL's ncclRedOp_t. */
typedef enum TANDEM_INT { TANDEM_SUM = 0, TANDEM_PROD = 1, TANDEM_MIN = 2, TANDEM_MAX = 3, TANDEM_AVG = 4 } tandem_op;

/** A world: all PEs of a job, and this PE's place among them. */
typedef struct tandem_world tandem_world;

/** Options of a world, the same on all PEs. A zero field has its default; a NULL pointer means all defaults. */
typedef struct {
  size_t heap_bytes;        /**< initial heap for tandem_alloc() and plans; default 256 MiB */
  size_t staging_bytes;     /**< staging for buffers outside the heap; default 64 MiB */
  double timeout_s;         /**< seconds until a wait fails while every PE waits on its GPU; default 30 */
  double arrival_timeout_s; /**< seconds until a wait fails while some PE is in no wait, because it computes or has not
                                 called yet; default 600 */
  double join_timeout_s;    /**< seconds to wait for the other processes when the world is made; default 600 */
  size_t heap_limit_bytes;  /**< limit of the heap, which grows in steps of its initial size at fixed addresses. The
                                 default is 128 GiB, or 32 TiB for all PEs together. The memory of the GPU limits it
                                 further. A value of at most heap_bytes disables growth */
  int any_memory;           /**< 0 or 1. With 1 a call copies every buffer that peers access, also memory of
                                 tandem_alloc() and tandem_register(), so that PEs may pass different places */
  int max_blocks;         /**< most blocks of a call's kernel, each on at most one SM (NCCL's maxCTAs): 1 to the number
                               of SMs. The default depends on the size, up to 128. Messages use at least one block for
                               each PE, up to 64. Does not apply to tandem_plan */
  const char* algorithms; /**< algorithms by collective (NCCL_ALGO), such as "all_reduce=ring, broadcast=chain".
                               Collectives that are not named use the selection table. The text is read during the
                               call. `tandem list` prints the names. A collective whose algorithm this world cannot
                               run gives TANDEM_UNSUPPORTED when it is called. Some algorithms need more memory than
                               the figures above */
  tandem_device device;   /**< 0: as TANDEM_DEVICE in the environment says, "gpu" or "host"; without it GPUs where
                             the library and the machine have some, else CPUs. The same on all PEs */
} tandem_options;

/** Returns the version of the library, such as "0.1.0". Before 1.0 these declarations may change with the second
 * number; programs are then compiled again. The name of the library holds both numbers (libtandem_c.so.0.1). */
const char* tandem_version(void);

/** Returns the text of the last error on this thread, one line. It is valid until the thread's next call. */
const char* tandem_last_error(void);

/** Opens a rendezvous in this process and writes its id, TANDEM_UNIQUE_ID_BYTES bytes, to `id`. The program passes the
 * id to all processes by a private means, because it holds a secret. `address` is this host's address as the other
 * processes reach it; NULL means 127.0.0.1. */
tandem_status tandem_unique_id_create(void* id, const char* address);

/** Joins a world, on GPUs with the current GPU, and returns once all PEs have joined. On CPUs `stream` is NULL
 * everywhere, and memory may lie anywhere. */
tandem_status tandem_world_create(tandem_world** world, const void* id, int pe, int pes, const tandem_options* options);
/** The same with the id and the numbers from the environment of torchrun, srun or tandem launch
 * (docs/reference/worlds.md). */
tandem_status tandem_world_from_environment(tandem_world** world, const tandem_options* options);
/** Waits for the GPU and for the other PEs, unless the world is over, and destroys the world. All its plans must be
 * destroyed before; otherwise the call gives TANDEM_INVALID_ARGUMENT and the world remains. NULL is allowed. */
tandem_status tandem_world_destroy(tandem_world* world);

/** Makes a separate world with its own heap for the PEs that pass the same `color`. They are numbered by `key`, and by
 * their number in `world` where keys are equal. A PE with a negative color gets no world (*part is NULL). All PEs of
 * `world` call it, and `world` remains usable.
 *
 *   tandem_world_split(&pair, world, tandem_pe(world) / 2, 0, NULL);     the PEs 2i and 2i + 1 */
tandem_status tandem_world_split(tandem_world** part, tandem_world* world, int color, int key,
                                 const tandem_options* options);

/** Ends the world on all PEs. Waiting kernels end, and blocked calls return TANDEM_FAILED with the text `why`. Any
 * thread may call it, also while another thread is blocked in a call such as tandem_world_destroy(). The world must
 * still be destroyed.
 *
 *   tandem_world_abort(world, "rank 3 does not answer"); */
tandem_status tandem_world_abort(tandem_world* world, const char* why);
/** Returns the reason why the world is over, or TANDEM_SUCCESS while it works. Any thread may call it; never blocks.
 *
 *   if (tandem_world_error(world) != TANDEM_SUCCESS) puts(tandem_last_error()); */
tandem_status tandem_world_error(tandem_world* world);

/** Returns the device kind of the world: TANDEM_GPU or TANDEM_HOST; TANDEM_ANY_DEVICE if `world` is no world. */
tandem_device tandem_device_of(const tandem_world* world);

/** Returns the number of this PE, or -1 if `world` is no world. */
int tandem_pe(const tandem_world* world);
/** Returns the number of PEs, or 0 if `world` is no world. */
int tandem_num_pes(const tandem_world* world);

/** Allocates `bytes` bytes at the same place of every PE's heap. All PEs call it with the same size. The memory lives
 * until tandem_free() or the end of the world. */
tandem_status tandem_alloc(tandem_world* world, size_t bytes, void** pointer);
/** Frees the allocation. All PEs call it; no pending work and no captured graph may still use the memory. */
tandem_status tandem_free(tandem_world* world, void* pointer);

/** Registers memory of the caller, so that calls use it in place. All PEs call it with the same size, at the same place
 * of allocations of the same sizes. The allocator must use CUDA virtual memory management with exportable handles, as
 * PyTorch's expandable segments do. On CPUs the memory lies in a memory file (memfd_create with MFD_ALLOW_SEALING) that
 * is mapped as a whole and shared, and whose descriptor is open; it is sealed against shrinking. If one PE's memory is
 * of another kind, all PEs get TANDEM_UNSUPPORTED. */
tandem_status tandem_register(tandem_world* world, void* pointer, size_t bytes);
/** Ends a registration. All PEs call it; no kernel may still use the memory. */
tandem_status tandem_unregister(tandem_world* world, void* pointer);

/** Writes the address of PE `pe`'s copy of symmetric memory to `*peer`. `pointer` lies in memory of tandem_alloc() or
 * tandem_register(). Loads and stores of any thread (on GPUs: of kernels) may use the address. */
tandem_status tandem_peer_pointer(tandem_world* world, const void* pointer, int pe, void** peer);
/** Copies `bytes` bytes from `from` to PE `pe`'s copy of the symmetric memory `to`. Only this PE calls it. */
tandem_status tandem_put(tandem_world* world, void* to, const void* from, size_t bytes, int pe, void* stream);
/** Writes `value` to PE `pe`'s copy of a signal word, after all earlier work in `stream` is visible there. A signal
 * word is 8 bytes of symmetric memory, set to zero by the program. Its value only grows. */
tandem_status tandem_write_signal(tandem_world* world, uint64_t* word, uint64_t value, int pe, void* stream);
/** Lets `stream` continue when this PE's copy of the signal word is at least `value`. */
tandem_status tandem_wait_signal(tandem_world* world, const uint64_t* word, uint64_t value, void* stream);

/** Reduces `count` elements of all PEs; every PE gets the result.
 * In place if out == in. */
tandem_status tandem_all_reduce(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                tandem_op op, void* stream);
/** Reduces `count` elements of all PEs; PE `root` gets the result.
 * In place if out == in. */
tandem_status tandem_reduce(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                            tandem_op op, int root, void* stream);
/** Reduces n * count elements of all PEs; PE i gets the i-th part of `count` elements.
 * In place if out == in + pe * count. */
tandem_status tandem_reduce_scatter(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                    tandem_op op, void* stream);
/** Gathers `count` elements of each PE; every PE gets all n * count elements in PE order.
 * In place if in == out + pe * count. */
tandem_status tandem_all_gather(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                void* stream);
/** Sends the i-th part of `in` (`count` elements) to PE i; `out` has the parts in PE order. Never in place. */
tandem_status tandem_all_to_all(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                void* stream);
/** Copies `count` elements of PE `root` to all PEs. In place if out == in. */
tandem_status tandem_broadcast(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                               int root, void* stream);

/** At the root, `out` of gather and `in` of scatter hold n * count elements. */
tandem_status tandem_gather(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type, int root,
                            void* stream);
/** Sends the i-th part of the root's `in` (`count` elements) to PE i. */
tandem_status tandem_scatter(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type, int root,
                             void* stream);

/** The form of values on their way between PEs: codes of 8 bits with an f32 scale for each 128 elements. It loses
 * precision; docs/reference/quantised.md has the bounds of the error. */
typedef enum TANDEM_INT { TANDEM_WIRE_FP8 = 1, TANDEM_WIRE_INT8 = 2 } tandem_wire;
/** Sums `count` elements of all PEs as tandem_all_reduce() does, with codes of 8 bits between PEs. `type` is
 * TANDEM_F32, TANDEM_F16 or TANDEM_BF16. All PEs are in one node. tandem_options.algorithms does not apply. */
tandem_status tandem_all_reduce_quantised(tandem_world* world, const void* in, void* out, size_t count,
                                          tandem_dtype type, tandem_wire wire, void* stream);
/** Sums as tandem_reduce_scatter() does; see tandem_all_reduce_quantised(). */
tandem_status tandem_reduce_scatter_quantised(tandem_world* world, const void* in, void* out, size_t count,
                                              tandem_dtype type, tandem_wire wire, void* stream);
/** Gathers as tandem_all_gather() does; see tandem_all_reduce_quantised(). */
tandem_status tandem_all_gather_quantised(tandem_world* world, const void* in, void* out, size_t count,
                                          tandem_dtype type, tandem_wire wire, void* stream);

/** A message between two PEs; its data may lie anywhere on the GPU. Only the two PEs call, and their messages match in
 * the order of the calls. Both sides pass the same size. If sizes differ, the receiver gets the bytes that fit, and
 * tandem_synchronize() reports the mismatch from then on. One call of tandem_send_recv() progresses all of its messages
 * at once, at most 512 in any order, like a group of NCCL.
 *
 *   tandem_message to = {out, count, TANDEM_BF16, (pe + 1) % n}, from = {in, count, TANDEM_BF16, (pe + n - 1) % n};
 *   tandem_send_recv(world, &to, 1, &from, 1, stream); */
typedef struct {
  void* data;        /**< a send only reads it */
  size_t count;      /**< elements */
  tandem_dtype type; /**< element type */
  int peer;          /**< the other PE */
} tandem_message;

/** Sends one message to PE `peer`; see tandem_message. */
tandem_status tandem_send(tandem_world* world, const void* data, size_t count, tandem_dtype type, int peer,
                          void* stream);
/** Receives one message from PE `peer`; see tandem_message. */
tandem_status tandem_recv(tandem_world* world, void* data, size_t count, tandem_dtype type, int peer, void* stream);
/** Sends and receives all messages at once; see tandem_message. */
tandem_status tandem_send_recv(tandem_world* world, const tandem_message* sends, size_t num_sends,
                               const tandem_message* receives, size_t num_receives, void* stream);

/** Collectives with parts of different sizes, made of such messages. Counts and offsets are in elements, one of each
 * for every PE (at most 256 PEs), and are read during the call. all_gather_v: all PEs pass the same counts; PE i
 * provides counts[i] elements, which arrive at offsets[i] of every `out`. It is in place if `in` lies there.
 * all_to_all_v: in_counts[i] elements at in_offsets[i] go to PE i, which must expect as many from this PE.
 *
 *   tandem_all_gather_v(world, rows, all, counts, offsets, TANDEM_BF16, stream); */
tandem_status tandem_all_gather_v(tandem_world* world, const void* in, void* out, const size_t* counts,
                                  const size_t* offsets, tandem_dtype type, void* stream);
/** The all-to-all with parts of different sizes; see tandem_all_gather_v(). */
tandem_status tandem_all_to_all_v(tandem_world* world, const void* in, const size_t* in_counts,
                                  const size_t* in_offsets, void* out, const size_t* out_counts,
                                  const size_t* out_offsets, tandem_dtype type, void* stream);

/** Overlapped GEMMs. tandem/operators.h defines their results and layouts. A plan serves problems of up to `m` rows;
 * each run has its own number of rows and may be captured. The tuner's cache (TANDEM_OPERATOR_CACHE) chooses the
 * strategy, and otherwise the choice that was measured best on GPUs. A plan takes heap memory
 * (tandem_options.heap_bytes): m x k elements for gathered rows, or a few times m x n for partial sums. Overlapped
 * strategies within a node take twice as much, because two calls alternate between two buffers. Plans can share it
 * (tandem_problem.shares_memory). */
typedef enum TANDEM_INT {
  TANDEM_ALL_GATHER_GEMM = 0,
  TANDEM_GEMM_REDUCE_SCATTER = 1,
  TANDEM_GEMM_ALL_REDUCE = 2
} tandem_operator;

/** The layout of B: n x k as the weights of PyTorch's Linear, or k x n. fp8 needs n x k. */
typedef enum TANDEM_INT { TANDEM_N_X_K = 0, TANDEM_K_X_N = 1 } tandem_layout;
/** Activations as in torch.nn.functional, applied to the complete sum with its bias before rounding. */
typedef enum TANDEM_INT {
  TANDEM_NO_ACTIVATION = 0,
  TANDEM_RELU = 1,
  TANDEM_GELU = 2, /**< with erf */
  TANDEM_SILU = 3,
  TANDEM_SWIGLU = 4, /**< all_gather_gemm: silu(gate) * up, of pairs that tandem_interleave_gates() lays out */
  TANDEM_GEGLU = 5   /**< all_gather_gemm: gelu(gate) * up */
} tandem_activation;

/** The norm of a row. tandem/layer/all_reduce_norm.h defines the norms and the scales. */
typedef enum TANDEM_INT { TANDEM_NO_NORM = 0, TANDEM_RMS_NORM = 1, TANDEM_LAYER_NORM = 2 } tandem_norm;
/** The scale of an fp8_e4m3 output: none for an output of the input's type, a given one, one for each row, or one for
 * each 128 elements of a row. */
typedef enum TANDEM_INT {
  TANDEM_NOT_QUANTISED = 0,
  TANDEM_STATIC_SCALE = 1,
  TANDEM_SCALE_PER_ROW = 2,
  TANDEM_SCALE_PER_128 = 3
} tandem_quantisation;

/** The global problem over all PEs. A zero means the default for every field after `type`. */
typedef struct {
  size_t m;                     /**< the largest number of rows of a run */
  size_t n;                     /**< columns of C */
  size_t k;                     /**< depth of the product */
  tandem_dtype type;            /**< type of A and B: TANDEM_BF16, TANDEM_F16 or TANDEM_E4M3 */
  const size_t* ns;             /**< all_gather_gemm: columns of each of `num_b` weights, whose sum is n; NULL: one B */
  size_t num_b;                 /**< number of entries of `ns` */
  tandem_dtype out_type;        /**< type of C; 0: the type of A, and TANDEM_BF16 for fp8. Only fp8 allows another one:
                                     TANDEM_BF16, TANDEM_F16, and for all_gather_gemm TANDEM_E4M3 */
  tandem_layout b_layout;       /**< layout of each B */
  tandem_activation activation; /**< applied to the complete sum */
  int a_scale_per_row;    /**< fp8, 0 or 1: tandem_run.a_scale holds a scale for each of this PE's rows, else one */
  int b_scale_per_column; /**< fp8, 0 or 1: each b_scale holds a scale for each column of C, else one */
  /** gemm_reduce_scatter and gemm_all_reduce: the norm of each row of the sums, after the residual is added.
   * all_gather_gemm: the norm of each of this PE's rows of A, after the residual is added, before the gather. With
   * TANDEM_E4M3, A has the type of C. The norm is quantised with a scale for each row (a_scale_per_row) or each 128
   * elements (block_scales), or with `scale`. tandem_run.a_scale is then NULL */
  tandem_norm norm;
  double epsilon;                   /**< added to the mean of squares; 0: 1e-6 */
  int residual;                     /**< 0 or 1: a residual is added to the sums */
  int norm_bias;                    /**< 0 or 1: a bias is added to each normed row */
  int sum;                          /**< 0 or 1: the sums with the residual are an output, too */
  tandem_quantisation quantisation; /**< the form of C behind the norm; all_gather_gemm: none */
  double scale;                     /**< of TANDEM_STATIC_SCALE, or of a quantised A; positive */
  /** 0 or 1: memory for data in flight is shared with the world's other plans that have 1 here. Together they take
   * little more than the largest of them (tandem/advanced/transport_memory.h). Their runs follow each other, as all
   * calls of a world do. Graphs that contain them are therefore replayed one after the other. */
  int shares_memory;
  /** fp8, 0 or 1: tandem_run.a_scale holds a scale for each 128 elements of this PE's A along its depth, and each
   * b_scale one for each 128x128 block of this PE's B (OperatorOptions::block_scales in tandem/operators.h) */
  int block_scales;
  /** fp8, 0 or 1: GPUs may add products faster with less precise sums, but not with block_scales
   * (OperatorOptions::fast_accumulation) */
  int fast_accumulation;
} tandem_problem;

/** The arguments of one run: this PE's matrices, anywhere in its GPU's memory, at multiples of 16 bytes. Each list has
 * one entry for each B of the problem. */
typedef struct {
  size_t m;             /**< rows of the global problem in this run */
  const void* a;        /**< this PE's A */
  const void* const* b; /**< this PE's B, one for each */
  void* const* c;       /**< this PE's C, one for each B */
  /** NULL, or for each B the bias of this PE's columns of C, of C's type (fp8: bf16). gemm_reduce_scatter and
   * gemm_all_reduce: all PEs pass it, and PE 0's is added once. */
  const void* const* bias;
  const float* a_scale;        /**< fp8: scales of A; NULL: 1 */
  const float* const* b_scale; /**< fp8: scales of each B; NULL: 1 */
  const float* const* c_scale; /**< fp8 output: the factor of each C before rounding; NULL: 1 */
  /** all_gather_gemm: NULL, or m x k elements that receive the gathered A, behind its norm. An A that the norm
   * quantises by rows or groups arrives without its scales. */
  void* gathered;
  /* NULL for those that the problem does not have. Matrices have the rows and columns of C. For all_gather_gemm they
   * have those of A, and vectors k elements. */
  const void* residual;    /**< of C's type before quantisation; gemm_all_reduce: the same values on all PEs */
  const void* norm_weight; /**< n elements, with a norm */
  const void* norm_bias;   /**< n elements */
  void* sum;               /**< the sums with the residual; it may be the residual */
  float* scales;           /**< of a quantised C: one for each row, or for each 128 elements of it */
} tandem_run;

/** An overlapped operator that is ready to run. */
typedef struct tandem_plan tandem_plan;

/** Makes a plan. All PEs call it with the same problem. */
tandem_status tandem_plan_create(tandem_plan** plan, tandem_world* world, tandem_operator op,
                                 const tandem_problem* problem);
/** Enqueues one run in `stream`; all PEs call it. It allocates no device memory and never blocks. The first run in a
 * stream prepares its GEMMs, also during a capture. */
tandem_status tandem_plan_run_with(tandem_plan* plan, const tandem_run* run, void* stream);
/** Enqueues one run without bias and scales. */
tandem_status tandem_plan_run(tandem_plan* plan, size_t m, const void* a, const void* const* b, void* const* c,
                              void* stream);
/** Lays out the weights of TANDEM_SWIGLU or TANDEM_GEGLU in host memory: gates 0 to 7, ups 0 to 7, gates 8 to 15, and
 * so on. `gates` and `ups` have `count` elements of `bytes` each, a multiple of 8, and `to` has twice as many. With B
 * as n x k, an element is a row of B. With k x n, one call lays out one row. The problem's n counts gates and ups, a
 * multiple of 16 for each PE, and C has half as many columns. */
tandem_status tandem_interleave_gates(const void* gates, const void* ups, size_t count, size_t bytes, void* to);
/** Destroys the plan without waiting. No pending run and no graph may still use it. Its heap memory is reused once all
 * processes have destroyed their plans. NULL is allowed. */
tandem_status tandem_plan_destroy(tandem_plan* plan);

/** All-reduce with bias, residual, norm and fp8 quantisation in one call. tandem/layer/all_reduce_norm.h defines the
 * results.
 *
 *   tandem_norm_problem problem = {.hidden = 8192, .max_rows = 64, .type = TANDEM_BF16, .norm = TANDEM_RMS_NORM,
 *                                  .residual = 1, .sum = 1};
 *   tandem_norm_plan_create(&plan, world, &problem);
 *   tandem_norm_run run = {.rows = 16, .in = in, .residual = residual, .weight = weight, .out = out, .sum = sum};
 *   tandem_norm_plan_run(plan, &run, stream);
 *
 * The problem is the same on all PEs. A zero means the default, or no, for every field after `type`. */
typedef struct {
  size_t hidden;                    /**< elements of a row */
  size_t max_rows;                  /**< the largest number of rows of a run */
  tandem_dtype type;                /**< TANDEM_F32, TANDEM_F16 or TANDEM_BF16 */
  tandem_norm norm;                 /**< the norm of each row */
  double epsilon;                   /**< added to the mean of squares; 0: 1e-6 */
  int residual;                     /**< 0 or 1: a residual is added */
  int bias;                         /**< 0 or 1: a bias is added to each row of sums */
  int norm_bias;                    /**< 0 or 1: a bias is added to each normed row */
  int sum;                          /**< 0 or 1: the sums are an output, too */
  int sharded_residual;             /**< 0 or 1: residual and sum hold only the rows of their owner */
  tandem_quantisation quantisation; /**< the form of the output */
  double scale;                     /**< of TANDEM_STATIC_SCALE, positive */
  int any_memory;                   /**< 0 or 1: the buffers of a run lie anywhere. A plan for many rows then takes
                                         heap memory and copies them in stream order */
} tandem_norm_problem;

/** The arguments of one run, NULL for those that the problem does not have. Without any_memory, a plan for many rows or
 * with a sharded residual needs `in`, `out`, `sum` and `scales` in memory of tandem_alloc() or tandem_register(), at
 * the same place on all PEs. */
typedef struct {
  size_t rows;           /**< rows of this run */
  const void* in;        /**< rows x hidden: this PE's partial sums */
  const void* residual;  /**< rows x hidden, or the own rows */
  const void* weight;    /**< hidden, with a norm */
  const void* bias;      /**< hidden */
  const void* norm_bias; /**< hidden */
  void* out;             /**< rows x hidden, of the type or fp8_e4m3 */
  void* sum;             /**< rows x hidden, or the own rows */
  float* scales;         /**< rows, or rows x ceil(hidden / 128) */
} tandem_norm_run;

/** An all_reduce_norm that is ready to run. */
typedef struct tandem_norm_plan tandem_norm_plan;

/** Makes a plan. All PEs call it with the same problem. */
tandem_status tandem_norm_plan_create(tandem_norm_plan** plan, tandem_world* world, const tandem_norm_problem* problem);
/** Enqueues one run in `stream`; all PEs call it with the same number of rows. It allocates nothing, never blocks, and
 * may be captured. */
tandem_status tandem_norm_plan_run(tandem_norm_plan* plan, const tandem_norm_run* run, void* stream);
/** Destroys the plan, as tandem_plan_destroy() does. NULL is allowed. */
tandem_status tandem_norm_plan_destroy(tandem_norm_plan* plan);

/** The merge of partial attention outputs: every PE has attended to its part of the keys, for all heads.
 * tandem/layer/merge_heads.h defines the results. A zero means the default, or no, for every field after `type`. */
typedef struct {
  size_t max_batch;  /**< the largest batch of a run */
  size_t heads;      /**< heads in all */
  size_t head_size;  /**< elements of a head */
  tandem_dtype type; /**< TANDEM_F32, TANDEM_F16 or TANDEM_BF16 */
  int base_two;      /**< 0 or 1: the log-sum-exps have the base 2 instead of e */
  int all_heads;     /**< 0 or 1: every PE gets all heads instead of its own */
} tandem_heads_problem;

/** The arguments of one run, anywhere in this PE's memory. With all heads `out` may be `partial`. With own heads of a
 * batch of 1 it may be their place in `partial`. */
typedef struct {
  size_t batch;        /**< batch of this run */
  const void* partial; /**< batch x heads x head_size: this PE's partial outputs */
  const float* lse;    /**< batch x heads: their log-sum-exps */
  void* out;           /**< batch x own heads (or heads) x head_size */
} tandem_heads_run;

/** A merge_heads that is ready to run. */
typedef struct tandem_heads_plan tandem_heads_plan;

/** Makes a plan. All PEs call it with the same problem. */
tandem_status tandem_heads_plan_create(tandem_heads_plan** plan, tandem_world* world,
                                       const tandem_heads_problem* problem);
/** Enqueues one run in `stream`; all PEs call it with the same batch. It allocates nothing, never blocks, and may be
 * captured. */
tandem_status tandem_heads_plan_run(tandem_heads_plan* plan, const tandem_heads_run* run, void* stream);
/** Destroys the plan, as tandem_plan_destroy() does. NULL is allowed. */
tandem_status tandem_heads_plan_destroy(tandem_heads_plan* plan);

/** The exchange of parts of sequences for parts of heads (Ulysses), of up to 8 tensors in one call.
 * tandem/layer/exchange_heads.h defines the layouts. */
typedef struct {
  size_t max_rows;        /**< the most rows of a PE in a run */
  const size_t* segments; /**< elements of a segment of each tensor: heads of a PE times head size */
  size_t num_tensors;     /**< number of entries of `segments` */
  tandem_dtype type;      /**< element type of all tensors */
  int to_rows;            /**< 0: [rows][n][segment] to [n][rows][segment], before the attention; 1: back */
} tandem_exchange_problem;

/** The arguments of one run. The lists have one entry for each tensor. */
typedef struct {
  size_t rows;           /**< rows of each PE */
  const void* const* in; /**< anywhere in this PE's memory */
  void* const* out;      /**< memory of tandem_alloc() or tandem_register(), at the same place on all PEs */
} tandem_exchange_run;

/** An exchange_heads that is ready to run. */
typedef struct tandem_exchange_plan tandem_exchange_plan;

/** Makes a plan. All PEs call it with the same problem. */
tandem_status tandem_exchange_plan_create(tandem_exchange_plan** plan, tandem_world* world,
                                          const tandem_exchange_problem* problem);
/** Enqueues one run in `stream`; all PEs call it with the same rows. It allocates no device memory, never blocks, and
 * may be captured. */
tandem_status tandem_exchange_plan_run(tandem_exchange_plan* plan, const tandem_exchange_run* run, void* stream);
/** Destroys the plan, as tandem_plan_destroy() does. NULL is allowed. */
tandem_status tandem_exchange_plan_destroy(tandem_exchange_plan* plan);

/** Layers with experts: routing of tokens, dispatch of rows to experts, combination of results.
 * tandem/layer/experts.h defines the results.
 *
 *   tandem_experts_problem problem = {.max_tokens = 128, .hidden = 7168, .experts = 256, .top_k = 8,
 *                                     .type = TANDEM_BF16};
 *   tandem_experts_create(&experts, world, &problem);
 *   tandem_experts_route(experts, &route, stream);
 *   tandem_experts_dispatch(experts, &dispatch, stream);
 *   tandem_experts_combine(experts, &combine, stream); */
typedef enum TANDEM_INT {
  TANDEM_ROWS_SORTED = 0,    /**< by expert, behind one another */
  TANDEM_ROWS_BY_EXPERT = 1, /**< experts of this PE x most_rows */
  TANDEM_ROWS_IN_PLACE = 2   /**< PEs x max_tokens */
} tandem_expert_layout;
/** The way of rows between PEs; zero: chosen by bytes. */
typedef enum TANDEM_INT {
  TANDEM_EXPERTS_BY_RULE = 0,
  TANDEM_EXPERTS_BY_PACKETS = 1,
  TANDEM_EXPERTS_BY_CHUNKS = 2,
  TANDEM_EXPERTS_BY_FUSED = 3 /**< packets, and tandem_experts_route_and_dispatch is one kernel */
} tandem_expert_transport;

/** The form of rows to experts: in the type, quantised by the dispatch, or given in fp8_e4m3. */
typedef enum TANDEM_INT { TANDEM_WIRE_TYPE = 0, TANDEM_WIRE_QUANTISED = 1, TANDEM_WIRE_GIVEN = 2 } tandem_expert_wire;

/** The calls of a plan, the same on all PEs. A zero means the default for every field after `type`. */
typedef struct {
  size_t max_tokens;           /**< the most tokens of a PE */
  size_t hidden;               /**< elements of a row */
  int experts;                 /**< of all PEs, a multiple of the PEs over tp_size */
  int top_k;                   /**< choices of a token, 1 to 16 */
  tandem_dtype type;           /**< TANDEM_BF16 or TANDEM_F16 */
  tandem_expert_wire wire;     /**< the form of rows to experts */
  tandem_expert_layout layout; /**< of dispatched rows */
  size_t align;                /**< of sorted experts' first rows; 0: 1 */
  size_t most_rows;            /**< of an expert in TANDEM_ROWS_BY_EXPERT; 0: max_tokens of every PE */
  int scales_by_group;         /**< 1: out_scales is ceil(hidden / 128) x dispatched_rows padded to a multiple of 4 */
  tandem_expert_transport transport; /**< between PEs */
  int batches;                       /**< in flight between halves of calls, at most 8; 0: no halves */
  int tp_size;                       /**< PEs that share the columns of each expert, a divisor of the PEs; 0: 1 */
} tandem_experts_problem;

/** The sizes of a plan's buffers. A routing holds int32 arrays at these bytes. */
typedef struct {
  size_t routing_bytes;   /**< of a routing, which begins at a multiple of 16 */
  size_t rows;            /**< the most rows of the experts here */
  size_t dispatched_rows; /**< the most rows of the output of a dispatch */
  size_t tokens_at;       /**< PEs: tokens of each */
  size_t counts_at;       /**< experts here: rows of each */
  size_t starts_at;       /**< experts here + 1: first row of each, and the end */
  size_t slots_at;        /**< rows: PE x max_tokens + token, or -1 */
  size_t ids_at;          /**< PEs x id_stride: a PE's choices, experts or -1 */
  size_t places_at;       /**< PEs x choice_stride: row, -2 for no room; of choices whose expert is here */
  size_t weights_at;      /**< PEs x choice_stride, float */
  size_t id_stride;       /**< entries, max_tokens x top_k or more */
  size_t choice_stride;   /**< likewise */
} tandem_experts_sizes;

/** The arguments of a routing: any memory of this PE. */
typedef struct {
  size_t tokens;               /**< of this PE */
  const int* tokens_on_device; /**< their number in device memory; NULL: `tokens` */
  const void* ids;             /**< tokens x top_k: experts, or -1 */
  tandem_dtype id_type;        /**< TANDEM_I32 or TANDEM_I64 */
  const float* weights;        /**< tokens x top_k; NULL: all 1 */
  void* routing;               /**< routing_bytes, written */
} tandem_experts_choices;

/** The arguments of a dispatch: any memory of this PE. */
typedef struct {
  size_t tokens;         /**< rows of x, at least the tokens of the routing */
  const void* x;         /**< tokens x hidden */
  const float* x_scales; /**< tokens x ceil(hidden / 128), with TANDEM_WIRE_GIVEN */
  const void* routing;   /**< made by tandem_experts_route() with this plan */
  void* out;             /**< dispatched_rows x hidden */
  float* out_scales;     /**< dispatched_rows x ceil(hidden / 128), with fp8 rows */
} tandem_experts_rows;

/** The arguments of a combination: any memory of this PE. */
typedef struct {
  size_t tokens;       /**< rows of out, at least the tokens of the routing */
  const void* y;       /**< rows x hidden, sorted or by expert */
  const void* routing; /**< made by tandem_experts_route() with this plan */
  const void* add;     /**< tokens x hidden; NULL: nothing is added */
  void* out;           /**< tokens x hidden; it may be `add` */
} tandem_experts_sums;

/** Routing, dispatch and combination that are ready to run. */
typedef struct tandem_experts tandem_experts;

/** Makes a plan. All PEs call it with the same problem. */
tandem_status tandem_experts_create(tandem_experts** experts, tandem_world* world,
                                    const tandem_experts_problem* problem);
/** Returns the sizes of the plan's buffers. */
tandem_status tandem_experts_get_sizes(tandem_experts* experts, tandem_experts_sizes* sizes);
/** Returns the sizes of a plan on `pes` PEs before it is made. */
tandem_status tandem_experts_sizes_of(const tandem_experts_problem* problem, int pes, tandem_experts_sizes* sizes);
/** Enqueues a routing in `stream`. All PEs make the same calls in the same order, but numbers of tokens may differ. It
 * allocates nothing, never blocks, and may be captured. An id outside [-1, experts) counts as -1, and the next
 * tandem_synchronize() returns TANDEM_INVALID_ARGUMENT with it. */
tandem_status tandem_experts_route(tandem_experts* experts, const tandem_experts_choices* choices, void* stream);
/** Enqueues the transfer of rows to experts, likewise. */
tandem_status tandem_experts_dispatch(tandem_experts* experts, const tandem_experts_rows* rows, void* stream);
/** Enqueues the routing, and the transfer of rows with it; `rows` has the routing of `choices`. It is one kernel
 * with TANDEM_EXPERTS_BY_FUSED, and else calls both. */
tandem_status tandem_experts_route_and_dispatch(tandem_experts* experts, const tandem_experts_choices* choices,
                                                const tandem_experts_rows* rows, void* stream);
/** Enqueues the weighted sums of the experts' rows, likewise. */
tandem_status tandem_experts_combine(tandem_experts* experts, const tandem_experts_sums* sums, void* stream);
/** Enqueues the first half of a dispatch, between which and the second half nothing runs. The problem's `batches` may
 * be in flight. */
tandem_status tandem_experts_dispatch_send(tandem_experts* experts, const tandem_experts_rows* rows, void* stream);
/** Enqueues the second half of the oldest dispatch in flight, given the same rows. */
tandem_status tandem_experts_dispatch_receive(tandem_experts* experts, const tandem_experts_rows* rows, void* stream);
/** Enqueues the first half of a combination, likewise. */
tandem_status tandem_experts_combine_send(tandem_experts* experts, const tandem_experts_sums* sums, void* stream);
/** Enqueues the second half of the oldest combination in flight, given the same sums. */
tandem_status tandem_experts_combine_receive(tandem_experts* experts, const tandem_experts_sums* sums, void* stream);
/** Destroys the plan, as tandem_plan_destroy() does. NULL is allowed. */
tandem_status tandem_experts_destroy(tandem_experts* experts);

/** The products of a layer with experts, overlapped with the travel of rows. tandem/layer/expert_gemms.h defines the
 * results. */
typedef enum TANDEM_INT {
  TANDEM_EXPERT_FORM_BY_RULE = 0,
  TANDEM_EXPERT_SEQUENTIAL = 1,
  TANDEM_EXPERT_OVERLAPPED = 2
} tandem_expert_form;

/** The calls of a plan, the same on all PEs. A zero means the default for every field after `type`. */
typedef struct {
  size_t max_tokens;                /**< the most tokens of a PE */
  size_t hidden;                    /**< elements of a token's row */
  size_t intermediate;              /**< columns between both products here: the expert's over tp_size */
  int experts;                      /**< of all PEs, a multiple of the PEs over tp_size */
  int top_k;                        /**< choices of a token, 1 to 16 */
  tandem_dtype type;                /**< TANDEM_BF16 or TANDEM_F16 */
  tandem_activation activation;     /**< of the first product; gated ones take B of tandem_interleave_gates() */
  tandem_expert_form dispatch_gemm; /**< whether rows travel beside the first product */
  tandem_expert_form gemm_combine;  /**< whether sums travel beside the second product */
  int communication_sms;            /**< SMs beside the products; 0: chosen by a model */
  int column_chunks;                /**< of an overlapped second product; 0: 4 */
  tandem_expert_wire wire;          /**< other than TANDEM_WIRE_TYPE: products of fp8 with scales of blocks */
  int tp_size;                      /**< PEs that share the columns of each expert, a divisor of the PEs; 0: 1 */
} tandem_expert_gemms_problem;

/** The arguments of a dispatch with the first product: any memory of this PE. */
typedef struct {
  size_t tokens;       /**< rows of x, at least the tokens of the routing */
  const void* x;       /**< tokens x hidden */
  const void* routing; /**< made by tandem_expert_gemms_route() with this plan */
  const void* b;       /**< experts here x intermediate (twice as many if gated) x hidden */
  void* rows;          /**< rows x hidden: the dispatched rows */
  void* out;           /**< rows x intermediate */
  /* The scales of fp8 values, and NULL without fp8. A row has one for each 128 values. Weights have one for each
   * 128x128 values; with a gated activation, blocks of gates and of ups follow each other in turns. */
  const float* x_scales; /**< with TANDEM_WIRE_GIVEN: of x */
  const float* b_scales; /**< of b */
  float* row_scales;     /**< of rows */
  float* out_scales;     /**< of out */
} tandem_dispatch_gemm;

/** The arguments of the second product with a combination: any memory of this PE. */
typedef struct {
  size_t tokens;         /**< rows of out, at least the tokens of the routing */
  const void* a;         /**< rows x intermediate, as a dispatch with product leaves them */
  const void* routing;   /**< made by tandem_expert_gemms_route() with this plan */
  const void* b;         /**< experts here x hidden x intermediate */
  void* y;               /**< rows x hidden: the products */
  const void* add;       /**< tokens x hidden; NULL: nothing is added */
  void* out;             /**< tokens x hidden; it may be `add` */
  const float* a_scales; /**< of an fp8 a, as a dispatch with product leaves them; else NULL */
  const float* b_scales; /**< of an fp8 b; else NULL */
} tandem_gemm_combine;

/** Routing and both products that are ready to run. */
typedef struct tandem_expert_gemms tandem_expert_gemms;

/** Makes a plan. All PEs call it with the same problem. */
tandem_status tandem_expert_gemms_create(tandem_expert_gemms** gemms, tandem_world* world,
                                         const tandem_expert_gemms_problem* problem);
/** Returns the sizes of a plan on `pes` PEs. Its routings are those of tandem_experts with rows sorted and aligned to
 * 128. */
tandem_status tandem_expert_gemms_sizes_of(const tandem_expert_gemms_problem* problem, int pes,
                                           tandem_experts_sizes* sizes);
/** Enqueues a routing, as tandem_experts_route() does. */
tandem_status tandem_expert_gemms_route(tandem_expert_gemms* gemms, const tandem_experts_choices* choices,
                                        void* stream);
/** Enqueues the transfer of rows to experts and the first product, likewise. */
tandem_status tandem_expert_gemms_dispatch(tandem_expert_gemms* gemms, const tandem_dispatch_gemm* call, void* stream);
/** Enqueues the second product and the weighted sums of its rows, likewise. */
tandem_status tandem_expert_gemms_combine(tandem_expert_gemms* gemms, const tandem_gemm_combine* call, void* stream);
/** Destroys the plan, as tandem_plan_destroy() does. NULL is allowed. */
tandem_status tandem_expert_gemms_destroy(tandem_expert_gemms* gemms);

/** Blocks until the stream is empty, and returns the failure of the GPU or of another PE, if any. */
tandem_status tandem_synchronize(tandem_world* world, void* stream);
/** Blocks until all PEs have called it. */
tandem_status tandem_barrier(tandem_world* world);
/** Enqueues a barrier: later work in `stream` begins when the streams of all PEs have reached it, and then sees the
 * earlier writes of all PEs. It never blocks and may be captured, but for its first call, as with collectives. */
tandem_status tandem_barrier_on(tandem_world* world, void* stream);

#undef TANDEM_INT

#ifdef __cplusplus
}
#endif
#endif
