#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <contextune/options.hpp>

#include "core/search/tuning.hpp"
#include "gpu/image/module_variables.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/site/binding.hpp"
#include "intercept/site/build_queue.hpp"
#include "intercept/site/declared_files.hpp"
#include "intercept/site/forced_configs.hpp"
#include "intercept/site/knob_provider.hpp"
#include "intercept/site/launch_cache.hpp"
#include "intercept/site/region.hpp"
#include "log/tuning_log.hpp"

namespace contextune::intercept {

/// Where knobs come from: the last rule that was declared for a kernel, else the safe attributes if
/// they are wanted. Any thread.
class KnobSource {
 public:
  virtual ~KnobSource() = default;
  /// Null: nothing can be changed about that kernel.
  [[nodiscard]] virtual KnobProvider* provider_of(const KnownKernel& kernel) = 0;
  /// Serialises all calls on providers.
  [[nodiscard]] virtual std::mutex& provider_mutex() = 0;
};

/// Who is told of new sites: the region, which gives them to a search.
class SiteOwner {
 public:
  virtual ~SiteOwner() = default;
  virtual void adopt(Site& site, SiteSpec spec, const log::SiteFacts& facts,
                     std::span<const std::uint32_t> unusable) = 0;
  virtual void ready(Site& site, std::span<const std::uint32_t> unusable) = 0;
  /// Whether the winners of all sites so far are known, and stay.
  [[nodiscard]] virtual bool is_tuned() { return false; }
  /// Whether one of the site's own is known, now or of an earlier run.
  [[nodiscard]] virtual bool has_winner(const Site&) { return false; }
};

/// The sites of one region: which launch is which site, and how each config launches it. find() and
/// a variant that is there already take no lock and allocate nothing; everything seen for the first
/// time goes the long way, once. Any thread.
class SiteTable {
 public:
  struct Services {
    const gpu::Driver& driver;
    KernelTable& kernels;
    gpu::ModuleVariables& images;
    KnobSource& knobs;
    BuildQueue& builds;
    ForcedConfigs& forced;
    EventLog& log;
  };

  SiteTable(std::string region, std::size_t max_sites, const Services& services, SiteOwner& owner);

  /// The answer for a launch: null `resolved` means that it runs as written.
  struct Found {
    Binding* binding = nullptr;
    Resolved* resolved = nullptr;
  };
  [[nodiscard]] Found find(const Launch& launch) {
    const Found known = find_known(launch);
    return known.binding == nullptr ? find_slowly(launch) : known;
  }
  /// The same of a launch that was met before; null: nobody asked for it.
  [[nodiscard]] Found find_known(const Launch& launch) {
    Binding* binding = cache_.find(LaunchKey(launch));
    if (binding == nullptr ||
        binding->epoch.load(std::memory_order_acquire) != services_.kernels.epoch())
      return {};
    if (binding->kind.load(std::memory_order_relaxed) == Binding::Kind::AsWritten)
      return {binding, nullptr};
    const Memo* const memo = binding->memo.load(std::memory_order_acquire);
    Resolved* const resolved = memo == nullptr ? nullptr : memo->find(launch);
    return resolved == nullptr ? Found{} : Found{binding, resolved};
  }

  /// How `config` (not 0) launches it; made now if need be. Not usable, or null (a build is under
  /// way): launch as written.
  [[nodiscard]] const Variant* variant(const Found& found, std::uint32_t config,
                                       const Launch& launch) {
    const Variant* made = found.resolved->variant(config);
    return made != nullptr ? made : make_slowly(found, config, launch);
  }

  /// The site of a tunable; null if it cannot be tuned.
  [[nodiscard]] Site* tunable(SiteSpec spec, const TunableSpec& given) {
    log::SiteFacts facts;
    facts.provider = "tunable";
    facts.pruned = given.pruned;
    return named(std::move(spec), facts, given.unusable, given.timed_as_span,
                 {.declaration = given.declaration, .build = given.build});
  }
  /// The same of a collective.
  /// @param default_choice what the library takes by itself, for the log
  /// @param unusable       configs that cannot run here
  [[nodiscard]] Site* collective(SiteSpec spec, std::string default_choice,
                                 std::span<const std::uint32_t> unusable) {
    log::SiteFacts facts;
    facts.provider = "collective";
    facts.default_choice = std::move(default_choice);
    return named(std::move(spec), facts, unusable);
  }

  [[nodiscard]] bool has_builds() const noexcept {
    return any_waiting_.load(std::memory_order_acquire);
  }
  /// Completes sites whose builds are done. Cheap while there are none.
  void finish_builds();

  /// For a region that only looks: every shape gets a slot, nothing is tuned.
  void only_look() noexcept { only_look_ = true; }

 private:
  /// A site whose variants are being built.
  struct Waiting {
    Site* site = nullptr;
    std::vector<LaunchChange> builds;  ///< by config; those without module and source need none
    CUcontext context = nullptr;
    std::vector<std::uint32_t> unusable;  ///< known so far
  };
  /// The configs of a new site and what they make of its first launch.
  struct Offer {
    std::vector<Config> configs;
    std::vector<LaunchChange> changes;
    std::vector<std::optional<Variant>> variants;  ///< absent: being built
    std::vector<std::uint32_t> unusable;
    bool ready = true;
  };

  Site* named(SiteSpec spec, const log::SiteFacts& facts, std::span<const std::uint32_t> unusable,
              bool timed_as_span = false, const SiteCode& code = {});
  Found find_slowly(const Launch& launch);
  Binding* bind(const Launch& launch);
  void refresh(Binding& binding, const Launch& launch);
  Resolved* resolve(Binding& binding, const Launch& launch);
  Resolved* remember(Binding& binding, const Launch& launch, Site& site, const LaunchReads& reads);
  const Variant* make_slowly(const Found& found, std::uint32_t config, const Launch& launch);
  Site* make_site(const KernelLaunch& at, Binding& binding, Key key, LaunchReads& reads,
                  Offer& offer);
  [[nodiscard]] Offer make_offer(const KernelLaunch& at, KnobProvider& provider,
                                 LaunchReads& reads);
  /// The config of a new site whose size was not measured; absent: it is tuned.
  [[nodiscard]] std::optional<std::uint32_t> config_by_size(const Site& site) const;
  void report_unusable(const std::string& label, const Config& config, std::uint32_t number,
                       const std::string& why, FallbackReason reason);
  void add_grid(Key& key, const KernelLaunch& at, int device);
  [[nodiscard]] Key key_of(const KernelLaunch& at, int device, bool by_size);
  [[nodiscard]] Site* overflow(const std::string& name);
  void run_as_written(Binding& binding, FallbackReason reason, const std::string& text);

  const std::string region_;
  const Services services_;
  SiteOwner& owner_;
  const std::size_t max_sites_;
  bool only_look_ = false;
  LaunchCache<Binding> cache_;
  std::atomic<bool> full_{false};
  std::mutex mutex_;
  std::deque<Binding> bindings_;
  std::deque<Site> sites_;
  Site overflow_;  ///< all that came after max_sites
  std::map<std::string, Site*> by_label_;
  DeclaredFiles files_;
  std::map<std::uint64_t, std::set<Dim3>> grids_;  ///< of each kernel (code and device)
  std::vector<Waiting> waiting_;
  std::atomic<bool> any_waiting_{false};
  std::uint64_t builds_seen_ = 0;
  std::uint16_t slots_ = 0;
};

}  // namespace contextune::intercept
