#include "tandem_sim.h"

#include <fmt/format.h>

#include <new>

#include "calls.h"
#include "tandem/error.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/main/tool.h"

struct tandem_sim_answer {
  tandem_sim_kind kind = TANDEM_SIM_RIGHT;
  std::string text;
};

namespace tandem::python {
namespace {

Json parse(const char* request, std::size_t length) {
  if (request == nullptr) throw InvalidType("request: null given, allowed is a JSON object");
  Json json = Json::parse(request, request + length, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw InvalidType("request: not a JSON object");
  return json;
}

Arrays arrays_of(const char* what, const tandem_sim_array* arrays, std::size_t count) {
  if (arrays == nullptr && count > 0) throw InvalidArgument(fmt::format("{}: no address given", what));
  return {arrays, count};
}

Json carry_out(const Json& json, Arrays in, Arrays out) {
  const Json call = json.value("call", Json(nullptr));
  if (call == "list") return list();
  if (call == "pes") return pes(json);
  if (call == "run") return run(json, in, out);
  throw InvalidArgument(fmt::format("call: {} given, allowed is list, pes or run", call.dump()));
}

/// Sets the answer to the exception that is being handled.
void fail(tandem_sim_answer& answer) {
  const auto set = [&](tandem_sim_kind kind, const char* text, cli::Lines lines = cli::Lines::kOne) {
    answer.kind = kind;
    answer.text = with_argument_names(cli::printable(text, lines));
  };
  try {
    throw;
  } catch (const InvalidType& error) {
    set(TANDEM_SIM_INVALID_TYPE, error.what());
  } catch (const InvalidArgument& error) {
    set(TANDEM_SIM_INVALID_VALUE, error.what());
  } catch (const Unsupported& error) {
    set(TANDEM_SIM_UNSUPPORTED, error.what());
  } catch (const OutOfMemory& error) {
    set(TANDEM_SIM_OUT_OF_MEMORY, error.what());
  } catch (const CheckFailed& error) {
    set(TANDEM_SIM_CHECK_FAILED, error.what(), cli::Lines::kSeveral);
  } catch (const Deadlock& error) {
    set(TANDEM_SIM_DEADLOCK, error.what(), cli::Lines::kSeveral);
  } catch (const Timeout& error) {
    set(TANDEM_SIM_TIMEOUT, error.what(), cli::Lines::kSeveral);
  } catch (const std::bad_alloc&) {
    set(TANDEM_SIM_OUT_OF_MEMORY, "out of memory; a smaller size or a call without data needs less");
  } catch (const std::exception& error) {
    set(TANDEM_SIM_FAILED, error.what(), cli::Lines::kSeveral);
  }
}

}  // namespace
}  // namespace tandem::python

int tandem_sim_tool(int argc, char** argv) { return tandem::cli::run(argc, argv); }

int tandem_sim_interface(void) { return TANDEM_SIM_INTERFACE; }

tandem_sim_answer* tandem_sim_call(const char* request, size_t length, const tandem_sim_array* in, size_t in_count,
                                   const tandem_sim_array* out, size_t out_count) {
  namespace python = tandem::python;
  auto* const answer = new (std::nothrow) tandem_sim_answer;
  if (answer == nullptr) return nullptr;
  try {
    try {
      const auto json = python::parse(request, length);
      answer->text =
          python::carry_out(json, python::arrays_of("arrays", in, in_count), python::arrays_of("out", out, out_count))
              .dump(-1, ' ', true, python::Json::error_handler_t::replace);
    } catch (...) {
      python::fail(*answer);
    }
  } catch (...) {  // no memory for the message
    answer->kind = TANDEM_SIM_OUT_OF_MEMORY;
    answer->text.clear();
  }
  return answer;
}

int tandem_sim_kind_of(const tandem_sim_answer* answer) {
  return answer == nullptr ? TANDEM_SIM_OUT_OF_MEMORY : answer->kind;
}

const char* tandem_sim_text(const tandem_sim_answer* answer) { return answer == nullptr ? "" : answer->text.c_str(); }

void tandem_sim_free(tandem_sim_answer* answer) { delete answer; }
