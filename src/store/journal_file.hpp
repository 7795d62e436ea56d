#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "store/process_identity.hpp"
#include "store/trial_journal.hpp"

/// The text of the files of a TrialJournal.
namespace contextune::store {

/// The record of what one process is trying, or was.
struct TryingFile {
  /// As its parent saw it; all words have one length, so that one takes another's place.
  enum class End { Unknown, Crashed };

  ProcessIdentity process;
  bool broken = false;
  End end = End::Unknown;
  std::map<TriedConfig, std::string> in_flight;

  [[nodiscard]] std::string to_text() const;
  /// The line of a config, and the closing that every such text ends with: a text grows by putting
  /// both over the closing.
  [[nodiscard]] static std::string line_of(const TriedConfig& config, const std::string& text);
  [[nodiscard]] static std::string closing();
  /// Absent: it is no such file, or of a later version.
  [[nodiscard]] static std::optional<TryingFile> parse(std::string_view text);

  static constexpr std::string_view suffix = ".trying";
  [[nodiscard]] static std::string name_of(const ProcessIdentity& process);
  /// Begin of the names of that process's files.
  [[nodiscard]] static std::string prefix_of(std::int64_t pid) { return std::to_string(pid) + "-"; }
};

/// The record of suspects and blamed configs of processes that have ended.
struct KnownFile {
  struct Entry {
    TrialJournal::Suspicion suspicion = TrialJournal::Suspicion::Suspect;
    std::uint32_t ends = 0;  ///< of processes in which it was alone in flight
    std::string text;
  };
  std::map<TriedConfig, Entry> entries;

  /// Adds the configs in flight of a process that has ended without closing its journal.
  /// @param counted configs whose ends were counted: ranks of one job end together
  void add(const TryingFile& ended, std::set<TriedConfig>& counted);

  [[nodiscard]] std::string to_text() const;
  /// Absent: it is no such file, or of a later version.
  [[nodiscard]] static std::optional<KnownFile> parse(std::string_view text);

  static constexpr const char* name = "known";
};

}  // namespace contextune::store
