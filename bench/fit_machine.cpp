/// Fits the figures of a machine model that have no measurement of their own. They are the time of a kernel's start and
/// end, the cost of a wait for a block, and the rate of its additions. All other figures keep their measured values.
///
///   fit_machine BASE OUT.json RESULTS.json...     BASE: a model's name or file; RESULTS: as in bench/results
///
/// It minimises the mean absolute logarithm of predicted over measured time. It changes one figure after the other,
/// each within a factor of four of the base.
///
/// Every second size up to 64 MB takes part; for packets, each of which is an event, up to 4 MB. The other sizes test
/// the fit on unseen data, and the largest take long to simulate. It prints all predictions before and after. It uses
/// all processors; the result does not depend on their number.

#include <atomic>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <sstream>

#include "base/builtin_files.h"
#include "collective_predictions.h"
#include "machine/machine_fields.h"

namespace {

using namespace tandem;
using namespace tandem::bench;
using Json = nlohmann::ordered_json;

constexpr const char* kFields[] = {"gpu.kernel_us", "gpu.block_sync_us", "gpu.reduce_gbps"};
constexpr double kMostFactor = 4;
constexpr double kLeastGain = 5e-4;
constexpr Size kMostBytes = Size{64} << 20;
constexpr Size kMostPacketBytes = Size{4} << 20;

using Factors = std::map<std::string, double>;

/// The base with each figure (of a curve: all its values) multiplied; shares stay at most 1.
Machine with(const Machine& base, const Factors& factors) {
  Machine machine = base;
  for (const detail::Field& field : detail::machine_fields()) {
    const auto found = factors.find(field.path);
    if (found == factors.end()) continue;
    const detail::Slot slot = field.slot(machine);
    if (auto* const* value = std::get_if<double*>(&slot)) **value = std::min(**value * found->second, field.high);
    if (auto* const* curve = std::get_if<Curve*>(&slot))
      for (auto& [x, y] : (*curve)->points) y *= found->second;
  }
  return machine;
}

bool takes_part(const MeasuredCollective& row) {
  const bool by_packets = row.algorithm.find("ll128") != std::string::npos;
  return row.bytes <= (by_packets ? kMostPacketBytes : kMostBytes);
}

/// The mean absolute logarithm; once it is known to be no less than `least`, infinity.
double cost(const Machine& machine, const std::vector<MeasuredCollective>& rows,
            double least = std::numeric_limits<double>::infinity()) {
  std::vector<double> logarithms(rows.size());
  std::atomic<double> so_far{0};
  const double too_much = least * static_cast<double>(rows.size());
  cli::for_chunks(static_cast<Size>(rows.size()), 1, [&](Range piece) {
    if (so_far >= too_much) return;
    const auto i = static_cast<std::size_t>(piece.begin);
    logarithms[i] = std::abs(std::log(predict_us(machine, rows[i]) / rows[i].us));
    so_far += logarithms[i];
  });
  if (so_far >= too_much) return std::numeric_limits<double>::infinity();
  double sum = 0;  // in one order, however the threads took turns
  for (const double one : logarithms) sum += one;
  return sum / static_cast<double>(rows.size());
}

Factors fit(const Machine& base, const std::vector<MeasuredCollective>& rows) {
  Factors factors;
  for (const char* const field : kFields) factors[field] = 1;
  double best = cost(base, rows);
  for (double step = 1.5; step > 1.04; step = std::sqrt(step)) {
    bool better = true;
    while (better) {
      better = false;
      for (auto& [field, factor] : factors)
        for (const double next : {factor * step, factor / step}) {
          if (next > kMostFactor || next < 1 / kMostFactor) continue;
          const double before = std::exchange(factor, next);
          const double now = cost(with(base, factors), rows, best - kLeastGain);
          if (now < best - kLeastGain) {
            best = now;
            better = true;
            break;
          }
          factor = before;
        }
      std::cerr << fmt::format("step {:.3f}: mean |log error| {:.4f}\n", step, best);
    }
  }
  return factors;
}

std::string text_of(const std::string& base) {
  for (const detail::BuiltinFile& file : detail::builtin_machines())
    if (file.name == base) return std::string(file.text);
  std::ifstream file(base);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

double digits(double value) { return std::stod(fmt::format("{:.3g}", value)); }

void write(const std::string& base, const Factors& factors, const std::string& out, const std::string& source) {
  Json json = Json::parse(text_of(base));
  for (const auto& [path, factor] : factors) {
    const auto dot = path.find('.');
    Json& figure = json[path.substr(0, dot)][path.substr(dot + 1)];
    if (factor == 1) continue;
    figure["source"] = fmt::format("{}; {:.2f} of: {}", source, factor, figure["source"].get<std::string>());
    if (figure.contains("value")) figure["value"] = digits(figure["value"].get<double>() * factor);
    if (figure.contains("points"))
      for (Json& point : figure["points"]) point[1] = digits(point[1].get<double>() * factor);
  }
  const std::string name = std::filesystem::path(out).stem().string();
  json["name"] = name;
  parse_machine(json.dump(), out);
  std::ofstream file(out);
  file << "{\n";
  const char* between = "";
  for (const auto& [key, value] : json.items()) {
    file << between << fmt::format("  \"{}\": ", key);
    between = ",\n";
    if (!value.is_object() || value.contains("source")) {
      file << value.dump();
      continue;
    }
    const char* inner = "{\n";
    for (const auto& [field, figure] : value.items()) {
      file << inner << fmt::format("    \"{}\": {}", field, figure.dump());
      inner = ",\n";
    }
    file << "\n  }";
  }
  file << "\n}\n";
  if (!file.flush()) throw InvalidArgument("cannot write " + out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cout << "usage: fit_machine BASE OUT.json RESULTS.json...\n";
    return argc == 1 ? 0 : 2;  // without arguments as one of all benchmarks
  }
  try {
    const Machine base = load_machine(argv[1]);
    std::vector<MeasuredCollective> rows;
    std::string files;
    for (int i = 3; i < argc; ++i) {
      for (const MeasuredCollective& row : read_selected(argv[i])) rows.push_back(row);
      files += fmt::format("{}{}", i == 3 ? "" : ", ", std::filesystem::path(argv[i]).filename().string());
    }
    std::vector<MeasuredCollective> fitted;
    for (std::size_t i = 0; i < rows.size(); i += 2)
      if (takes_part(rows[i])) fitted.push_back(rows[i]);
    // The quickest to simulate first: most steps that are no gain are known not to be before the others' turn.
    std::stable_sort(fitted.begin(), fitted.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    const Factors factors = fit(base, fitted);
    std::cout << "before\n";
    print_predictions(predict(base, rows));
    std::cout << "after\n";
    print_predictions(predict(with(base, factors), rows));
    write(argv[1], factors, argv[2], fmt::format("fitted by bench/fit_machine to {}", files));
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
  return 0;
}
