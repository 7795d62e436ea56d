#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <contextune/function_problems.hpp>
#include <contextune/kept_result.hpp>
#include <contextune/thread_end.hpp>
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
  using Problems::configs_;
  using Problems::find;
  using Problems::handle;
  using Problems::key_of_call;
  using Problems::problem_of;
  using typename AutotunedBase::CallFrame;

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
    const detail::KnownProblem* const known = find(key_of_call(options().communicator, args...));
    if (known != nullptr) {
      const std::uint32_t config = contextune_function_settled(handle(), known->number);
      if (config != CONTEXTUNE_UNSETTLED) return run_settled(known->number, config, args...);
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
          const CallOptions call;
          Frame<std::remove_reference_t<decltype(args)>...> frame(*this, call, args...);
          const std::uint32_t problem = problem_of(options().communicator, args...);
          const int status = contextune_function_tune(handle(), problem, &frame.given);
          frame.check(status);
          return status == 1;
        },
        arguments);
  }

 private:
  template <class... Args>
  using ResultOf = std::invoke_result_t<Callable&, const ConfigType&, Args&...>;
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

  /// A call through the C functions: its arguments, what it has come to, and its callbacks.
  template <class... Args>
  struct Frame : CallFrame {
    using Result = ResultOf<Args...>;

    Frame(AutotunedFunction& called, const CallOptions& call, Args&... all)
        : CallFrame(called, call), self(called), args(all...) {
      this->given.run = &Frame::run;
      if constexpr (Callables::has_shape || Callables::has_prune) this->given.prune = &Frame::prune;
      if (self.space_.of_device) {
        this->given.space = &Frame::list;
        this->given.listed = &Frame::take;
      }
      if constexpr (Callables::has_inputs && Callables::has_size) this->given.hint = &Frame::hint;
      if constexpr (std::is_same_v<ConfigType, Config>)
        this->given.run_changed = &Frame::run_changed;
    }

    AutotunedFunction& self;
    std::tuple<Args&...> args;
    typename Problems::Listed listed;
    detail::KeptResult<Result> result;

   private:
    static Frame& of(void* user) noexcept {
      return static_cast<Frame&>(*static_cast<CallFrame*>(user));
    }
    [[nodiscard]] const ConfigType& config(std::uint32_t number) const {
      return listed.is_of_call ? listed.configs[number] : self.configs_[number];
    }
    /// What `callback` gives; -1 for what it throws, which is kept. A thread may end in it.
    template <class Callback>
    int guarded(const Callback& callback) {
      this->thrown = nullptr;
      try {
        return callback();
      }
      CONTEXTUNE_PASS_THREAD_END
      catch (...) {
        detail::note_exception();
        this->thrown = std::current_exception();
        return CONTEXTUNE_FUNCTION_LEFT;
      }
    }
    int run_with(const ConfigType& with, bool counts) {
      if (counts) result.forget();
      return std::apply(
          [&](Args&... all) {
            if constexpr (std::is_void_v<Result>) {
              std::invoke(self.function_, with, all...);
              return 0;
            } else {
              Result value = std::invoke(self.function_, with, all...);
              const bool is_failure = detail::is_failure(value);
              if (is_failure) detail::note_returned(value);
              if (counts) result.keep(static_cast<Result&&>(value));
              return is_failure ? 1 : 0;
            }
          },
          args);
    }

    static int run(void* user, std::uint32_t number, int counts) {
      Frame& frame = of(user);
      return frame.guarded([&] { return frame.run_with(frame.config(number), counts != 0); });
    }
    static int run_changed(void* user, std::uint32_t base, const char* /*text*/) {
      Frame& frame = of(user);
      return frame.guarded([&] {
        Config changed = frame.self.configs()[base];
        for (const auto& [parameter, value] : frame.set.entries()) changed.set(parameter, value);
        if constexpr (std::is_same_v<ConfigType, Config>) return frame.run_with(changed, true);
        return 0;
      });
    }
    static int prune(void* user, std::uint32_t number) {
      Frame& frame = of(user);
      return frame.guarded([&] {
        return std::apply(
            [&](Args&... all) {
              return static_cast<int>(frame.self.Problems::prune(frame.config(number), all...));
            },
            frame.args);
      });
    }
    static int list(void* user, const contextune_device* device, contextune_space* space) {
      Frame& frame = of(user);
      return frame.guarded([&] {
        frame.listed = frame.self.Problems::list(*device, *space);
        return 0;
      });
    }
    static void take(void* user) noexcept {
      Frame& frame = of(user);
      frame.self.Problems::take(std::move(frame.listed));
    }
    static int hint(void* user, std::uint64_t size) {
      Frame& frame = of(user);
      return frame.guarded([&] {
        if constexpr (Callables::has_inputs && Callables::has_size) frame.self.tune(size);
        return 0;
      });
    }
  };

  template <class... Args>
  ResultOf<Args...> call_slowly(const CallOptions& call, Args&... args) {
    Frame<Args...> frame(*this, call, args...);
    void* const communicator =
        call.communicator != nullptr ? call.communicator : options().communicator;
    const std::uint32_t problem = problem_of(communicator, args...);
    frame.check(contextune_function_call(handle(), problem, &frame.given));
    return frame.result.take();
  }

  template <class... Args>
  ResultOf<Args...> run_settled(std::uint32_t problem, std::uint32_t config, Args&... args) {
    using Result = ResultOf<Args...>;
    const auto is_default = [&] {
      return config == contextune_function_default(handle(), problem);
    };
    try {
      if constexpr (std::is_void_v<Result>) {
        return std::invoke(function_, configs_[config], args...);
      } else {
        Result result = std::invoke(function_, configs_[config], args...);
        if (!detail::is_failure(result) || is_default()) return static_cast<Result&&>(result);
        detail::note_returned(result);
      }
    }
    CONTEXTUNE_PASS_THREAD_END
    catch (...) {
      if (is_default()) throw;
      detail::note_exception();  // the default says whether it was the config
    }
    contextune_function_drop(handle(), problem, config);
    return std::invoke(function_, configs_[contextune_function_default(handle(), problem)],
                       args...);
  }

  Callable function_;
};

}  // namespace contextune
