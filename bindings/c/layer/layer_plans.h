#pragma once
/// Plans of the calls of tandem/layer behind handles of C.

#include <utility>

#include "guard.h"

namespace tandem::c {

/// The contents of a handle, whose type names itself in `kType`. `Plan` is NormPlan, for example.
template <class Plan>
struct LayerPlan {
  tandem_world& world;
  std::unique_ptr<Plan> plan;
};

/// The functions of one kind of handle, a class that derives from LayerPlan.
template <class Handle>
class LayerPlans {
 public:
  /// Calls make(world, any_memory) for a plan on that C++ world; any_memory: buffers lie anywhere.
  template <class Make>
  tandem_status create(Handle** plan, tandem_world* world, const Make& make) {
    return guarded([&] {
      given(plan, "plan") = nullptr;
      const InWorld where(world);
      auto made = where->make_layer_plan(make);
      *plan = handles_.keep(std::unique_ptr<Handle>(new Handle{{where.handle(), std::move(made)}}));
      ++where.handle().plans;
    });
  }
  /// Runs the plan with the arguments that call_of(world, plan) returns.
  template <class CallOf>
  tandem_status run(Handle* plan, void* stream, const CallOf& call_of) {
    return guarded([&] {
      const auto made = handles_.at(plan, "plan");
      const InWorld world(&made->world);
      const auto call = call_of(*world, std::as_const(*made->plan));
      world->in_order(stream, [&](bool) {
        Stream borrowed = world->borrow_stream(stream);
        made->plan->run(borrowed, call);
      });
    });
  }
  tandem_status destroy(Handle* plan) {
    return guarded([&] {
      if (plan == nullptr) return;
      tandem_world& world = handles_.at(plan, "plan")->world;
      const auto use = worlds().at(&world, "world");
      const auto current = current_unless_lost(use->world);
      handles_.destroy(plan, "plan", [](const Handle&) {});
      --world.plans;
    });
  }

 private:
  Handles<Handle> handles_{Handle::kType};
};

/// All handles of one type.
template <class Handle>
LayerPlans<Handle>& plans_of() {
  static auto& all = *new LayerPlans<Handle>;  // never destroyed
  return all;
}

}  // namespace tandem::c
