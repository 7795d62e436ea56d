#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "store/entry_json.hpp"
#include "store/identity.hpp"
#include "store/json_place.hpp"
#include "store/json_text.hpp"

namespace contextune::store {
namespace {

using Json = JsonPlace::Json;

constexpr int max_depth = 16;
constexpr std::size_t most_sites = 65536;
constexpr std::size_t most_facts = 1024;
constexpr std::size_t most_parts = 1024;  // of a key

// nlohmann's own words are "[json.exception.parse_error.101] parse error at line 1, column 2: ...";
// of a number that no double can hold it says the number, not where it is.
std::string syntax_error(std::string_view what) {
  if (const std::size_t end = what.find("] "); end != what.npos) what.remove_prefix(end + 2);
  constexpr std::string_view prefix = "parse error at ";
  if (!what.starts_with(prefix)) return "the document: " + std::string(what);
  return std::string(what.substr(prefix.size()));
}

Json parse_document(std::string_view text) {
  if (text.size() > max_file_bytes) {
    throw Error("the document has " + std::to_string(text.size()) + " bytes, more than the " +
                std::to_string(max_file_bytes) + " that it may have");
  }
  // The parser would take it for the end, whatever follows.
  if (const std::size_t nul = text.find('\0'); nul != text.npos) {
    const std::string_view before = text.substr(0, nul);
    const std::size_t line = before.rfind('\n');
    throw Error("line " + std::to_string(1 + std::ranges::count(before, '\n')) + ", column " +
                std::to_string(line == before.npos ? nul + 1 : nul - line) +
                ": a NUL byte, and the document is text");
  }
  std::vector<std::set<std::string>> names;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > max_depth)
      throw Error("the document is nested deeper than " + std::to_string(max_depth) + " times");
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    // Which of the two counts is up to each reader of JSON.
    if (event == Json::parse_event_t::key &&
        !names.back().insert(parsed.get_ref<const std::string&>()).second) {
      throw Error("the document has two members '" + parsed.get_ref<const std::string&>() +
                  "' in one object");
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const nlohmann::json::exception& error) {
    throw Error(syntax_error(error.what()));
  }
}

// Whether the number is one of the enumeration. The compiler asks for what is added to it: what can
// be written must be read.
constexpr bool exists(StoredKind kind) {
  switch (kind) {
    case StoredKind::Region:
    case StoredKind::Function:
    case StoredKind::Choice:
      return true;
  }
  return false;
}
constexpr bool exists(TrialStatus status) {
  switch (status) {
    case TrialStatus::Untried:
    case TrialStatus::Measured:
    case TrialStatus::LaunchFailed:
    case TrialStatus::NoSample:
    case TrialStatus::CutOff:
    case TrialStatus::WrongResult:
    case TrialStatus::TimedOut:
    case TrialStatus::Crashed:
    case TrialStatus::Known:
    case TrialStatus::TooMuchMemory:
    case TrialStatus::NotCompared:
      return true;
  }
  return false;
}
constexpr bool exists(WinnerReason reason) {
  switch (reason) {
    case WinnerReason::Fastest:
    case WinnerReason::Margin:
    case WinnerReason::Only:
    case WinnerReason::Pinned:
    case WinnerReason::Region:
    case WinnerReason::Failed:
    case WinnerReason::NoSamples:
    case WinnerReason::Dropped:
    case WinnerReason::Stored:
    case WinnerReason::Nearest:
    case WinnerReason::SoFar:
      return true;
  }
  return false;
}
constexpr bool exists(ConfirmVerdict verdict) {
  switch (verdict) {
    case ConfirmVerdict::Kept:
    case ConfirmVerdict::Reduced:
    case ConfirmVerdict::Defaults:
    case ConfirmVerdict::Skipped:
      return true;
  }
  return false;
}

template <typename Enum>
Enum read_word(const JsonPlace& place) {
  const std::string word = place.text();
  std::string all;
  for (int i = 0; exists(static_cast<Enum>(i)); ++i) {
    const auto value = static_cast<Enum>(i);
    if (to_string(value) == word) return value;
    all.append(all.empty() ? "" : ", ").append(to_string(value));
  }
  place.refuse("is '" + word + "', and must be one of: " + all);
}

std::string read_name(const JsonPlace& place, std::string_view text) {
  auto name = from_json_text(text);
  if (!name) place.refuse("has a member whose name has U+FFFD in a way that stands for no text");
  return *std::move(name);
}

Value read_value(const JsonPlace& place) {
  const Json& json = place.value();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string()) return place.text();
  if (json.is_number_integer()) return place.whole_number();
  if (json.is_number()) return place.figure();
  if (!json.is_object()) place.refuse("must be a number, true, false or a text");
  place.expect_members({"double"});
  return place.at("double").figure();
}

Config read_config(const JsonPlace& place) {
  place.expect_object();
  Config config;
  for (const auto& member : place.value().items())
    config.set(read_name(place, member.key()), read_value(place.at(member.key())));
  return config;
}

Key read_key(const JsonPlace& place) {
  Key key;
  const std::size_t count = place.array_size(most_parts);
  for (std::size_t i = 0; i < count; ++i) {
    const JsonPlace part = place.at(i);
    if (part.array_size(2) != 2) part.refuse("must be a name and a value");
    const JsonPlace value = part.at(std::size_t{1});
    if (value.value().is_string()) {
      key.add(part.at(std::size_t{0}).text(), value.text());
    } else {
      key.add(part.at(std::size_t{0}).text(), value.whole_number());
    }
  }
  return key;
}

Facts read_facts(const JsonPlace& place) {
  place.expect_object();
  if (place.value().size() > most_facts)
    place.refuse("has more than " + std::to_string(most_facts) + " members");
  Facts facts;
  for (const auto& member : place.value().items())
    facts.emplace_back(read_name(place, member.key()), place.at(member.key()).text());
  return normalised(facts);
}

std::string read_time(const JsonPlace& place) {
  std::string text = place.text();
  if (!is_timestamp(text)) place.refuse("is '" + text + "', not a time as 2026-11-20T20:33:53Z");
  return text;
}

std::string read_software(const JsonPlace& place, const Entry& entry) {
  std::string id = place.text();
  if (!entry.software.contains(id)) place.refuse("is '" + id + "', which /software does not have");
  return id;
}

StoredTrial read_trial(const JsonPlace& place) {
  place.expect_members({"config", "status", "samples", "seconds", "low_seconds", "high_seconds"});
  StoredTrial trial;
  trial.config = read_config(place.at("config"));
  trial.status = read_word<TrialStatus>(place.at("status"));
  trial.samples = static_cast<std::uint32_t>(place.at("samples").whole_number(0, 0xffffffff));
  trial.seconds = place.at("seconds").seconds();
  trial.low_seconds = place.at("low_seconds").seconds();
  trial.high_seconds = place.at("high_seconds").seconds();
  return trial;
}

ReplacedWinner read_replaced(const JsonPlace& place, const Entry& entry) {
  place.expect_members({"winner", "reason", "seconds", "default_seconds", "tuned_at", "software"});
  ReplacedWinner replaced;
  replaced.winner = read_config(place.at("winner"));
  replaced.reason = read_word<WinnerReason>(place.at("reason"));
  replaced.seconds = place.at("seconds").seconds();
  replaced.default_seconds = place.at("default_seconds").seconds();
  replaced.tuned_at = read_time(place.at("tuned_at"));
  replaced.software = read_software(place.at("software"), entry);
  return replaced;
}

bool read_flag(const JsonPlace& place) {
  if (!place.value().is_boolean()) place.refuse("must be true or false");
  return place.value().get<bool>();
}

StoredTerms read_terms(const JsonPlace& place, std::int64_t version) {
  if (version > 4) {
    place.expect_members(
        {"tolerance", "trial_timeout", "cutoff", "confirmed", "compared", "comm_memory"});
  } else if (version > 3) {
    place.expect_members({"tolerance", "trial_timeout", "cutoff", "confirmed", "comm_memory"});
  } else {
    place.expect_members({"tolerance", "trial_timeout", "cutoff", "confirmed"});
  }
  StoredTerms terms;
  terms.tolerance = place.at("tolerance").text();
  terms.trial_timeout = place.at("trial_timeout").seconds();
  terms.cutoff = place.at("cutoff").figure();
  terms.confirmed = read_flag(place.at("confirmed"));
  if (version > 4) terms.compared = read_flag(place.at("compared"));
  if (version > 3) {
    terms.comm_memory = static_cast<std::uint64_t>(
        place.at("comm_memory").whole_number(0, std::numeric_limits<std::int64_t>::max()));
  }
  return terms;
}

EntrySite read_site(const JsonPlace& place, const Entry& entry, std::int64_t version) {
  if (version > 5) {
    place.expect_members({"name", "key", "winner", "reason", "seconds", "default_seconds",
                          "default_choice", "code", "image", "declaration", "terms", "progress",
                          "tuned_at", "software", "trials", "replaced"});
  } else if (version > 2) {
    place.expect_members({"name", "key", "winner", "reason", "seconds", "default_seconds",
                          "default_choice", "code", "image", "declaration", "terms", "tuned_at",
                          "software", "trials", "replaced"});
  } else if (version > 1) {
    place.expect_members({"name", "key", "winner", "reason", "seconds", "default_seconds",
                          "default_choice", "code", "image", "tuned_at", "software", "trials",
                          "replaced"});
  } else {
    place.expect_members({"name", "key", "winner", "reason", "seconds", "default_seconds",
                          "default_choice", "tuned_at", "software", "trials", "replaced"});
  }
  EntrySite read;
  StoredSite& site = read.site;
  site.name = place.at("name").text();
  site.key = read_key(place.at("key"));
  site.winner = read_config(place.at("winner"));
  site.reason = read_word<WinnerReason>(place.at("reason"));
  site.seconds = place.at("seconds").seconds();
  site.default_seconds = place.at("default_seconds").seconds();
  site.default_choice = place.at("default_choice").text();
  if (version > 1) {
    site.code = place.at("code").text();
    site.image = place.at("image").text();
  }
  if (version > 2) {
    site.declaration = place.at("declaration").text();
    const JsonPlace terms = place.at("terms");
    if (!terms.is_null()) site.terms = read_terms(terms, version);
  }
  if (version > 5) site.progress = place.at("progress").text();
  site.tuned_at = read_time(place.at("tuned_at"));
  read.software = read_software(place.at("software"), entry);
  const JsonPlace trials = place.at("trials");
  const std::size_t num_trials = trials.array_size(most_trials);
  for (std::size_t i = 0; i < num_trials; ++i) site.trials.push_back(read_trial(trials.at(i)));
  const JsonPlace replaced = place.at("replaced");
  const std::size_t num_replaced = replaced.array_size(most_replaced);
  for (std::size_t i = 0; i < num_replaced; ++i)
    read.replaced.push_back(read_replaced(replaced.at(i), entry));
  return read;
}

EntryConfirm read_confirm(const JsonPlace& place, const Entry& entry) {
  place.expect_members({"verdict", "before_seconds", "after_seconds", "gain", "bound", "pairs",
                        "tuned_at", "software"});
  EntryConfirm confirm;
  confirm.figures.verdict = read_word<ConfirmVerdict>(place.at("verdict"));
  confirm.figures.before_seconds = place.at("before_seconds").seconds();
  confirm.figures.after_seconds = place.at("after_seconds").seconds();
  confirm.figures.gain = place.at("gain").figure();
  confirm.figures.bound = place.at("bound").figure();
  confirm.figures.pairs = static_cast<int>(place.at("pairs").whole_number(0, 0x7fffffff));
  confirm.tuned_at = read_time(place.at("tuned_at"));
  confirm.software = read_software(place.at("software"), entry);
  return confirm;
}

void read_sites(const JsonPlace& place, Entry& entry, std::int64_t version) {
  const std::size_t count = place.array_size(most_sites);
  for (std::size_t i = 0; i < count; ++i)
    entry.sites.push_back(read_site(place.at(i), entry, version));
  const auto site = [](const EntrySite& read) -> const StoredSite& { return read.site; };
  std::ranges::stable_sort(entry.sites, comes_before, site);
  const auto same = [](const StoredSite& a, const StoredSite& b) {
    return a.name == b.name && a.key == b.key;
  };
  const auto twice = std::ranges::adjacent_find(entry.sites, same, site);
  if (twice != entry.sites.end())
    place.refuse("has '" + twice->site.name + "' twice with the same key");
}

}  // namespace

bool is_timestamp(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-ddTdd:dd:ddZ";
  if (text.size() != form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == 'd' ? !is_digit : text[i] != form[i]) return false;
  }
  const auto two = [&](std::size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  return two(5) >= 1 && two(5) <= 12 && two(8) >= 1 && two(8) <= 31 && two(11) <= 23 &&
         two(14) <= 59 && two(17) <= 60;
}

bool comes_before(const StoredSite& a, const StoredSite& b) {
  return a.name != b.name ? a.name < b.name : a.key.entries() < b.key.entries();
}

Entry parse_entry(std::string_view text) {
  const Json document = parse_document(text);
  const JsonPlace place(document);
  const std::int64_t version = place.at("schema").whole_number();
  if (version > schema_version) {
    throw NewerFormat("/schema: is " + std::to_string(version) +
                      ", and this contextune knows versions up to " +
                      std::to_string(schema_version));
  }
  if (version < 1) place.at("schema").refuse("is " + std::to_string(version) + ", not a version");
  place.expect_members({"schema", "kind", "name", "hardware", "software", "confirm", "sites"});
  Entry entry;
  entry.kind = read_word<StoredKind>(place.at("kind"));
  entry.name = place.at("name").text();
  entry.hardware = read_facts(place.at("hardware"));
  const JsonPlace software = place.at("software");
  software.expect_object();
  for (const auto& member : software.value().items()) {
    const JsonPlace facts = software.at(member.key());
    const Facts read = read_facts(facts);
    if (software_id(read) != member.key())
      facts.refuse("is named '" + member.key() + "', and what it says would be '" +
                   software_id(read) + "'");
    entry.software.emplace(member.key(), read);
  }
  const JsonPlace confirm = place.at("confirm");
  if (!confirm.is_null()) entry.confirm = read_confirm(confirm, entry);
  read_sites(place.at("sites"), entry, version);
  return entry;
}

}  // namespace contextune::store
