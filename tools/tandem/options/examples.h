#pragma once

namespace CLI {
class App;
}

namespace tandem::cli {

/// Adds examples to the help of each subcommand.
void add_examples(CLI::App& app);

}  // namespace tandem::cli
