// The tool of the wheel: all of it lies in the library that the Python package loads, so the wheel holds it once.
#include "tandem_sim.h"

int main(int argc, char** argv) { return tandem_sim_tool(argc, argv); }
