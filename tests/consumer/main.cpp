// A project of somebody else: what it includes and links comes from the installed package.
#include <tandem/machine.h>
#include <tandem/range.h>

#include <iostream>

int main() {
  std::cout << tandem::explain(tandem::load_machine("h200x4"));
  return tandem::split(1000, 4)[1] == tandem::Range{250, 500} ? 0 : 1;
}
