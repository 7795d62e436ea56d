#include "store/journal_file.hpp"

#include <algorithm>
#include <array>

#include "core/value/hexadecimal.hpp"
#include "core/value/parse_number.hpp"
#include "core/value/take_until.hpp"

namespace contextune::store {
namespace {

constexpr std::string_view trying_version = "contextune-trying 1";
constexpr std::string_view known_version = "contextune-known 1";
constexpr std::string_view closing_line = "end";
constexpr std::array<std::string_view, 2> end_words{"unknown", "crashed"};
constexpr std::array<std::string_view, 3> suspicion_words{"none", "suspect", "blamed"};
// A machine that wants memory, or a scheduler, may end two runs in a row at the same place.
constexpr std::uint32_t blaming_ends = 3;
constexpr std::size_t most_entries = 65536;

bool read(std::string_view& line, TriedConfig& config) {
  return read_number(take_until(line, ' '), config.site, 16) &&
         read_number(take_until(line, ' '), config.config, 16);
}

template <std::size_t N, class Enum>
bool read_word(std::string_view word, const std::array<std::string_view, N>& words, Enum& value) {
  const auto at = std::find(words.begin(), words.end(), word);
  if (at == words.end()) return false;
  value = static_cast<Enum>(at - words.begin());
  return true;
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text + "\n";
}

}  // namespace

std::string TryingFile::name_of(const ProcessIdentity& process) {
  return prefix_of(process.pid) + std::to_string(process.start_ticks) + "-" +
         process.boot.substr(0, 8) + std::string(suffix);
}

std::string TryingFile::to_text() const {
  std::string text(trying_version);
  text += "\n" + one_line("host " + process.host) + one_line("boot " + process.boot) +
          one_line("namespace " + process.pid_namespace) + "pid " + std::to_string(process.pid) +
          "\nstart " + std::to_string(process.start_ticks) + "\nbroken " + (broken ? "1" : "0") +
          "\nend " + std::string(end_words[static_cast<std::size_t>(end)]) + "\n";
  for (const auto& [config, what] : in_flight) text += line_of(config, what);
  return text + closing();
}

std::string TryingFile::line_of(const TriedConfig& config, const std::string& text) {
  return hexadecimal(config.site) + " " + hexadecimal(config.config) + " " + one_line(text);
}

std::string TryingFile::closing() {
  return std::string(closing_line) + "\n";
}

std::optional<TryingFile> TryingFile::parse(std::string_view text) {
  TryingFile file;
  if (take_until(text, '\n') != trying_version) return std::nullopt;
  const auto field = [&](std::string_view name) -> std::optional<std::string_view> {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, ' ') != name) return std::nullopt;
    return line;
  };
  const auto host = field("host");
  const auto boot = field("boot");
  const auto pid_namespace = field("namespace");
  const auto pid = field("pid");
  const auto start = field("start");
  const auto broken = field("broken");
  const auto end = field("end");
  if (!host || !boot || !pid_namespace || !pid || !start || !broken || !end) return std::nullopt;
  file.process.host = *host;
  file.process.boot = *boot;
  file.process.pid_namespace = *pid_namespace;
  file.broken = *broken == "1";
  if (!read_number(*pid, file.process.pid) || !read_number(*start, file.process.start_ticks) ||
      (!file.broken && *broken != "0") || !read_word(*end, end_words, file.end)) {
    return std::nullopt;
  }
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line == closing_line) return file;
    TriedConfig config;
    if (!read(line, config) || file.in_flight.size() == most_entries) return std::nullopt;
    file.in_flight.emplace(config, line);
  }
  return std::nullopt;  // cut short
}

void KnownFile::add(const TryingFile& ended, std::set<TriedConfig>& counted) {
  const bool did_it = ended.end == TryingFile::End::Crashed || ended.broken;
  const bool alone = ended.in_flight.size() == 1;
  for (const auto& [config, text] : ended.in_flight) {
    Entry& entry = entries[config];
    entry.text = text;
    if (!alone) continue;
    if (counted.insert(config).second) ++entry.ends;
    if (did_it || entry.ends >= blaming_ends) entry.suspicion = TrialJournal::Suspicion::Blamed;
  }
}

std::string KnownFile::to_text() const {
  std::string text(known_version);
  text += "\n";
  for (const auto& [config, entry] : entries) {
    text += hexadecimal(config.site) + " " + hexadecimal(config.config) + " " +
            std::string(suspicion_words[static_cast<std::size_t>(entry.suspicion)]) + " " +
            std::to_string(entry.ends) + " " + one_line(entry.text);
  }
  return text + std::string(closing_line) + "\n";
}

std::optional<KnownFile> KnownFile::parse(std::string_view text) {
  KnownFile file;
  if (take_until(text, '\n') != known_version) return std::nullopt;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line == closing_line) return file;
    TriedConfig config;
    Entry entry;
    if (!read(line, config) ||
        !read_word(take_until(line, ' '), suspicion_words, entry.suspicion) ||
        !read_number(take_until(line, ' '), entry.ends) || file.entries.size() == most_entries) {
      return std::nullopt;
    }
    entry.text = line;
    file.entries.emplace(config, std::move(entry));
  }
  return std::nullopt;  // cut short
}

}  // namespace contextune::store
