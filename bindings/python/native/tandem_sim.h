#pragma once
/// The simulator for other languages: requests and answers as JSON text, data by address.
///
/// The Python package is its only user, so it may change with every version; `tandem_sim_interface` says which one this
/// is. All functions may be called from several threads at once. No exception leaves them.

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The version of this header. A caller of another version must not go on.
#define TANDEM_SIM_INTERFACE 1
int tandem_sim_interface(void);

/// Runs the command-line tool and returns its exit code. It takes over standard streams and signals of the process, and
/// is the only call that a process makes.
int tandem_sim_tool(int argc, char** argv);

/// An array of the caller. Its memory belongs to the caller and stays valid during the call.
typedef struct tandem_sim_array {
  void* data;
  size_t bytes;
} tandem_sim_array;

/// The kind of an answer. All but TANDEM_SIM_RIGHT are errors, whose text is a message.
enum tandem_sim_kind {
  TANDEM_SIM_RIGHT,
  TANDEM_SIM_INVALID_VALUE,
  TANDEM_SIM_INVALID_TYPE,
  TANDEM_SIM_UNSUPPORTED,
  TANDEM_SIM_OUT_OF_MEMORY,
  TANDEM_SIM_CHECK_FAILED,
  TANDEM_SIM_DEADLOCK,
  TANDEM_SIM_TIMEOUT,
  TANDEM_SIM_FAILED
};

typedef struct tandem_sim_answer tandem_sim_answer;

/// Carries out a request, which is a JSON object of `length` bytes. "call" is one of:
///
///   "list"   returns machine models, algorithms, layers of models, element types and reductions
///   "pes"    returns the number of PEs that a run with these options has
///   "run"    runs "op" once on a simulated machine. The other keys are options (request.cpp lists them). The answer is
///            that of `tandem run --json`, with bandwidths, and with the critical path where "critical_path" is true.
///
/// A collective takes one array per PE in `in` and in `out`; a PE without input or output has one of 0 bytes. An
/// operator takes the global A and B in `in`, and C of each PE in `out`. Without arrays the run has no data, and its
/// times are the same.
///
/// Returns null only where memory is short even for a message.
tandem_sim_answer* tandem_sim_call(const char* request, size_t length, const tandem_sim_array* in, size_t in_count,
                                   const tandem_sim_array* out, size_t out_count);

int tandem_sim_kind_of(const tandem_sim_answer* answer);
/// Returns JSON, or the message of an error, in UTF-8; valid until the answer is freed.
const char* tandem_sim_text(const tandem_sim_answer* answer);
/// Null is allowed.
void tandem_sim_free(tandem_sim_answer* answer);

#ifdef __cplusplus
}
#endif
