#include "intercept/site/site_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <exception>

#include <contextune/buckets.hpp>

#include "intercept/site/launch_context.hpp"
#include "intercept/site/make_variant.hpp"
#include "log/events.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t most_shapes = 16384;
constexpr std::size_t most_grids = 16;
constexpr std::uint32_t near_times = 4;  // as for collectives
constexpr std::string_view size_part = "size";

std::string hex(std::uint64_t number) {
  std::array<char, 16> digits{};
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return {digits.data(), end};
}

/// 256 for {256, 1, 1}, "16x16" for {16, 16, 1}.
Key::Part extent_part(const Dim3& extent) {
  if (extent[1] == 1 && extent[2] == 1) return std::int64_t{extent[0]};
  return log::extent_text(extent);
}

/// Absent: the key holds none.
std::optional<std::uint64_t> size_in(const Key& key) {
  for (const auto& [name, part] : key.entries()) {
    if (name != size_part) continue;
    if (const auto* exact = std::get_if<std::int64_t>(&part)) return *exact;
    const auto bucket = Buckets::bucket_of_key(std::get<std::string>(part));
    if (bucket) return bucket->typical();
  }
  return std::nullopt;
}

bool differ_in_size_only(const Key& one, const Key& other) {
  return std::equal(one.entries().begin(), one.entries().end(), other.entries().begin(),
                    other.entries().end(), [](const Key::Entry& a, const Key::Entry& b) {
                      return a == b || (a.first == size_part && b.first == size_part);
                    });
}

}  // namespace

SiteTable::SiteTable(std::string region, std::size_t max_sites, const Services& services,
                     SiteOwner& owner)
    : region_(std::move(region)), services_(services), owner_(owner), max_sites_(max_sites) {
  overflow_.configs.emplace_back();
}

SiteTable::Found SiteTable::find_slowly(const Launch& launch) {
  const bool is_full = full_.load(std::memory_order_relaxed);
  if (is_full && cache_.find(LaunchKey(launch)) == nullptr) return {};
  const std::lock_guard lock(mutex_);
  Binding* binding = cache_.find(LaunchKey(launch));
  if (binding == nullptr) {
    binding = bind(launch);
    if (binding == nullptr) return {};
  } else if (binding->epoch.load(std::memory_order_relaxed) != services_.kernels.epoch()) {
    refresh(*binding, launch);
  }
  if (binding->kind.load(std::memory_order_relaxed) == Binding::Kind::AsWritten) {
    return {binding, nullptr};
  }
  const Memo* memo = binding->memo.load(std::memory_order_relaxed);
  Resolved* resolved = memo == nullptr ? nullptr : memo->find(launch);
  if (resolved == nullptr) resolved = resolve(*binding, launch);
  return {binding, resolved};
}

Binding* SiteTable::bind(const Launch& launch) {
  if (bindings_.size() >= most_shapes) {
    full_.store(true, std::memory_order_relaxed);
    services_.log.fallback(FallbackReason::TooManySites, region_, {},
                           "The region shows more than " + std::to_string(most_shapes) +
                               " shapes of launches; those seen later run as written.");
    return nullptr;
  }
  Binding& binding = bindings_.emplace_back(LaunchKey(launch));
  refresh(binding, launch);
  cache_.insert(&binding);
  return &binding;
}

void SiteTable::refresh(Binding& binding, const Launch& launch) {
  const std::uint64_t epoch = services_.kernels.epoch();
  const KnownKernel* kernel = services_.kernels.find(launch.function, launch.context);
  binding.forget_variants();
  if (kernel != binding.kernel || kernel == nullptr) {
    binding.mean(kernel);
    binding.provider =
        kernel == nullptr || kernel->excluded || only_look_ || launch.has_fixed_shape()
            ? nullptr
            : services_.knobs.provider_of(*kernel);
    binding.kind.store(
        binding.provider == nullptr ? Binding::Kind::AsWritten : Binding::Kind::Tuned,
        std::memory_order_relaxed);
    if (kernel != nullptr && !kernel->why_excluded.empty() && !only_look_) {
      services_.log.fallback(FallbackReason::Excluded, region_, kernel->identity.name,
                             "The kernel is not tuned: " + std::string(kernel->why_excluded) + ".");
    }
    const bool wanted = kernel != nullptr && !kernel->excluded && !only_look_;
    if (wanted && binding.provider == nullptr) {
      services_.log.fallback(
          launch.has_fixed_shape() ? FallbackReason::UnsupportedLaunch : FallbackReason::NoKnobs,
          region_, kernel->identity.name, {});
    }
  }
  binding.epoch.store(epoch, std::memory_order_release);
}

void SiteTable::run_as_written(Binding& binding, FallbackReason reason, const std::string& text) {
  binding.kind.store(Binding::Kind::AsWritten, std::memory_order_relaxed);
  settled_changed();
  const std::string name = binding.kernel == nullptr ? "" : binding.kernel->identity.name;
  services_.log.fallback(reason, region_, name, text);
}

Resolved* SiteTable::resolve(Binding& binding, const Launch& launch) {
  const KnownKernel& kernel = *binding.kernel;
  try {
    const LaunchContext context(launch, kernel);
    const KernelLaunch& at = context.get();
    const std::lock_guard providers(services_.knobs.provider_mutex());
    LaunchReads reads;
    Key key = key_of(at, kernel.device, binding.provider->keys_by_size());
    key.append(binding.provider->key(at, reads));
    const std::string label = kernel.identity.name + "{" + key.to_string() + "}";
    const auto known = by_label_.find(label);
    Offer offer;
    Site* site = known != by_label_.end() ? known->second
                                          : make_site(at, binding, std::move(key), reads, offer);
    if (site != &overflow_) by_label_.emplace(label, site);
    Resolved* resolved = remember(binding, launch, *site, reads);
    if (resolved == nullptr) return nullptr;
    for (std::uint32_t i = 1; i < offer.variants.size() && site != &overflow_; ++i) {
      if (!offer.variants[i]) continue;
      resolved->set_variant(i, std::make_unique<const Variant>(std::move(*offer.variants[i])));
    }
    return resolved;
  } catch (const std::exception& error) {
    run_as_written(binding, FallbackReason::RuleError, error.what());
    return nullptr;
  }
}

Resolved* SiteTable::remember(Binding& binding, const Launch& launch, Site& site,
                              const LaunchReads& reads) {
  const auto& layouts = binding.kernel->identity.parameters;
  if (reads.everything && layouts.size() > 64) {
    run_as_written(binding, FallbackReason::RuleError,
                   "The rule reads an argument past the 64th, which cannot be told apart.");
    return nullptr;
  }
  std::uint64_t mask = reads.arguments;
  if (reads.everything) mask = layouts.size() == 64 ? ~0ULL : (1ULL << layouts.size()) - 1;
  Memo* memo = binding.answers();
  if (memo != nullptr) mask |= memo->reads();
  Resolved* resolved = nullptr;
  if (memo != nullptr && memo->reads() == mask) resolved = memo->insert(launch, site);
  if (resolved != nullptr) return resolved;
  // More arguments matter than was known, or there is no more room: start anew.
  std::string why;
  memo = binding.start_answers(mask, why);
  if (memo == nullptr) {
    run_as_written(binding, FallbackReason::TooManySites, why);
    return nullptr;
  }
  resolved = memo->insert(launch, site);
  binding.memo.store(memo, std::memory_order_release);
  settled_changed();
  if (resolved == nullptr) {
    run_as_written(binding, FallbackReason::RuleError,
                   "An argument that the kernel's rule reads cannot be found.");
  }
  return resolved;
}

void SiteTable::add_grid(Key& key, const KernelLaunch& at, int device) {
  Dim3 grid = at.launch.grid;
  auto& grids = grids_[at.kernel.code_hash + static_cast<std::uint64_t>(device)];
  if (!grids.contains(grid) && grids.size() >= most_grids) {
    for (auto& extent : grid) extent = std::bit_ceil(std::min(extent, 1U << 31U));
    key.add("grid", "to:" + log::extent_text(grid));  // a bucket: up to that
  } else {
    grids.insert(grid);
    key.add("grid", extent_part(grid));
  }
}

Key SiteTable::key_of(const KernelLaunch& at, int device, bool by_size) {
  const Launch& launch = at.launch;
  Key key;
  key.add("code", hex(at.kernel.code_hash));
  key.add("device", std::int64_t{device});
  if (!by_size) add_grid(key, at, device);
  key.add("block", extent_part(launch.block));
  key.add("shared", std::int64_t{launch.shared_bytes});
  return key;
}

Site* SiteTable::overflow(const std::string& name) {
  services_.log.fallback(FallbackReason::TooManySites, region_, {},
                         "The region has more than " + std::to_string(max_sites_) + " sites; '" +
                             name + "' and all later ones run their default.");
  return &overflow_;
}

Site* SiteTable::make_site(const KernelLaunch& at, Binding& binding, Key key, LaunchReads& reads,
                           Offer& offer) {
  if (sites_.size() >= max_sites_) return overflow(at.kernel.name);
  KnobProvider& provider = *binding.provider;
  offer = make_offer(at, provider, reads);
  if (offer.configs.size() == 1)
    services_.log.fallback(FallbackReason::NoKnobs, region_, at.kernel.name, {});
  Site& site = sites_.emplace_back();
  site.name = at.kernel.name;
  site.key_text = (site.key = key).to_string();
  site.configs = offer.configs;
  site.code = {services_.images.image_of(at.kernel), at.kernel.symbol, at.kernel.binary_version,
               files_.declaration_of(provider.meaning(), offer.changes)};
  site.provider = &provider;
  site.pinned = services_.forced.find(region_, site.name, site.key, site.configs);
  SiteSpec spec;
  if (!site.pinned) {
    site.pinned = config_by_size(site);
    spec.by_size = site.pinned.has_value();
  }
  spec.name = site.name;
  spec.key = std::move(key);
  spec.configs = site.configs;
  spec.n_warmup = provider.n_warmup();
  spec.n_repeat = provider.n_repeat();
  spec.ready = offer.ready;
  if (!at.launch.timed_alone) spec.objective = Objective::Region;
  log::SiteFacts facts;
  facts.grid = at.launch.grid;
  facts.block = at.launch.block;
  facts.shared_bytes = at.launch.shared_bytes;
  facts.registers = at.kernel.registers;
  facts.provider = provider.name();
  for (const std::uint32_t i : offer.unusable) {
    const Variant& variant = *offer.variants[i];
    report_unusable(
        site.label(), site.configs[i], i, variant.why,
        variant.too_large ? FallbackReason::NotCoResident : FallbackReason::BuildFailed);
  }
  owner_.adopt(site, std::move(spec), facts, offer.unusable);
  if (!offer.ready) {
    waiting_.push_back({&site, offer.changes, at.launch.context, offer.unusable});
    any_waiting_.store(true, std::memory_order_release);
  }
  return &site;
}

std::optional<std::uint32_t> SiteTable::config_by_size(const Site& site) const {
  const UnseenSize unseen = site.provider->unseen();
  const bool is_asked = site.provider->keys_by_size() && unseen != UnseenSize::Tune;
  if (!is_asked || !owner_.is_tuned()) return std::nullopt;
  if (unseen == UnseenSize::Default) return 0;
  const auto size = size_in(site.key);
  const Site* nearest = nullptr;
  std::uint64_t nearest_size = 0;
  for (const Site& other : sites_) {
    if (&other == &site || other.name != site.name || other.pinned) continue;
    const auto measured = size_in(other.key);
    if (!size || !measured || !are_within(*measured, *size, near_times)) continue;
    if (!differ_in_size_only(other.key, site.key) || !owner_.has_winner(other)) continue;
    if (nearest != nullptr && !is_nearer(*measured, nearest_size, *size)) continue;
    nearest = &other;
    nearest_size = *measured;
  }
  if (nearest == nullptr) return std::nullopt;
  const auto at =
      std::find(site.configs.begin(), site.configs.end(), nearest->configs[nearest->settled()]);
  // A config that was pruned for this launch is not run; nor is its default known to be as good.
  if (at == site.configs.end()) return std::nullopt;
  return static_cast<std::uint32_t>(at - site.configs.begin());
}

SiteTable::Offer SiteTable::make_offer(const KernelLaunch& at, KnobProvider& provider,
                                       LaunchReads& reads) {
  Offer offer;
  offer.configs.emplace_back();  // the launch as written
  offer.changes.emplace_back();
  offer.variants.emplace_back();
  std::vector<Config> configs = provider.configs(at);
  std::string first_error;
  std::size_t failed = 0;
  for (Config& config : configs) {
    VariantSpec spec;
    try {
      spec = provider.apply(config, at, reads);
    } catch (const ConfigError& error) {
      if (failed++ == 0) first_error = error.what();
      offer.unusable.push_back(static_cast<std::uint32_t>(offer.configs.size()));
      offer.configs.push_back(std::move(config));
      offer.changes.emplace_back();
      offer.variants.emplace_back(Variant{.why = error.what()});
      continue;
    }
    if (is_as_written(spec, at)) {
      if (offer.configs.front().empty()) offer.configs.front() = std::move(config);
      continue;
    }
    auto variant = make_variant(spec, at, services_.driver, services_.builds);
    if (!variant) offer.ready = false;
    if (variant && !variant->usable)
      offer.unusable.push_back(static_cast<std::uint32_t>(offer.configs.size()));
    offer.configs.push_back(std::move(config));
    offer.changes.push_back(spec.change);
    offer.variants.push_back(std::move(variant));
  }
  // Where none makes a launch, the declaration is at fault, and said once.
  if (failed != 0 && failed == configs.size()) throw Error(first_error);
  return offer;
}

void SiteTable::report_unusable(const std::string& label, const Config& config,
                                std::uint32_t number, const std::string& why,
                                FallbackReason reason) {
  services_.log.fallback(
      reason, region_, label,
      "Config " + std::to_string(number) + " (" + config.to_string() + "): " + why + ".");
}

const Variant* SiteTable::make_slowly(const Found& found, std::uint32_t config,
                                      const Launch& launch) {
  const std::lock_guard lock(mutex_);
  Binding& binding = *found.binding;
  if (binding.kind.load(std::memory_order_relaxed) == Binding::Kind::AsWritten) return nullptr;
  const Memo* memo = binding.memo.load(std::memory_order_relaxed);
  Resolved* resolved = memo == nullptr ? nullptr : memo->find(launch);
  if (resolved == nullptr) resolved = resolve(binding, launch);
  if (resolved == nullptr || &resolved->site() != &found.resolved->site()) return nullptr;
  if (const Variant* made = resolved->variant(config)) return made;
  Site& site = resolved->site();
  auto variant = std::make_unique<Variant>();
  try {
    const LaunchContext context(launch, *binding.kernel);
    const std::lock_guard providers(services_.knobs.provider_mutex());
    LaunchReads reads;
    const VariantSpec spec = site.provider->apply(site.configs[config], context.get(), reads);
    auto made = make_variant(spec, context.get(), services_.driver, services_.builds);
    if (!made) return nullptr;
    *variant = std::move(*made);
    resolved = remember(binding, launch, site, reads);
    if (resolved == nullptr) return nullptr;
  } catch (const ConfigError& error) {
    variant->why = error.what();
  } catch (const std::exception& error) {
    services_.log.fallback(FallbackReason::RuleError, region_, site.label(), error.what());
    variant->why = error.what();
  }
  if (!variant->usable) {
    report_unusable(
        site.label(), site.configs[config], config, variant->why,
        variant->too_large ? FallbackReason::NotCoResident : FallbackReason::LaunchFailed);
  }
  resolved->set_variant(config, std::move(variant));
  return resolved->variant(config);
}

Site* SiteTable::named(SiteSpec spec, const log::SiteFacts& facts,
                       std::span<const std::uint32_t> unusable, bool timed_as_span,
                       const SiteCode& code) {
  const std::lock_guard lock(mutex_);
  const std::string label =
      spec.name + "{" + spec.key.to_string() + "} " + std::string(facts.provider);
  if (const auto known = by_label_.find(label); known != by_label_.end()) return known->second;
  if (sites_.size() >= max_sites_) {
    (void)overflow(spec.name);
    return nullptr;
  }
  Site& site = sites_.emplace_back();
  site.name = spec.name;
  site.key = spec.key;
  site.key_text = spec.key.to_string();
  site.configs = spec.configs;
  site.timed_as_span = timed_as_span;
  site.code = code;
  site.pinned = services_.forced.find(region_, site.name, site.key, site.configs);
  by_label_.emplace(label, &site);
  owner_.adopt(site, std::move(spec), facts, unusable);
  return &site;
}

void SiteTable::finish_builds() {
  if (!any_waiting_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  if (services_.builds.done() == builds_seen_) return;
  builds_seen_ = services_.builds.done();
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    std::vector<std::uint32_t> unusable = waiting.unusable;
    for (std::uint32_t i = 0; i < waiting.builds.size(); ++i) {
      const LaunchChange& change = waiting.builds[i];
      if (change.module.empty() && change.source.empty()) continue;
      const auto* built = services_.builds.find_or_start(change, waiting.context);
      if (built == nullptr) return false;
      if (built->function != nullptr) continue;
      unusable.push_back(i);
      report_unusable(waiting.site->label(), waiting.site->configs[i], i, built->error,
                      FallbackReason::BuildFailed);
    }
    owner_.ready(*waiting.site, unusable);
    return true;
  });
  any_waiting_.store(!waiting_.empty(), std::memory_order_release);
}

}  // namespace contextune::intercept
