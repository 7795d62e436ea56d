#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <contextune/function_problems.hpp>
#include <contextune/region.hpp>
#include <contextune/tunable_call.hpp>

namespace contextune {

/// A whole function that has configs, as autotune() makes it. Called like the function, without the
/// config.
///
/// A call with a new key prunes the configs first. Every config that is left is timed by running
/// the function with it again and again. This happens in a region of that problem's own
/// ("gemm{key=4096}"), whose body is repeated. The winner is kept if alternating runs confirm that
/// it is faster than the default. It then runs once more, and its value is the call's. Later calls
/// with that key run the winner at once, without a lock or an allocation where the key function
/// returns whole numbers. So the function is AutotuneOptions::repeatable, or `restore` there says
/// how to make it so. Otherwise the default runs twice, and the function is not tuned where that
/// leaves something else in device memory.
///
/// The time of a config runs from the first start to the last end of the calling thread's work with
/// it on one GPU. That work is kernels, copies and NCCL's collectives, on any streams. Collectives
/// are part of the function and not tuned for themselves; a config that launches a CUDA graph
/// cannot be timed, and is not chosen.
///
/// Inside an open region it takes part in that region's passes as a Tunable does, and repeats
/// nothing. Without a GPU, where contextune is disabled, and while a stream is captured, it runs
/// once with the first config that is kept.
///
/// A config has failed if the function throws with it, or returns an enum (cudaError_t, CUresult)
/// that is not 0. The default then runs in its place. A default that cannot run when it is first
/// tried leaves its place to the next config. That is why arguments reach the function as lvalues.
///
/// Ranks that tune together (contextune::join(), `contextune run -n`) agree on every pass, and the
/// slowest rank counts. All of them have to call the function alike, with the same new keys in the
/// same order. Each measured run begins on all ranks at once, when none has work of the run before
/// under way, unless RegionOptions::align says otherwise.
///
/// Any thread may call it, if the callables allow that. If several threads call it with one new
/// key, one tunes and the others run the default meanwhile. Keys that several threads tune on one
/// device at the same time disturb each other's times. A key that is not confirmed because of that
/// keeps its default. A program that tunes before it starts its threads thus gets better winners.
/// Move-only; its findings stay with the process.
///
/// @tparam ConfigType what the function is given: Config, or the struct of its config space
/// @tparam Callables  detail::Callables: the author's, beside the function
template <class ConfigType, class Callable, class Callables>
class AutotunedFunction : public detail::FunctionProblems<ConfigType, Callables> {
  using Problems = detail::FunctionProblems<ConfigType, Callables>;
  using Problems::callables_;
  using Problems::claim_hints;
  using Problems::configs_;
  using Problems::default_of;
  using Problems::drop;
  using Problems::find_near;
  using Problems::find_problem;
  using Problems::handle;
  using Problems::is_full;
  using Problems::note_settled;
  using Problems::override_of;
  using Problems::prepare;
  using Problems::problem_of;
  using Problems::publish;
  using Problems::refuse;
  using Problems::region_options;
  using Problems::say;
  using Problems::say_untuned;
  using Problems::settled;
  using Problems::space_;
  using Problems::without_default;
  using typename AutotunedBase::Problem;
  using typename AutotunedBase::Reasons;

 public:
  using Problems::configs;
  using Problems::options;

  /// @throws Error if the space is empty or names a config twice, or an option is out of range
  AutotunedFunction(std::string name, detail::FunctionSpace<ConfigType> space, Callable function,
                    Callables callables, AutotuneOptions chosen)
      : Problems(std::move(name), std::move(space), std::move(callables), std::move(chosen)),
        function_(std::move(function)) {}

  // Each says more of the function, and gives the function that it is then.

  /// The size of a problem, a whole number, from the arguments of a call: sizes in one bucket of
  /// AutotuneOptions::buckets are one problem. A size should not be part of the key as well.
  template <class Size>
  [[nodiscard]] auto size(Size of_call) && {
    return with_callables(std::move(callables_).with_size(std::move(of_call)));
  }
  /// The arguments of a call of a given size, as a tuple; for hints and tune().
  template <class Inputs>
  [[nodiscard]] auto inputs(Inputs of_call) && {
    return with_callables(std::move(callables_).with_inputs(std::move(of_call)));
  }
  /// The LaunchShape that a config launches, from config and arguments. Configs that the device
  /// does not allow are pruned, before the author's own pruning.
  template <class Shape>
  [[nodiscard]] auto shape(Shape of_call) && {
    return with_callables(std::move(callables_).with_shape(std::move(of_call)));
  }
  /// The kernel that shape() is for, as kernel_limits() takes it, or a callable of config and
  /// arguments that gives it. Configs beyond its compiled limits are pruned, too.
  template <class Kernel>
  [[nodiscard]] auto kernel(Kernel launched) && {
    return with_callables(std::move(callables_).with_kernel(std::move(launched)));
  }

  /// Throws what the callables throw; in place of what the function throws with the winner, the
  /// default runs.
  /// @throws Error if every config is pruned or fails, with the reason of each; what the function
  ///         threw last is nested in it
  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    Problem* const problem = find_problem(options().communicator, args...);
    if (problem != nullptr && problem->why_untuned.empty()) {
      const std::uint32_t config = settled(*problem);
      if (config != CONTEXTUNE_UNSETTLED) return run_settled(*problem, config, args...);
    }
    return call_slowly(CallOptions{}, args...);
  }

  /// The function as one call has it: `f.with({.tune = false})(x, n)`. Refers to the function.
  [[nodiscard]] auto with(CallOptions call) {
    return [this, call = std::move(call)](auto&&... args) -> decltype(auto) {
      return this->call_slowly(call, args...);
    };
  }

  /// Tunes the problem of that size now, unless it is tuned, with the arguments that inputs()
  /// gives.
  /// @return whether it is tuned. False where contextune_current_place() says that nothing can be
  ///         repeated: in a region, in a capture, and where nothing is tuned.
  ///         contextune_state_reason() has the reason for the last: the program has not initialised
  ///         CUDA yet, say, which is not done for it. inputs() is not called then, and a later call
  ///         is tuned as ever.
  bool tune(std::uint64_t size) {
    static_assert(Callables::has_inputs, "tune(size) needs inputs()");
    if (contextune_current_place() != contextune_place_free) return false;
    auto arguments = std::invoke(callables_.inputs, size);
    return std::apply(
        [&](auto&... args) {
          if (!prepare()) return false;
          void* const communicator = options().communicator;
          Problem& problem = problem_of(communicator, args...);
          say_untuned(problem, options().verbose);
          // A winner borrowed from a near size is not its own.
          const auto is_tuned = [this](const Problem& one) {
            return contextune_tunable_settled(handle(), one.number) != CONTEXTUNE_UNSETTLED;
          };
          if (is_tuned(problem)) return true;
          static_cast<void>(tune_now(problem, args...), 0);
          if (options().verbose) say_settled(communicator, args...);
          return is_tuned(
              problem_of(communicator, args...));  // another one, where the default cannot run
        },
        arguments);
  }

 private:
  template <class... Args>
  using ResultOf = std::invoke_result_t<Callable&, const ConfigType&, Args&...>;
  /// The default could not run before anything was measured.
  struct DefaultFailed {
    std::exception_ptr thrown;  ///< null: it returned an error
  };

  template <class New>
  AutotunedFunction<ConfigType, Callable, New> with_callables(New callables) {
    return {std::move(*this), std::move(callables)};
  }
  template <class, class, class>
  friend class AutotunedFunction;
  template <class Others>
  AutotunedFunction(AutotunedFunction<ConfigType, Callable, Others>&& other, Callables callables)
      : Problems(std::move(static_cast<detail::FunctionProblems<ConfigType, Others>&>(other)),
                 std::move(callables)),
        function_(std::move(other.function_)) {}

  template <class... Args>
  ResultOf<Args...> run(std::uint32_t config, Args&... args) {
    return std::invoke(function_, configs_[config], args...);
  }

  template <class... Args>
  ResultOf<Args...> run_settled(Problem& problem, std::uint32_t config, Args&... args) {
    using Result = ResultOf<Args...>;
    if (config == problem.kept.front()) return run(config, args...);
    try {
      if constexpr (std::is_void_v<Result>) {
        return run(config, args...);
      } else {
        Result result = run(config, args...);
        if (!detail::is_failure(result)) return static_cast<Result&&>(result);
        detail::note_returned(result);
      }
    } catch (...) {
      detail::note_exception();  // the default says whether it was the config
    }
    drop(problem, config);
    return run(problem.kept.front(), args...);
  }

  void measure_hints() {
    if (options().hints.empty() || contextune_current_place() != contextune_place_free) return;
    if (!claim_hints()) return;
    if constexpr (Callables::has_inputs && Callables::has_size) {
      for (const std::uint64_t size : options().hints) tune(size);
    } else {
      refuse("it has hints, but does not say its size() and inputs() for them");
    }
  }

  template <class... Args>
  ResultOf<Args...> call_slowly(const CallOptions& call, Args&... args) {
    if (!prepare()) return run_undeclared(args...);
    if (call.tune) measure_hints();
    void* const communicator =
        call.communicator != nullptr ? call.communicator : options().communicator;
    if (is_full() && find_problem(communicator, args...) == nullptr)
      return run(default_of(args...), args...);
    Problem& problem = problem_of(communicator, args...);
    say_untuned(problem, call.verbose || options().verbose);
    const std::uint32_t known = call.tune ? settled(problem) : problem.kept.front();
    if (!call.set.empty()) {
      const std::uint32_t base = known == CONTEXTUNE_UNSETTLED ? problem.kept.front() : known;
      return run_override(problem, base, call, args...);
    }
    if (known == CONTEXTUNE_UNSETTLED) return run_unsettled(problem, call.verbose, args...);
    if (call.verbose) say(problem, "runs " + configs()[known].to_string());
    return run_settled(problem, known, args...);
  }

  /// Without a device the space is that of none, and its first config that is wanted runs.
  template <class... Args>
  ResultOf<Args...> run_undeclared(Args&... args) {
    for (const ConfigType& config : space_.of_device(current_device())) {
      if constexpr (Callables::has_prune) {
        if (!std::invoke(callables_.prune, config, args...)) continue;
      }
      return std::invoke(function_, config, args...);
    }
    refuse("its config space has no config to run where no device is known; give it one");
  }

  template <class... Args>
  ResultOf<Args...> run_override(const Problem& problem, std::uint32_t base,
                                 const CallOptions& call, Args&... args) {
    const Config wanted = override_of(configs()[base], call.set);
    if (call.verbose) say(problem, "runs " + wanted.to_string() + ", as the call says");
    if constexpr (std::is_same_v<ConfigType, Config>) {
      return std::invoke(function_, wanted, args...);
    } else {
      for (std::uint32_t i = 0; i < configs_.size(); ++i)
        if (configs()[i] == wanted) return run(i, args...);
      refuse("a call sets '" + call.set.to_string() + "', and its space has no config '" +
             wanted.to_string() + "'");
    }
  }

  template <class... Args>
  ResultOf<Args...> run_unsettled(Problem& problem, bool verbose, Args&... args) {
    const std::uint32_t by_default = problem.kept.front();
    const auto told = [&](std::uint32_t config) {
      if (verbose) say(problem, "runs " + configs()[config].to_string());
      return config;
    };
    switch (contextune_current_place()) {
      case contextune_place_free:
        break;
      case contextune_place_region:
        problem.near.store(nullptr, std::memory_order_relaxed);
        return detail::launch_in_call<ResultOf<Args...>>(
            handle(), problem.number, by_default,
            [&](std::uint32_t config) -> ResultOf<Args...> { return run(told(config), args...); });
      case contextune_place_untuned:
      case contextune_place_capture:
        return run(told(by_default), args...);
    }
    if (problem.size && options().unseen == UnseenSize::Default)
      return run(told(by_default), args...);
    if (problem.size && options().unseen == UnseenSize::Nearest && find_near(problem)) {
      const std::uint32_t near = settled(problem);
      if (near != CONTEXTUNE_UNSETTLED) return run_settled(problem, told(near), args...);
    }
    // Once it is tuned it may be another problem's place, where the default cannot run.
    void* const communicator = problem.communicator;
    if constexpr (std::is_void_v<ResultOf<Args...>>) {
      tune_now(problem, args...);
      if (verbose || options().verbose) say_settled(communicator, args...);
    } else {
      ResultOf<Args...> value = tune_now(problem, args...);
      if (verbose || options().verbose) say_settled(communicator, args...);
      return static_cast<ResultOf<Args...>&&>(value);
    }
  }
  template <class... Args>
  void say_settled(void* communicator, Args&... args) {
    const Problem& problem = problem_of(communicator, args...);
    const std::uint32_t config = settled(problem);
    if (problem.is_disagreed.load(std::memory_order_relaxed))
      say(problem, std::string("was not tuned: ") + contextune_error());
    else if (config != CONTEXTUNE_UNSETTLED)
      say(problem, "was tuned, and runs " + configs()[config].to_string());
  }

  template <class... Args>
  ResultOf<Args...> tune_now(Problem& first, Args&... args) {
    Reasons failures;
    std::unique_ptr<Problem> rest;  // of the configs, where the default cannot run
    for (;;) {
      if (rest && rest->number == Problem::untuned) {
        return run(publish(first, std::move(rest)).kept.front(), args...);
      }
      Problem& problem = rest ? *rest : first;
      bool default_ran = false;
      const auto body = [&]() -> ResultOf<Args...> {
        return detail::launch_in_call<ResultOf<Args...>>(
            handle(), problem.number, problem.kept.front(),
            [&](std::uint32_t config) -> ResultOf<Args...> {
              const bool is_default = config == problem.kept.front();
              return attempt(config, is_default ? &default_ran : nullptr, failures, args...);
            });
      };
      const auto finish = [&](const RegionLoop& loop) {
        problem.is_disagreed.store(loop.is_untuned(), std::memory_order_relaxed);
        if (rest) publish(first, std::move(rest));
        note_settled();
      };
      try {
        RegionLoop loop(handle(), problem.number, region_options(problem.communicator));
        if constexpr (std::is_void_v<ResultOf<Args...>>) {
          detail::run_loop(loop, body);
          return finish(loop);
        } else {
          ResultOf<Args...> value = detail::run_loop(loop, body);
          finish(loop);
          return static_cast<ResultOf<Args...>&&>(value);
        }
      } catch (const DefaultFailed& failed) {
        rest = without_default(problem, failures, failed.thrown);
      }
    }
  }

  /// Runs a config and notes why it failed.
  /// @param default_ran of the default only: whether it ever ran
  template <class... Args>
  ResultOf<Args...> attempt(std::uint32_t config, bool* default_ran, Reasons& failures,
                            Args&... args) {
    using Result = ResultOf<Args...>;
    const auto note = [&](std::string why) {
      const auto same = [&](const auto& one) { return one.first == config; };
      if (std::none_of(failures.begin(), failures.end(), same))
        failures.emplace_back(config, std::move(why));
      // Once it ran, what it throws is about something else, and the caller's.
      if (default_ran != nullptr && !*default_ran) throw DefaultFailed{std::current_exception()};
    };
    try {
      if constexpr (std::is_void_v<Result>) {
        run(config, args...);
        if (default_ran != nullptr) *default_ran = true;
      } else {
        Result result = run(config, args...);
        if (detail::is_failure(result)) {
          if constexpr (std::is_enum_v<Result>)
            note("returned error " + std::to_string(static_cast<std::int64_t>(result)));
        } else if (default_ran != nullptr) {
          *default_ran = true;
        }
        return static_cast<Result&&>(result);
      }
    } catch (const DefaultFailed&) {
      throw;
    } catch (const std::exception& error) {
      note(error.what());
      throw;
    } catch (...) {
      note("threw something that is not a std::exception");
      throw;
    }
  }

  Callable function_;
};

}  // namespace contextune
