#include "support/refusal.h"

#include "tandem/error.h"

namespace tandem::test {

std::string refusal_of(const std::function<void(World&)>& program) {
  std::string text;
  Simulation(load_machine("h200x4"), 2).run([&](World& world) {
    try {
      program(world);
    } catch (const Error& error) {
      if (world.pe() == 0) text = error.what();
    }
  });
  return text;
}

}  // namespace tandem::test
