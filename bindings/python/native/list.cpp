#include "calls.h"
#include "tandem/machine.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/run/run_operator.h"

namespace tandem::python {

Json list() {
  Json answer{{"machines", Json::array()},
              {"algorithms", Json::object()},
              {"layers", Json::array()},
              {"dtypes", Json::array()},
              {"reductions", Json::array()}};
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    answer["machines"].push_back({{"name", machine.name},
                                  {"description", machine.description},
                                  {"pes_per_node", machine.pes_per_node},
                                  {"default_nodes", machine.default_nodes},
                                  {"max_nodes", machine.max_nodes}});
  }
  Json& algorithms = answer["algorithms"];
  for (const AlgorithmInfo& info : collective_algorithms())
    algorithms[name(info.collective)].push_back(
        {{"name", info.name}, {"summary", info.summary}, {"one_node_only", info.one_node_only}});
  for (const Operator op : cli::kOperators)
    for (const Form form : cli::kForms)
      algorithms[name(op)].push_back({{"name", name(form)}, {"summary", cli::summary(form)}, {"one_node_only", false}});
  for (const cli::Layer& layer : cli::layers())
    answer["layers"].push_back({{"name", layer.name}, {"meaning", layer.meaning}, {"n", layer.n}, {"k", layer.k}});
  for (const DType type : kDTypes) answer["dtypes"].push_back(name(type));
  for (const ReduceOp op : kReduceOps) answer["reductions"].push_back(name(op));
  return answer;
}

}  // namespace tandem::python
