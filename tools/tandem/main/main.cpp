/// The command-line tool: docs/reference/cli.md describes it to its users.
#include "tools/tandem/main/tool.h"

int main(int argc, char** argv) { return tandem::cli::run(argc, argv); }
