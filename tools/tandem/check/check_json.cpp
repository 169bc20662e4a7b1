#include "tools/tandem/check/check_json.h"

#include <fmt/format.h>

namespace tandem::cli {

namespace {

using Json = nlohmann::ordered_json;

const char* name(Fate fate) {
  switch (fate) {
    case Fate::kKilled:
      return "killed";
    case Fate::kEquivalent:
      return "equivalent";
    case Fate::kSurvived:
      break;
  }
  return "survived";
}

/// Counts the values of a key, in the order of their first occurrence.
Json count_by(const std::vector<Json>& mutants, const char* key) {
  Json rows = Json::array();
  for (const Json& mutant : mutants) {
    Json* row = nullptr;
    for (Json& known : rows)
      if (known[key] == mutant[key]) row = &known;
    if (row == nullptr) {
      rows.push_back({{key, mutant[key]}, {"total", 0}, {"killed", 0}, {"equivalent", 0}, {"survived", 0}});
      row = &rows.back();
    }
    for (const std::string& column : {std::string("total"), mutant["fate"].get<std::string>()})
      (*row)[column] = (*row)[column].get<int>() + 1;
  }
  return rows;
}

std::string table(const Json& rows, const char* key) {
  std::string text = fmt::format("{:<56}{:>8}{:>8}{:>12}{:>10}\n", key, "total", "killed", "equivalent", "survived");
  for (const Json& row : rows)
    text += fmt::format("{:<56}{:>8}{:>8}{:>12}{:>10}\n", row[key].get<std::string>(), row["total"].get<int>(),
                        row["killed"].get<int>(), row["equivalent"].get<int>(), row["survived"].get<int>());
  return text;
}

}  // namespace

Json to_json(const Finding& finding) {
  Json json{{"kind", finding.kind}, {"sites", Json::array()}, {"pes", finding.pes}};
  for (const CheckSite& site : finding.sites)
    json["sites"].push_back(
        {{"file", site.file}, {"line", site.line}, {"operation", site.operation}, {"by", site.who}});
  // Host programs have no launch, and not every site has an occurrence.
  for (std::size_t i = 0; i < finding.sites.size(); ++i) {
    if (finding.sites[i].launch > 0) json["sites"][i]["launch"] = finding.sites[i].launch;
    if (finding.sites[i].occurrence > 0) json["sites"][i]["occurrence"] = finding.sites[i].occurrence;
  }
  if (!finding.buffer.empty()) json["buffer"] = finding.buffer;
  if (!finding.signal.empty()) json["signal"] = finding.signal;
  json["missing"] = finding.missing;
  json["replay"] = finding.replay;
  return json;
}

Json to_json(const MutantResult& result) {
  Json json{{"algorithm", result.op + "." + result.algorithm},
            {"operator",
             fmt::format("{} {}", checker::name(result.mutant.site.operation), checker::name(result.mutant.fault))},
            {"site", fmt::format("{}:{}", result.mutant.site.file, result.mutant.site.line)},
            {"number", result.number},
            {"fate", name(result.fate)},
            {"schedules", result.schedules}};
  if (result.fate == Fate::kKilled) {
    json["finding"] = result.by;
    json["case"] = result.replay;
  }
  if (!result.reason.empty()) json["reason"] = result.reason;
  return json;
}

Json mutants_json(const std::vector<Json>& mutants) {
  Json json{{"total", mutants.size()}, {"killed", 0}, {"equivalent", 0}, {"survived", 0}};
  for (const Json& mutant : mutants) {
    const auto fate = mutant["fate"].get<std::string>();
    json[fate] = json[fate].get<int>() + 1;
  }
  json["operators"] = count_by(mutants, "operator");
  json["algorithms"] = count_by(mutants, "algorithm");
  json["mutants"] = mutants;
  return json;
}

std::string mutants_table(const Json& summary) {
  std::string text = table(summary["operators"], "operator") + "\n" + table(summary["algorithms"], "algorithm") + "\n";
  for (const Json& mutant : summary["mutants"])
    if (mutant["fate"] == "survived")
      text += fmt::format("survived {} schedules: {} at {} in {}\n", mutant["schedules"].get<int>(),
                          mutant["operator"].get<std::string>(), mutant["site"].get<std::string>(),
                          mutant["algorithm"].get<std::string>());
  for (const Json& entry : summary["stale"])
    text += fmt::format("equivalent_mutants.json: no mutant is {}\n", entry.get<std::string>());
  return text + fmt::format("{} mutants: {} killed, {} equivalent, {} survived\n", summary["total"].get<int>(),
                            summary["killed"].get<int>(), summary["equivalent"].get<int>(),
                            summary["survived"].get<int>());
}

}  // namespace tandem::cli
