#ifndef TANDEM_H
#define TANDEM_H
/* Tandem for programs that are not C++: worlds of processes on GPUs, and collectives on plain device pointers in a CUDA
 * stream. Library: libtandem_c.so.
 *
 *   tandem_world* world;
 *   tandem_world_from_environment(&world, NULL);                          torchrun, srun, tandem launch
 *   tandem_all_reduce(world, in, out, count, TANDEM_BF16, TANDEM_SUM, stream);
 *   tandem_synchronize(world, stream);
 *   tandem_world_destroy(world);
 *
 * Every function that can fail returns a tandem_status; tandem_last_error() says more. What goes wrong on the GPU, such
 * as a wait that gave up, is said by the world's next call, tandem_synchronize() or tandem_world_error(): whoever
 * synchronizes otherwise asks the latter before relying on results. A handle is used by one thread
 * at a time, but for tandem_world_abort() and tandem_world_error(). Handles that are NULL or were destroyed are
 * TANDEM_INVALID_ARGUMENT (NULL may be destroyed); what could not be made is NULL.
 *
 * Several worlds may exist at once, but what waits for peers holds SMs meanwhile: calls of several worlds (and NCCL's)
 * that one GPU would run at once can each wait for an SM that another one holds, for ever. The caller keeps them apart,
 * as NCCL asks of several communicators: one after the other, in the same order on all PEs, in one stream or with
 * events between streams. Nothing enforces it; who does not gets TANDEM_TIMEOUT.
 *
 * Pointers are device addresses of the GPU that was current when the world was made. Whichever is current in a call,
 * of whatever thread, it is that GPU's, `stream` too, and the caller's stays current. Sizes are in elements, with the
 * meaning of NCCL's calls: `count` elements of each PE are reduced, given or got, as tandem/collectives.h lists them.
 * Calls are enqueued in `stream` (a cudaStream_t; NULL: the default stream of that GPU) and return before they have
 * run. Collective: all PEs make the same calls in the same order. The first call of a collective, type, operation and
 * size class meets the other processes and allocates: make it once before capturing the stream into a graph. Calls in
 * several streams run one after the other, and so do those that are captured into one graph, in whatever branches of
 * it. What is captured is ordered with nothing outside: replays of a graph are kept apart from other calls, and other
 * graphs, by the caller. A stream may be destroyed or captured as soon as its calls have
 * returned; while all calls of a world have been in one stream, after tandem_synchronize.
 *
 * Buffers are any memory of the GPU. What no peer reads or writes is used where it lies, on every PE elsewhere if need
 * be: inputs but of algorithms that pull, and outputs of small calls. What peers touch lies alike on all PEs: at the
 * same place of the same tandem_alloc() or tandem_register(), where it is used as it is, or on none of them there, and
 * then it is copied to or from staging memory of the world in stream order, of large calls in pieces of at most
 * `staging_bytes`. Where it does not, and where PEs make other calls, all PEs get TANDEM_INVALID_ARGUMENT at once, with
 * a text that says what two of them gave, and the world is over. With tandem_options.any_memory nothing has to be
 * alike. Output may be input where NCCL allows it. Every PE gives both pointers, where it has no elements too (`in` of
 * broadcast and `out` of reduce on other PEs than the root).
 *
 * Memory of each GPU: a world begins with heap_bytes, twice staging_bytes and 340 MiB, and its heap grows as it fills.
 * The first call of a kind (collective, type, operation, root, size class, which buffers peers reach) takes a part of
 * it for all calls of that kind: 64 MiB at most, but reductions with partial results, as large ones are on most
 * machines, up to twice the larger buffer; or twice staging_bytes, where they go in pieces. Size classes are 64 KiB
 * times powers of four up to 256 MiB, and beyond at most an eighth above the call. Beyond 256 MiB a larger call gives
 * back what a smaller one of its kind took, and a call that finds no room what all other kinds took, who take it anew
 * when they are called again: both wait until `stream` is empty, leave alone what was ever captured, and do nothing of
 * the sort while they are captured. What is given back, as what tandem_free() frees, is the heap's; the GPU has it back
 * at the world's end. Calls that find no room then are TANDEM_OUT_OF_MEMORY on all PEs, and the world goes on. */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TANDEM_UNIQUE_ID_BYTES 128

/* In C++ as in C, a wrong number given for one of the enumerations is no more than a wrong number. */
#ifdef __cplusplus
#define TANDEM_INT : int
#else
#define TANDEM_INT
#endif

typedef enum TANDEM_INT {
  TANDEM_SUCCESS = 0,
  TANDEM_INVALID_ARGUMENT = 1, /* what cannot be: the text names argument, value and what is allowed */
  TANDEM_UNSUPPORTED = 2,      /* not on this machine */
  TANDEM_OUT_OF_MEMORY = 3,
  TANDEM_TIMEOUT = 4, /* a PE did not come or a wait gave up; the world is over */
  TANDEM_FAILED = 5   /* a PE is gone, or the GPU failed; the world is over */
} tandem_status;

/* 0 is none of them, so that a type which was not given is not taken for one. */
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

typedef enum TANDEM_INT { TANDEM_SUM = 0, TANDEM_PROD = 1, TANDEM_MIN = 2, TANDEM_MAX = 3, TANDEM_AVG = 4 } tandem_op;

typedef struct tandem_world tandem_world;

/* Zeros stand for the defaults, and NULL for all of them. The same on all PEs. */
typedef struct {
  size_t heap_bytes;        /* for tandem_alloc() and plans, at the beginning; default 256 MiB */
  size_t staging_bytes;     /* for memory that is not the heap's; default 64 MiB */
  double timeout_s;         /* of a world that stands still, each PE in a wait on its GPU; default 30 */
  double arrival_timeout_s; /* of a wait while a PE is in none, which has not come yet or computes; default 600 */
  double join_timeout_s;    /* for the other processes; default 600 */
  size_t heap_limit_bytes;  /* what the heap may grow to as it fills, in steps of its first size; addresses stay.
                               Default 128 GiB, so as far as the GPU has memory; at most heap_bytes: it does not grow */
  int any_memory;           /* 0 or 1: calls copy what peers touch wherever it lies, also of tandem_alloc()'s and
                               tandem_register()'s memory, so that it may lie elsewhere on every PE */
  int max_blocks;           /* blocks of the kernel of a call, each of which takes one SM at most (NCCL's maxCTAs): 1 to
                               the GPU's SMs; default as many as suit, up to 128. Messages have a block for each PE at
                               least, up to 64; not of tandem_plan */
  const char* algorithms;   /* what calls run with (NCCL_ALGO): "all_reduce=ring, broadcast=chain"; of collectives that
                               are not named, default, what suits machine and size. Read during the call. Names:
                               `tandem list`, or the error that one of none gives. What this world cannot run with is
                               TANDEM_UNSUPPORTED when it is called; some take more memory than is said above */
} tandem_options;

/* The library's, "0.1.0". Before 1.0, what is declared here may change with the second number: programs are compiled
 * again then, and the library's name says so (libtandem_c.so.0.1). */
const char* tandem_version(void);

/* What went wrong last on this thread: one line; valid until the next call on it. */
const char* tandem_last_error(void);

/* Opens a rendezvous in this process; `id` has TANDEM_UNIQUE_ID_BYTES bytes, to be handed to all processes by any
 * means. It holds a secret. `address`: this host's, as the others reach it; NULL: 127.0.0.1. */
tandem_status tandem_unique_id_create(void* id, const char* address);

/* Joins on the current GPU; returns when all have come. NULL options: the defaults. */
tandem_status tandem_world_create(tandem_world** world, const void* id, int pe, int pes, const tandem_options* options);
tandem_status tandem_world_from_environment(tandem_world** world, const tandem_options* options);
/* Waits for the GPU and for the other PEs, unless the world is over. Its plans have to be destroyed before:
 * TANDEM_INVALID_ARGUMENT otherwise, and the world stays. NULL is allowed. */
tandem_status tandem_world_destroy(tandem_world* world);

/* A world of its own, with a heap of its own, for the PEs that give the same `color`; they are numbered by `key`, then
 * by their numbers in `world`, which goes on. A negative color: no world, and *part is NULL. Collective over `world`.
 *
 *   tandem_world_split(&pair, world, tandem_pe(world) / 2, 0, NULL);     the PEs 2i and 2i + 1 */
tandem_status tandem_world_split(tandem_world** part, tandem_world* world, int color, int key,
                                 const tandem_options* options);

/* Ends the world on all PEs: kernels that wait end, what synchronizes or meets returns TANDEM_FAILED with this text. By
 * any thread, also while another one is blocked in a call, be it tandem_world_destroy(). The world still has to be
 * destroyed.
 *
 *   tandem_world_abort(world, "rank 3 does not answer"); */
tandem_status tandem_world_abort(tandem_world* world, const char* why);
/* What ended the world, TANDEM_SUCCESS while it is well. By any thread, as tandem_world_abort(); waits for nothing.
 *
 *   if (tandem_world_error(world) != TANDEM_SUCCESS) puts(tandem_last_error()); */
tandem_status tandem_world_error(tandem_world* world);

/* -1 and 0 for what is no world. */
int tandem_pe(const tandem_world* world);
int tandem_num_pes(const tandem_world* world);

/* `bytes` bytes at the same place of every PE's heap, until they are freed, or to the world's end. Collective. */
tandem_status tandem_alloc(tandem_world* world, size_t bytes, void** pointer);
/* Collective: all PEs free the same; no work, in captured graphs either, uses it any more. */
tandem_status tandem_free(tandem_world* world, void* pointer);

/* Memory of the caller's own is used as it is from here on. Collective: the same size on all PEs, at the same place of
 * allocations of the same sizes, from an allocator that uses CUDA virtual memory management with handles that can be
 * exported (torch's expandable segments). TANDEM_UNSUPPORTED on all PEs where one PE's memory is of another kind. */
tandem_status tandem_register(tandem_world* world, void* pointer, size_t bytes);
tandem_status tandem_unregister(tandem_world* world, void* pointer);

tandem_status tandem_all_reduce(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                tandem_op op, void* stream);
tandem_status tandem_reduce(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                            tandem_op op, int root, void* stream);
tandem_status tandem_reduce_scatter(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                    tandem_op op, void* stream);
tandem_status tandem_all_gather(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                void* stream);
tandem_status tandem_all_to_all(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                void* stream);
tandem_status tandem_broadcast(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                               int root, void* stream);

/* `out` of gather and `in` of scatter: n * count elements at the root. */
tandem_status tandem_gather(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type, int root,
                            void* stream);
tandem_status tandem_scatter(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type, int root,
                             void* stream);

/* Messages between any PEs, of memory anywhere on the GPU, without staging copies by the caller's stream. Between two
 * PEs they are matched in the order of the calls, and only these two need to call. A message's size is the same on both
 * sides; where it is not, what fits is received and tandem_synchronize() says so from then on. What goes on at once, as
 * within NCCL's group, is one call of tandem_send_recv(): at most 512 messages, in any order.
 *
 *   tandem_message to = {out, count, TANDEM_BF16, (pe + 1) % n}, from = {in, count, TANDEM_BF16, (pe + n - 1) % n};
 *   tandem_send_recv(world, &to, 1, &from, 1, stream); */
typedef struct {
  void* data;   /* of a send: only read */
  size_t count; /* elements */
  tandem_dtype type;
  int peer;
} tandem_message;

tandem_status tandem_send(tandem_world* world, const void* data, size_t count, tandem_dtype type, int peer,
                          void* stream);
tandem_status tandem_recv(tandem_world* world, void* data, size_t count, tandem_dtype type, int peer, void* stream);
tandem_status tandem_send_recv(tandem_world* world, const tandem_message* sends, size_t num_sends,
                               const tandem_message* receives, size_t num_receives, void* stream);

/* Collectives whose parts differ, made of such messages: counts and offsets are in elements, one of each for every PE
 * (at most 256), read during the call. all_gather_v: the same counts on all PEs; PE i gives counts[i] elements, which
 * lie at offsets[i] of everybody's `out`; in place where `in` is there. all_to_all_v: in_counts[i] elements at
 * in_offsets[i] go to PE i, which receives as many from here.
 *
 *   tandem_all_gather_v(world, rows, all, counts, offsets, TANDEM_BF16, stream); */
tandem_status tandem_all_gather_v(tandem_world* world, const void* in, void* out, const size_t* counts,
                                  const size_t* offsets, tandem_dtype type, void* stream);
tandem_status tandem_all_to_all_v(tandem_world* world, const void* in, const size_t* in_counts,
                                  const size_t* in_offsets, void* out, const size_t* out_counts,
                                  const size_t* out_offsets, tandem_dtype type, void* stream);

/* Overlapped GEMMs: tandem/operators.h says what they compute and how matrices lie. A plan is for problems of up to `m`
 * rows; each run has its own number of rows, and may be captured. A plan takes what the tuner's cache has for it
 * (TANDEM_OPERATOR_CACHE), else what was measured best on GPUs. It lives on the heap (tandem_options.heap_bytes): what
 * is gathered, m x k, or partial sums, a few times m x n; where it overlaps within a node twice that, for two calls
 * that take turns. */
typedef enum TANDEM_INT {
  TANDEM_ALL_GATHER_GEMM = 0,
  TANDEM_GEMM_REDUCE_SCATTER = 1,
  TANDEM_GEMM_ALL_REDUCE = 2
} tandem_operator;

/* How B lies: as the weights of PyTorch's Linear, or as in the product; fp8 takes the former alone. */
typedef enum TANDEM_INT { TANDEM_N_X_K = 0, TANDEM_K_X_N = 1 } tandem_layout;
/* Those of torch.nn.functional, of the sums over all PEs with their bias, before they are rounded. */
typedef enum TANDEM_INT {
  TANDEM_NO_ACTIVATION = 0,
  TANDEM_RELU = 1,
  TANDEM_GELU = 2, /* with erf */
  TANDEM_SILU = 3
} tandem_activation;

/* The global problem over all PEs. Zeros stand for the defaults of what comes behind `type`. */
typedef struct {
  size_t m, n, k;    /* m: the most rows of a run */
  tandem_dtype type; /* of A and B: TANDEM_BF16, TANDEM_F16 or TANDEM_E4M3 */
  const size_t* ns;  /* all_gather_gemm: columns of each of `num_b` B for one gather, n in all; NULL: one B */
  size_t num_b;
  tandem_dtype out_type; /* of C; 0: that of A and B, TANDEM_BF16 for fp8. No other is allowed but for fp8: TANDEM_BF16,
                          * TANDEM_F16, and for all_gather_gemm TANDEM_E4M3 */
  tandem_layout b_layout;
  tandem_activation activation;
  int a_scale_per_row;    /* fp8, 0 or 1: tandem_run.a_scale has one for each of this PE's rows, else one for all */
  int b_scale_per_column; /* fp8, 0 or 1: those of b_scale have one for each of its columns of C, else one for all */
} tandem_problem;

/* One run: this PE's matrices, anywhere in its GPU's memory, at multiples of 16 bytes. Lists have as many as the
 * problem has B, one without `ns`. */
typedef struct {
  size_t m; /* rows of the global problem in this run */
  const void* a;
  const void* const* b;
  void* const* c;
  /* NULL, or for each B the values for this PE's columns of C, of C's type (fp8: bf16). gemm_reduce_scatter and
   * gemm_all_reduce: all PEs give it, and PE 0's is added, once. */
  const void* const* bias;
  const float* a_scale;        /* fp8: what A's values stand for; NULL: 1 */
  const float* const* b_scale; /* fp8: likewise, for each B; NULL: 1 */
  const float* const* c_scale; /* a result of fp8: what each C's values are multiplied with; NULL: 1 */
} tandem_run;

typedef struct tandem_plan tandem_plan;

/* Collective: the same problem on all PEs. */
tandem_status tandem_plan_create(tandem_plan** plan, tandem_world* world, tandem_operator op,
                                 const tandem_problem* problem);
/* One run in `stream`, which returns before it has run; collective. Neither the device's memory nor the host is waited
 * for. The first run in a stream prepares its GEMMs, within a capture too. */
tandem_status tandem_plan_run_with(tandem_plan* plan, const tandem_run* run, void* stream);
/* The same without bias and scales. */
tandem_status tandem_plan_run(tandem_plan* plan, size_t m, const void* a, const void* const* b, void* const* c,
                              void* stream);
/* No run and no graph may use it any more. Waits for nobody; what it has of the heap is used again when all processes
 * have destroyed theirs. NULL is allowed. */
tandem_status tandem_plan_destroy(tandem_plan* plan);

/* Blocks until the stream is empty; says what went wrong on the GPU, or with another PE. */
tandem_status tandem_synchronize(tandem_world* world, void* stream);
/* Blocks until all processes are here. */
tandem_status tandem_barrier(tandem_world* world);

#undef TANDEM_INT

#ifdef __cplusplus
}
#endif
#endif
