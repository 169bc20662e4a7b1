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
 * Every function that can fail returns a tandem_status; tandem_last_error() says more. A handle is used by one thread
 * at a time. Several worlds may exist at once.
 *
 * Pointers are device addresses of the GPU that was current when the world was made. Sizes are in elements, with the
 * meaning of NCCL's calls: `count` elements of each PE are reduced, given or got, as tandem/collectives.h lists them.
 * Calls are enqueued in `stream` (a cudaStream_t; NULL: the default stream) and return before they have run.
 * Collective: all PEs make the same calls in the same order. The first call of a collective, type, operation and size
 * class meets the other processes and allocates: make it once before capturing the stream into a graph.
 * Calls in several streams run one after the other; replays of a graph are kept apart from other calls by the caller.
 *
 * Memory of tandem_alloc() and tandem_register() is used as it is, where input and output both are such; it lies at the
 * same place of the same buffer on all PEs. Any other memory is copied to and from staging memory of the world, in
 * pieces of at most `staging_bytes`; output may be input where NCCL allows it. Every PE gives both pointers, where it
 * has no elements too (`in` of broadcast and `out` of reduce on other PEs than the root). */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TANDEM_UNIQUE_ID_BYTES 128

typedef enum {
  TANDEM_SUCCESS = 0,
  TANDEM_INVALID_ARGUMENT = 1, /* what cannot be: the text names argument, value and what is allowed */
  TANDEM_UNSUPPORTED = 2,      /* not on this machine */
  TANDEM_OUT_OF_MEMORY = 3,
  TANDEM_TIMEOUT = 4, /* a PE did not come or a wait gave up; the world is over */
  TANDEM_FAILED = 5   /* a PE is gone, or the GPU failed; the world is over */
} tandem_status;

typedef enum {
  TANDEM_F32 = 0,
  TANDEM_F16 = 1,
  TANDEM_BF16 = 2,
  TANDEM_E4M3 = 3,
  TANDEM_E5M2 = 4,
  TANDEM_I8 = 5,
  TANDEM_U8 = 6,
  TANDEM_I32 = 7,
  TANDEM_U32 = 8,
  TANDEM_I64 = 9,
  TANDEM_U64 = 10,
  TANDEM_F64 = 11
} tandem_dtype;

typedef enum { TANDEM_SUM = 0, TANDEM_PROD = 1, TANDEM_MIN = 2, TANDEM_MAX = 3, TANDEM_AVG = 4 } tandem_op;

typedef struct tandem_world tandem_world;

/* Zeros stand for the defaults, and NULL for all of them. The same on all PEs. */
typedef struct {
  size_t heap_bytes;     /* for tandem_alloc(); default 256 MiB */
  size_t staging_bytes;  /* for memory that is not the heap's; default 64 MiB */
  double timeout_s;      /* of a wait on the GPU; default 30 */
  double join_timeout_s; /* for the other processes; default 600 */
} tandem_options;

/* What went wrong last on this thread: one line; valid until the next call on it. */
const char* tandem_last_error(void);

/* Opens a rendezvous in this process; `id` has TANDEM_UNIQUE_ID_BYTES bytes, to be handed to all processes by any
 * means. It holds a secret. `address`: this host's, as the others reach it; NULL: 127.0.0.1. */
tandem_status tandem_unique_id_create(void* id, const char* address);

/* Joins on the current GPU; returns when all have come. NULL options: the defaults. */
tandem_status tandem_world_create(tandem_world** world, const void* id, int pe, int pes, const tandem_options* options);
tandem_status tandem_world_from_environment(tandem_world** world, const tandem_options* options);
/* Waits for the GPU and for the other PEs, unless the world is over. NULL is allowed. */
tandem_status tandem_world_destroy(tandem_world* world);

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

/* Overlapped GEMMs: tandem/operators.h says what they compute and how matrices lie. A plan is for problems of up to `m`
 * rows; each run has its own number of rows, and may be captured. A plan takes what the tuner's cache has for it
 * (TANDEM_OPERATOR_CACHE), else what was measured best on GPUs. It lives on the heap (tandem_options.heap_bytes): what
 * is gathered, m x k, or partial sums, a few times m x n; where it overlaps within a node twice that, for two calls
 * that take turns. */
typedef enum { TANDEM_ALL_GATHER_GEMM = 0, TANDEM_GEMM_REDUCE_SCATTER = 1, TANDEM_GEMM_ALL_REDUCE = 2 } tandem_operator;

/* The global problem over all PEs. */
typedef struct {
  size_t m, n, k;    /* m: the most rows of a run */
  tandem_dtype type; /* TANDEM_BF16 or TANDEM_F16 */
  const size_t* ns;  /* all_gather_gemm: columns of each of `num_b` B for one gather, n in all; NULL: one B */
  size_t num_b;
} tandem_problem;

typedef struct tandem_plan tandem_plan;

/* Collective: the same problem on all PEs. */
tandem_status tandem_plan_create(tandem_plan** plan, tandem_world* world, tandem_operator op,
                                 const tandem_problem* problem);
/* One run of `m` rows in `stream`, which returns before it has run; collective. a, b[i] and c[i] are this PE's
 * matrices, anywhere in its GPU's memory, at multiples of 16 bytes: as many b and c as the problem has, one without
 * `ns`. Neither the device's memory nor the host is waited for. The first run in a stream prepares its GEMMs, within a
 * capture too. */
tandem_status tandem_plan_run(tandem_plan* plan, size_t m, const void* a, const void* const* b, void* const* c,
                              void* stream);
/* No run and no graph may use it any more. Before its world is destroyed; NULL is allowed. */
tandem_status tandem_plan_destroy(tandem_plan* plan);

/* Blocks until the stream is empty; says what went wrong on the GPU, or with another PE. */
tandem_status tandem_synchronize(tandem_world* world, void* stream);
/* Blocks until all processes are here. */
tandem_status tandem_barrier(tandem_world* world);

#ifdef __cplusplus
}
#endif
#endif
