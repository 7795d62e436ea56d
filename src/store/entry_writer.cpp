#include <cmath>
#include <nlohmann/json.hpp>

#include "store/entry_json.hpp"
#include "store/json_text.hpp"

namespace contextune::store {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t line_width = 160;

Json figure(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
}

Json to_json(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* text = std::get_if<std::string>(&value)) return to_json_text(*text);
  const double number = std::get<double>(value);
  if (std::isfinite(number)) return number;
  return Json{{"double", figure(number)}};  // a text would be another value
}

Json to_json(const Config& config) {
  Json json = Json::object();
  for (const auto& [name, value] : config.entries()) json[to_json_text(name)] = to_json(value);
  return json;
}

Json to_json(const Key& key) {
  Json json = Json::array();
  for (const auto& [name, part] : key.entries()) {
    Json value = std::visit([](const auto& what) { return to_json(Value(what)); }, part);
    json.push_back(Json::array({to_json_text(name), std::move(value)}));
  }
  return json;
}

Json to_json(const Facts& facts) {
  Json json = Json::object();
  for (const auto& [name, value] : facts) json[to_json_text(name)] = to_json_text(value);
  return json;
}

Json to_json(const StoredTrial& trial) {
  return {{"config", to_json(trial.config)},
          {"status", to_string(trial.status)},
          {"samples", trial.samples},
          {"seconds", figure(trial.seconds)},
          {"low_seconds", figure(trial.low_seconds)},
          {"high_seconds", figure(trial.high_seconds)}};
}

Json to_json(const ReplacedWinner& replaced) {
  return {
      {"winner", to_json(replaced.winner)},  {"reason", to_string(replaced.reason)},
      {"seconds", figure(replaced.seconds)}, {"default_seconds", figure(replaced.default_seconds)},
      {"tuned_at", replaced.tuned_at},       {"software", replaced.software}};
}

Json to_json(const std::optional<StoredTerms>& terms) {
  if (!terms) return nullptr;
  return {{"tolerance", to_json_text(terms->tolerance)},
          {"trial_timeout", figure(terms->trial_timeout)},
          {"cutoff", figure(terms->cutoff)},
          {"confirmed", terms->confirmed},
          {"compared", terms->compared},
          {"comm_memory", terms->comm_memory}};
}

Json to_json(const EntrySite& entry) {
  const StoredSite& site = entry.site;
  Json json = {{"name", to_json_text(site.name)},
               {"key", to_json(site.key)},
               {"winner", to_json(site.winner)},
               {"reason", to_string(site.reason)},
               {"seconds", figure(site.seconds)},
               {"default_seconds", figure(site.default_seconds)},
               {"default_choice", to_json_text(site.default_choice)},
               {"code", to_json_text(site.code)},
               {"image", to_json_text(site.image)},
               {"declaration", to_json_text(site.declaration)},
               {"terms", to_json(site.terms)},
               {"progress", to_json_text(site.progress)},
               {"tuned_at", site.tuned_at},
               {"software", entry.software},
               {"trials", Json::array()},
               {"replaced", Json::array()}};
  for (const StoredTrial& trial : site.trials) json["trials"].push_back(to_json(trial));
  for (const auto& replaced : entry.replaced) json["replaced"].push_back(to_json(replaced));
  return json;
}

Json to_json(const EntryConfirm& confirm) {
  return {{"verdict", to_string(confirm.figures.verdict)},
          {"before_seconds", figure(confirm.figures.before_seconds)},
          {"after_seconds", figure(confirm.figures.after_seconds)},
          {"gain", figure(confirm.figures.gain)},
          {"bound", figure(confirm.figures.bound)},
          {"pairs", confirm.figures.pairs},
          {"tuned_at", confirm.tuned_at},
          {"software", confirm.software}};
}

// A value that fits a line stands in one: a trial more is a line more, for whoever compares two
// files.
void print(std::string& text, const Json& json, std::size_t indent) {
  std::string line = json.dump();
  if (json.empty() || !json.is_structured() || indent + line.size() <= line_width) {
    text += line;
    return;
  }
  const bool is_object = json.is_object();
  text += is_object ? '{' : '[';
  bool first = true;
  for (const auto& member : json.items()) {
    text += first ? "\n" : ",\n";
    text.append(indent + 1, ' ');
    if (is_object) text += Json(member.key()).dump() + ": ";
    print(text, member.value(), indent + 1);
    first = false;
  }
  text += '\n';
  text.append(indent, ' ');
  text += is_object ? '}' : ']';
}

}  // namespace

std::string to_text(const Entry& entry) {
  Json json = {{"schema", schema_version},
               {"kind", to_string(entry.kind)},
               {"name", to_json_text(entry.name)},
               {"hardware", to_json(entry.hardware)},
               {"software", Json::object()},
               {"confirm", nullptr},
               {"sites", Json::array()}};
  for (const auto& [id, facts] : entry.software) json["software"][id] = to_json(facts);
  if (entry.confirm) json["confirm"] = to_json(*entry.confirm);
  for (const EntrySite& site : entry.sites) json["sites"].push_back(to_json(site));
  std::string text;
  print(text, json, 0);
  return text + "\n";
}

}  // namespace contextune::store
