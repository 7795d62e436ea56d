#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "core/trials/trial.hpp"
#include "core/trials/tuning_observer.hpp"

namespace contextune {

/// The kind of thing that was tuned as one. The name of an entry of the store begins with it.
enum class StoredKind { Region, Function, Choice };
/// "region", "function", "choice".
[[nodiscard]] std::string_view to_string(StoredKind kind);

/// Named facts in a fixed order, such as {"gpu", "NVIDIA H200"}. Values are text as the log has it.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Where something was tuned.
struct TuningEnvironment {
  /// GPU, its SMs and memory, ranks, ranks of one host, how devices are connected: part of the
  /// identity. A tuning on other hardware is another entry.
  Facts hardware;
  /// Driver, CUDA, NCCL, CPU, variables that change what they do, contextune itself: winners from
  /// other software have to be shown again to be worth it.
  Facts software;

  [[nodiscard]] bool operator==(const TuningEnvironment&) const = default;
};

/// Which entry of the store is meant.
struct StoreIdentity {
  StoredKind kind = StoredKind::Region;
  std::string name;  ///< of the region, function or choice, as its author wrote it
  TuningEnvironment environment;

  [[nodiscard]] bool operator==(const StoreIdentity&) const = default;
};

/// The place where the winners of a region are stored. A region that a function or a choice has for
/// one key is one site of the function's or the choice's entry.
struct StoredAs {
  StoredKind kind = StoredKind::Region;
  // Unless it is a Region, which has its own name and any sites:
  std::string name;  ///< of the function or choice
  std::string site;
  Key key;  ///< without the device
};

/// A config of a site, and its measurements.
struct StoredTrial {
  Config config;
  TrialStatus status = TrialStatus::Measured;
  std::uint32_t samples = 0;
  /// Cost and smallest and largest sample; NaN where there are no samples.
  double seconds = 0;
  double low_seconds = 0;
  double high_seconds = 0;
};

/// Under what a site's configs were judged.
struct StoredTerms {
  std::string tolerance;  ///< the options of these names
  double trial_timeout = 0;
  double cutoff = 0;
  /// The region was shown to be faster with its winner, or that is the default.
  bool confirmed = false;
  std::uint64_t comm_memory = 0;  ///< the option of this name, in bytes
  /// The winner's results were compared with the default's, or the winner is the default.
  bool compared = false;

  [[nodiscard]] bool operator==(const StoredTerms&) const = default;
};

/// A site. Configs are named by their values, never by their numbers: a space may grow.
struct StoredSite {
  std::string name;
  Key key;                          ///< without what only one rank has to do with
  std::vector<StoredTrial> trials;  ///< those that were tried, the default first
  /// Under NoSamples, the default. Then the site was only seen, or its winner failed, and the next
  /// tuning has to find out. Such a site only adds its trials to what is known already.
  Config winner;
  WinnerReason reason = WinnerReason::Fastest;
  double seconds = 0;          ///< the winner's cost; NaN if not measured
  double default_seconds = 0;  ///< the same of the default
  /// The default of a collective: "Ring Simple"; empty: not known. With it the winners of a store
  /// can be handed to NCCL's own tuner, which also needs a row for each collective that keeps its
  /// default.
  std::string default_choice;
  /// For a kernel: a hash of its instructions; empty: not known. Winners are for these
  /// instructions.
  std::string code;
  /// Tells, without reading the instructions, that they are the same: which build or version of a
  /// file they are in, or a hash of more than them. Empty: they are quick to read. For a function
  /// or choice: the build of the program file that calls it; empty: not known.
  std::string image;
  /// The meaning of its configs, as KernelRule::meaning() has it; empty: not known. Winners are for
  /// this meaning, too.
  std::string declaration;
  std::optional<StoredTerms> terms;  ///< absent: not known
  /// The knowledge of an unfinished or finished search beside its trials, in a form of its own;
  /// others carry it along. Empty as a rule.
  std::string progress;
  std::string tuned_at;  ///< "2026-11-20T20:33:53Z"; set by the store when it is saved
  /// From load(): whether it was tuned under the software that is here now.
  bool same_software = true;
};

/// How the whole region fared with the winners.
struct StoredConfirm {
  ConfirmVerdict verdict = ConfirmVerdict::Skipped;
  double before_seconds = 0;
  double after_seconds = 0;
  double gain = 0;
  double bound = 0;
  int pairs = 0;
};

/// A stored region, function or choice.
struct StoredEntry {
  std::vector<StoredSite> sites;
  std::optional<StoredConfirm> confirm;  ///< under the software that is here now; absent: not known
};

/// The winners on disk; a port. Any thread. Nothing throws: what cannot be read or written is said
/// in the log, and is as if it were not there.
class Store {
 public:
  virtual ~Store() = default;

  /// An entry; without sites if there is none.
  [[nodiscard]] virtual StoredEntry load(const StoreIdentity& identity) = 0;

  /// Adds sites to an entry; one of the same name and key takes the place of what was there, which
  /// is kept among the last five that were replaced. Other processes' sites stay.
  /// @return false: it could not be written, which was said
  virtual bool save(const StoreIdentity& identity, const std::vector<StoredSite>& sites,
                    const std::optional<StoredConfirm>& confirm) = 0;
};

}  // namespace contextune
