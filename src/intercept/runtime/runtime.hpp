#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <contextune/error.hpp>
#include <contextune/options.hpp>

#include "core/trials/store.hpp"
#include "core/value/kernel_rule.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/ranks/job_ranks.hpp"
#include "intercept/site/region.hpp"
#include "preload/contextune_abi.h"
#include "space/declaration.hpp"

namespace contextune::store {
class TrialJournal;
}

namespace contextune::intercept {

class RepetitionCheck;

/// No more regions can be kept apart in this process; the text says how many there are.
class TooManyRegions : public Error {
 public:
  using Error::Error;
};

/// Everything that contextune is in this process: options, regions, timers, the rank log. Made
/// once, never destroyed (the program's own exit handlers may still launch). Any thread.
///
/// Inert in a forked child until its exec, and from the start of exit() on: everything then passes
/// through and no CUDA call is made.
class Runtime {
 public:
  /// The process's runtime, made at the first call: with the frontend's driver pointers, or without
  /// a frontend that sees launches (only tunables are then tuned). Null: there is no usable
  /// driver, contextune is disabled, or it could not start; `why_off` says why.
  static Runtime* start(const contextune_frontend* frontend) noexcept;

  /// `call` gets the runtime as soon as it has started, before a launch is looked at; at once if it
  /// has. For what was declared before CUDA was initialised; there is one such call.
  static void at_start(void (*call)(Runtime&)) noexcept;

  /// The runtime if there is one and it is not inert, else null. A few nanoseconds.
  [[nodiscard]] static Runtime* get() noexcept;

  /// Why there is no runtime, or why it sees no launches: a sentence; "" when all is well. Valid
  /// for ever.
  [[nodiscard]] static const char* why_limited() noexcept;

  /// Options of the process: defaults, then CONTEXTUNE_* variables.
  [[nodiscard]] virtual const Options& options() const noexcept = 0;

  /// Whether the frontend attached it, so that launches are seen.
  [[nodiscard]] virtual bool sees_launches() const noexcept = 0;

  /// The region of that name; made at first use with `author` as defaults under the variables.
  /// @param as what its winners are stored as
  /// @throws TooManyRegions if there are more than can be kept apart (1024)
  [[nodiscard]] virtual Region& region(std::string_view name, const Options& author,
                                       const StoredAs& as = {}) = 0;

  /// How the region of that name, as the log has it, has come out so far. Absent: it was not
  /// entered yet, or was not found.
  [[nodiscard]] virtual std::optional<RegionOutcome> outcome_of(std::string_view region) = 0;

  /// The region that this thread's launches belong to now: its innermost, else the only open one,
  /// else null. A few nanoseconds where no region is open.
  [[nodiscard]] virtual Region* current_region() noexcept = 0;

  /// Whether this thread's work belongs to a region that it, or the whole process, has entered. A
  /// region that another thread has entered for itself does not count. A few nanoseconds where no
  /// region is open.
  [[nodiscard]] virtual bool is_in_region() noexcept = 0;

  /// Whether a stream is being captured into a graph.
  [[nodiscard]] virtual bool is_capturing() noexcept = 0;
  /// That one is, which may not have been seen.
  virtual void note_capture(CUstream stream) noexcept = 0;

  /// Declares a kernel, for launches that are first seen from now on. The last declared of several
  /// rules for one kernel counts.
  virtual void declare(std::shared_ptr<KernelRule> rule) = 0;

  /// The other ranks of the job.
  [[nodiscard]] virtual JobRanks& ranks() noexcept = 0;

  /// The space files' declaration of a choice, which goes before what its author says; null: none.
  [[nodiscard]] virtual const space::ChoiceDeclaration* choice_rule(
      const std::string& name) const noexcept = 0;

  /// Whether work of our own may be done now and waited for: nothing is captured or recorded.
  [[nodiscard]] virtual bool may_interrupt() noexcept = 0;

  /// To find out whether work that is to be run again leaves the same.
  [[nodiscard]] virtual std::unique_ptr<RepetitionCheck> check_repetition() = 0;

  /// The journal of what is being tried, for the next run to know if that takes this process down.
  [[nodiscard]] virtual store::TrialJournal& journal() noexcept = 0;
  /// The GPU has come to the end of all that it was given, but for copies that end when they come
  /// back.
  virtual void work_was_waited_for() noexcept = 0;

  /// Facts of the current device; all zero while no context is current.
  [[nodiscard]] virtual DeviceFacts device_facts() noexcept = 0;

  /// The rank log.
  [[nodiscard]] virtual EventLog& log() noexcept = 0;

  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

 protected:
  Runtime() = default;
  ~Runtime() = default;
};

}  // namespace contextune::intercept
