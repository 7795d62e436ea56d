#include "core/agreement/batch_message.hpp"

#include <bit>
#include <string_view>
#include <type_traits>

#include "core/value/byte_stream.hpp"
#include "core/value/fallback_reason.hpp"
#include "core/value/stable_hash.hpp"

namespace contextune {
namespace {

/// The largest enumerator of each type that travels.
constexpr Objective last(Objective) {
  return Objective::Region;
}
constexpr SiteResult::Status last(SiteResult::Status) {
  return SiteResult::Status::TooMuchMemory;
}
constexpr Stage last(Stage) {
  return Stage::Finished;
}
constexpr Measure last(Measure) {
  return Measure::Span;
}
constexpr Waiting last(Waiting) {
  return Waiting::Pause;
}
constexpr ScheduleKind last(ScheduleKind) {
  return ScheduleKind::Racing;
}
constexpr Selection last(Selection) {
  return Selection::Min;
}
constexpr TrialStatus last(TrialStatus) {
  return TrialStatus::TooMuchMemory;
}
constexpr WinnerReason last(WinnerReason) {
  return WinnerReason::Nearest;
}
constexpr ConfirmVerdict last(ConfirmVerdict) {
  return ConfirmVerdict::Skipped;
}
FallbackReason last(FallbackReason) {
  return fallback_table().back().reason;
}

/// Puts fields on the wire, in the order in which they are named.
class Encoder {
 public:
  explicit Encoder(std::vector<std::byte>& bytes) : to_(bytes) {}

  template <class... Fields>
  void operator()(const Fields&... fields) {
    (one(fields), ...);
  }

 private:
  template <class T>
  void one(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      to_.number(static_cast<std::uint8_t>(value));
    } else if constexpr (std::is_enum_v<T>) {
      to_.number(static_cast<std::uint8_t>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      to_.number(std::bit_cast<std::uint64_t>(value));
    } else if constexpr (std::is_integral_v<T>) {
      to_.number(static_cast<std::make_unsigned_t<T>>(value));
    } else {
      travel(*this, const_cast<T&>(value));
    }
  }
  void one(const std::string& text) { to_.text(text); }
  template <class T>
  void one(const std::optional<T>& value) {
    one(value.has_value());
    if (value) one(*value);
  }
  template <class T>
  void one(const std::vector<T>& list) {
    to_.number(static_cast<std::uint32_t>(list.size()));
    for (const T& value : list) one(value);
  }
  template <class... Types>
  void one(const std::variant<Types...>& value) {
    to_.number(static_cast<std::uint8_t>(value.index()));
    std::visit([this](const auto& held) { this->one(held); }, value);
  }

  ByteWriter to_;
};

/// Takes the same fields again. The first that is not as it should be makes all the rest fail.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : from_(bytes) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (one(fields), ...);
  }
  [[nodiscard]] bool took_all() const { return !wrong_ && !from_.failed() && from_.left() == 0; }

 private:
  template <class T>
  void one(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      const auto read = from_.number<std::uint8_t>();
      wrong_ = wrong_ || read > 1;
      value = read == 1;
    } else if constexpr (std::is_enum_v<T>) {
      const auto read = from_.number<std::uint8_t>();
      if (read > static_cast<unsigned>(last(T{}))) {
        wrong_ = true;
      } else {
        value = static_cast<T>(read);
      }
    } else if constexpr (std::is_floating_point_v<T>) {
      value = std::bit_cast<double>(from_.number<std::uint64_t>());
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(from_.number<std::make_unsigned_t<T>>());
    } else {
      travel(*this, value);
    }
  }
  void one(std::string& text) { text = from_.text(); }
  template <class T>
  void one(std::optional<T>& value) {
    bool there = false;
    one(there);
    if (there) one(value.emplace());
  }
  template <class T>
  void one(std::vector<T>& list) {
    const auto size = from_.number<std::uint32_t>();
    list.clear();
    // Elements are added singly: a length says nothing until the elements were there.
    for (std::uint32_t i = 0; i < size && !wrong_ && !from_.failed(); ++i) one(list.emplace_back());
  }
  void one(TuningEvent& event) {
    switch (from_.number<std::uint8_t>()) {
      case 0:
        return one(event.emplace<StageEvent>());
      case 1:
        return one(event.emplace<TrialEvent>());
      case 2:
        return one(event.emplace<WinnerEvent>());
      case 3:
        return one(event.emplace<ConfirmEvent>());
      case 4:
        return one(event.emplace<FallbackEvent>());
      case 5:
        return one(event.emplace<LeftOutEvent>());
      default:
        wrong_ = true;
    }
  }

  ByteReader from_;
  bool wrong_ = false;
};
static_assert(std::variant_size_v<TuningEvent> == 6);

template <class Wire>
void travel(Wire& wire, SharedSite& site) {
  wire(site.name, site.key, site.configs_hash, site.num_configs, site.objective, site.n_warmup,
       site.n_repeat, site.pinned, site.collective);
}
template <class Wire>
void travel(Wire& wire, TuningOptions& options) {
  wire(options.n_warmup, options.n_repeat, options.schedule, options.selection, options.margin,
       options.refine, options.refine_candidates, options.refine_rounds, options.confirm,
       options.confirm_min_pairs, options.confirm_max_pairs, options.cutoff, options.max_sites,
       options.max_slowdown, options.max_passes, options.max_time, options.trial_timeout,
       options.comm_memory, options.least_gain, options.generation_window, options.stall_passes,
       options.result_patience, options.result_patience_seconds);
}
template <class Wire>
void travel(Wire& wire, SiteResult& result) {
  wire(result.site, result.config, result.launches, result.seconds, result.status, result.in_pieces,
       result.connection_bytes);
}
template <class Wire>
void travel(Wire& wire, PassReport& pass) {
  wire(pass.lost, pass.throttled, pass.region_seconds, pass.sm_clock_hz, pass.sites);
}
template <class Wire>
void travel(Wire& wire, StoredWinner& stored) {
  wire(stored.config, stored.needs_confirm, stored.untried, stored.seconds, stored.default_seconds,
       stored.environment);
}
template <class Wire>
void travel(Wire& wire, Suspicions& suspicions) {
  wire(suspicions.blamed, suspicions.suspects);
}
template <class Wire>
void travel(Wire& wire, BatchReport::NewSite& site) {
  wire(site.site, site.ready, site.unusable, site.wrong, site.stored, site.suspicions,
       site.outdated);
}
template <class Wire>
void travel(Wire& wire, BatchReport::Readiness& site) {
  wire(site.site, site.unusable);
}
template <class Wire>
void travel(Wire& wire, BatchReport::Rejection& rejection) {
  wire(rejection.site, rejection.config, rejection.is_wrong);
}
template <class Wire>
void travel(Wire& wire, BatchReport::Standing& standing) {
  wire(standing.site, standing.communicator, standing.ranks, standing.here, standing.decisions,
       standing.entry, standing.per_entry);
}
template <class Wire>
void travel(Wire& wire, BatchReport& report) {
  wire(report.leaving, report.pausing, report.batch, report.batch_hash, report.inputs_hash,
       report.options, report.bounded, report.overran, report.elapsed_seconds, report.horizon,
       report.margin, report.new_sites, report.readied, report.rejections, report.standings,
       report.passes);
}
template <class Wire>
void travel(Wire& wire, StageEvent& event) {
  wire(event.stage, event.generation);
}
template <class Wire>
void travel(Wire& wire, TrialEvent& event) {
  wire(event.pass, event.site, event.config, event.iteration, event.launches, event.seconds,
       event.status, event.throttled, event.sm_clock_hz);
}
template <class Wire>
void travel(Wire& wire, WinnerEvent& event) {
  wire(event.site, event.config, event.seconds, event.default_seconds, event.reason,
       event.cut_short, event.ranks);
}
template <class Wire>
void travel(Wire& wire, ConfirmEvent& event) {
  wire(event.verdict, event.before_seconds, event.after_seconds, event.gain, event.bound,
       event.pairs, event.tries, event.gains);
}
template <class Wire>
void travel(Wire& wire, LeftOutEvent& event) {
  wire(event.site, event.config, event.kept, event.without_seconds, event.with_seconds, event.gain,
       event.bound, event.pairs);
}
template <class Wire>
void travel(Wire& wire, FallbackEvent& event) {
  wire(event.reason, event.site, event.text);
}
template <class Wire>
void travel(Wire& wire, Batch::Pass& pass) {
  wire(pass.number, pass.stage, pass.measure, pass.configs);
}
template <class Wire>
void travel(Wire& wire, Batch::Lease& lease) {
  wire(lease.site, lease.communicator, lease.first_decision, lease.per_pass, lease.afterwards);
}
template <class Wire>
void travel(Wire& wire, Batch& batch) {
  wire(batch.refused, batch.paused, batch.number, batch.first_entry, batch.new_sites, batch.winners,
       batch.passes, batch.leases, batch.stage, batch.waiting, batch.finished, batch.tuning_seconds,
       batch.events);
}

template <class T>
std::vector<std::byte> encoded(const T& value) {
  std::vector<std::byte> bytes;
  Encoder{bytes}(value);
  return bytes;
}

template <class T>
bool decoded(std::span<const std::byte> bytes, T& value) {
  value = {};
  Decoder decoder{bytes};
  decoder(value);
  return decoder.took_all();
}

}  // namespace

std::vector<std::byte> encode(const BatchReport& report) {
  return encoded(report);
}
std::vector<std::byte> encode(const Batch& batch) {
  return encoded(batch);
}
bool decode(std::span<const std::byte> bytes, BatchReport& report) {
  return decoded(bytes, report);
}
bool decode(std::span<const std::byte> bytes, Batch& batch) {
  return decoded(bytes, batch);
}

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  StableHash hash;
  hash.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return hash.value();
}

}  // namespace contextune
