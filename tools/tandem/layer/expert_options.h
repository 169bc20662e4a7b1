#pragma once
/// The options that all calls of experts share on the command line.

#include "collectives/reference/expert_trial.h"
#include "tandem/layer/experts.h"
#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

/// A layer with experts of a model.
struct ExpertModel {
  const char* name;
  Size hidden;
  int experts;
  int top_k;
  Size intermediate;
};

/// Returns the model that is named, or the default. Throws InvalidArgument with the list of names.
ExpertModel expert_model(const Arguments& a);
/// Returns the options besides max_tokens and transport. Throws InvalidArgument for values that cannot be parsed.
ExpertOptions expert_options(const Arguments& a);
/// Returns the choices and values besides the tokens, likewise.
kernels::ExpertInput expert_input(const Arguments& a);

}  // namespace tandem::cli
