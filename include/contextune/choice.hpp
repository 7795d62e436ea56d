#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <contextune/contextune.h>
#include <contextune/choice_options.hpp>
#include <contextune/config.hpp>
#include <contextune/config_space.hpp>
#include <contextune/key.hpp>
#include <contextune/key_words.hpp>
#include <contextune/problem_table.hpp>
#include <contextune/thread_end.hpp>
#include <contextune/tunable_call.hpp>

namespace contextune {

/// The part of a Choice that does not depend on its signature.
class ChoiceBase {
 public:
  ChoiceBase(const ChoiceBase&) = delete;
  ChoiceBase& operator=(const ChoiceBase&) = delete;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 protected:
  /// @throws Error for a name or a tolerance that cannot be used
  ChoiceBase(std::string name, const ChoiceOptions& options);
  ~ChoiceBase() = default;

  struct Way {
    std::string name;
    std::vector<Config> configs;
    ImplementationOptions options;
  };
  void add_way(std::string name, const ConfigSpace* space, contextune_fusion fusion,
               ImplementationOptions options);

  /// The number of a problem; of one that was met before, without lock or allocation.
  /// @param given a whole number or a Key: what the author's key function returned, if it has one
  template <class Given>
  [[nodiscard]] std::uint32_t number_of(const Problem& problem, const Given& given, bool has_key) {
    detail::KeyWords words;
    const Key* authors = nullptr;
    if constexpr (std::is_same_v<Given, Key>) {
      authors = &given;
      words.add(given.hash());
    } else {
      words.add(static_cast<std::uint64_t>(given));
    }
    if (problem.bytes != 0) {
      words.add(buckets_.bucket_of(problem.bytes).high);
    } else if (!problem.type.empty()) {
      words.add(0);
    }
    // A longer type is asked for in every call.
    const bool fits = words.add_text(problem.type);
    const detail::KnownProblem* const known = fits ? problems_.find(words, authors) : nullptr;
    if (known != nullptr) return known->number;
    return add_problem({words, authors == nullptr ? std::nullopt : std::optional(*authors)},
                       problem, has_key ? detail::key_of_result(given) : Key(), fits);
  }
  [[nodiscard]] std::vector<ChoiceTiming> timings_of(std::uint32_t number) const;
  /// Perhaps: nothing was measured yet, also where a call would do without.
  [[nodiscard]] bool is_to_be_measured(std::uint32_t number) const;
  [[nodiscard]] const Config& config(std::size_t way, std::size_t config) const noexcept {
    return ways_[way]->configs[config];
  }
  [[nodiscard]] contextune_choice* handle() const noexcept { return handle_; }
  /// @throws Error with the text of the failed call
  static void check(int status);

  /// True: the caller is to measure the hints now, which nobody has yet.
  [[nodiscard]] bool claim_hints() noexcept {
    return !hints_claimed_.load(std::memory_order_acquire) &&
           contextune_current_place() == contextune_place_free && !hints_claimed_.exchange(true);
  }
  [[nodiscard]] const std::vector<std::uint64_t>& hints() const noexcept { return hints_; }
  /// @throws Error always, with that text
  [[noreturn]] void refuse(const std::string& what) const;

  static void name_memory(const ChoiceMemory& memory, std::vector<contextune_memory>& list);

 private:
  [[nodiscard]] std::uint32_t add_problem(detail::CallKey at, const Problem& problem,
                                          const Key& key, bool is_kept);
  static int supports(void* way, const contextune_problem* problem) noexcept;
  static void abandon(void* way) noexcept;

  std::string name_;
  int ranks_;
  Buckets buckets_;
  UnseenSize unseen_;
  std::vector<std::uint64_t> hints_;
  std::atomic<bool> hints_claimed_;  ///< or there are none
  contextune_choice* handle_;        ///< lives as long as the process
  std::vector<std::unique_ptr<Way>> ways_;
  detail::ProblemTable problems_;
};

template <class Signature>
class Choice;

/// An operation with several implementations, each with configs of its own. An implementation is
/// any number of kernels, copies and NCCL calls on streams of the current device.
///
///     contextune::Choice<ncclResult_t(const float*, float*, std::size_t, cudaStream_t)>
///     all_reduce(
///         "all_reduce", {.ranks = 4, .tolerance = "f32:1e-5"});
///     all_reduce.size([](auto*, auto*, std::size_t n, auto) { return n * sizeof(float); })
///         .buffers([](auto* in, auto* out, std::size_t n, auto) {
///           return contextune::ChoiceMemory{{{out, n * sizeof(float)}}};
///         })
///         .add("nccl", with_nccl)  // the first is the default
///         .add("ring", contextune::ConfigSpace().parameter("chunk", {65536, 262144}), with_a_ring,
///              {.supports = [](const contextune::Problem& p) { return p.bytes >= 65536; }});
///     all_reduce(in, out, n, stream);
///
/// An implementation is called with its config and the arguments, as lvalues. It has failed if it
/// throws, or returns an enum that is not 0. Adding one runs nothing; add all before the first
/// call.
///
/// A problem is searched when it is first called for, in its region's passes as a Tunable is. The
/// cost of a config is the time from the first start to the last end of its work in one call.
/// Outside of a region, or with Select::Immediate, the problem is searched at once, in a region of
/// its own that repeats the call. The repetitions use the arguments that `make_inputs` gives, or
/// else the memory that `buffers` names, which is put back before each repetition. If the choice is
/// `repeatable`, they use memory as it is. Without any of these the problem keeps its default.
///
/// If `buffers` names outputs, each implementation is first run once against the default, on the
/// same inputs. An implementation that computes something else is never chosen. With outputs, the
/// default and each implementation thus run once a problem beside the caller's own work, live mode
/// included. With `make_inputs` or `buffers` outside of a region that is searched, the repetitions
/// do so, too. Nothing else does.
///
/// Several ranks agree on all of this: they try the same implementation at the same time. An
/// implementation that is wrong or fails on one rank is given up on all. Nobody waits longer than
/// presync_timeout for a rank that does not come; all run the default then. In a live region they
/// run the winner found elsewhere (by timings(), say), else the default. An implementation that
/// waits for its peers and fails on some of them only needs `abandon`. Without it, the work begun
/// on the others waits for ever, as an NCCL call would that one rank left out.
///
/// Each device that it is called on has winners of its own, as for functions, unless several ranks
/// do it.
///
/// Any thread may call it, if the callables allow that. With several ranks, one thread at a time.
template <class Result, class... Args>
class Choice<Result(Args...)> : public ChoiceBase {
  static_assert(!std::is_reference_v<Result>, "a choice gives a value, or nothing");

 public:
  using Function = std::function<Result(const Config&, std::add_lvalue_reference_t<Args>...)>;

  /// @throws Error for a name or a tolerance that cannot be used
  explicit Choice(std::string name, const ChoiceOptions& options = {})
      : ChoiceBase(std::move(name), options) {}

  /// Adds an implementation with one way to run.
  /// @throws Error for a name that is taken, and after the first call
  Choice& add(std::string name, Function function, ImplementationOptions options = {}) {
    return add(contextune_fusion_auto, std::move(name), nullptr, std::move(function),
               std::move(options));
  }
  /// @throws Error as above, or if the space is empty
  Choice& add(std::string name, const ConfigSpace& space, Function function,
              ImplementationOptions options = {}) {
    return add(contextune_fusion_auto, std::move(name), &space, std::move(function),
               std::move(options));
  }
  /// The same for an implementation that is fused with other work, or not; see Fusion.
  Choice& add_fused(std::string name, const ConfigSpace& space, Function function,
                    ImplementationOptions options = {}) {
    return add(contextune_fusion_on, std::move(name), &space, std::move(function),
               std::move(options));
  }
  Choice& add_fused(std::string name, Function function, ImplementationOptions options = {}) {
    return add(contextune_fusion_on, std::move(name), nullptr, std::move(function),
               std::move(options));
  }
  Choice& add_unfused(std::string name, const ConfigSpace& space, Function function,
                      ImplementationOptions options = {}) {
    return add(contextune_fusion_off, std::move(name), &space, std::move(function),
               std::move(options));
  }
  Choice& add_unfused(std::string name, Function function, ImplementationOptions options = {}) {
    return add(contextune_fusion_off, std::move(name), nullptr, std::move(function),
               std::move(options));
  }

  /// How many bytes a call is about. Sizes in one of ChoiceOptions::buckets are one problem.
  Choice& size(std::function<std::size_t(std::add_lvalue_reference_t<Args>...)> bytes) {
    size_ = std::move(bytes);
    return *this;
  }
  /// The type of the elements, "f32"; text that outlives the call.
  Choice& type(std::function<std::string_view(std::add_lvalue_reference_t<Args>...)> type) {
    type_ = std::move(type);
    return *this;
  }
  /// `key` gives what else makes two calls different problems, as key_words.hpp says; a single
  /// whole number costs least.
  template <class KeyFunction>
  Choice& key(KeyFunction key) {
    using Given = std::invoke_result_t<KeyFunction&, std::add_lvalue_reference_t<Args>...>;
    if constexpr (std::is_integral_v<Given>) {
      number_ = std::move(key);
    } else {
      key_ = [key = std::move(key)](std::add_lvalue_reference_t<Args>... args) mutable {
        return detail::key_of_result(std::invoke(key, args...));
      };
    }
    return *this;
  }
  /// The device memory of a call.
  Choice& buffers(std::function<ChoiceMemory(std::add_lvalue_reference_t<Args>...)> memory) {
    memory_ = std::move(memory);
    return *this;
  }
  /// Arguments of a call on memory of its own, for a problem; they live until it is measured.
  Choice& make_inputs(std::function<std::tuple<std::decay_t<Args>...>(const Problem&)> make) {
    make_ = std::move(make);
    return *this;
  }

  /// Does the operation. Passes on exceptions of the implementation that did the caller's work, and
  /// of the hints. A settled choice is called without lock and allocation (but for those of the
  /// hints).
  Result operator()(Args... args) {
    const Problem problem = problem_of(args...);
    if (claim_hints()) measure_hints(problem, args...);
    const std::uint32_t number = number_with(problem, args...);
    Call call(*this, std::tuple<std::add_lvalue_reference_t<Args>...>(args...));
    const contextune_choice_want wants = contextune_choice_wants(handle(), number);
    if (wants != contextune_want_call) name(call, args...);
    std::optional<Inputs> inputs;
    if (wants == contextune_want_alone && make_) inputs.emplace(*this, problem);
    // The outcome of the caller's run is in `call`.
    static_cast<void>(
        contextune_choice_call(handle(), number, &call.run, inputs ? &inputs->call.run : nullptr));
    return call.take();
  }

  /// The timings of a problem of that size, type and key, from an earlier run if its winner is
  /// stored. If nothing was measured, it is measured now, on the arguments that `make_inputs`
  /// gives. Empty: contextune_error() says why. The list is empty before the program has
  /// initialised CUDA, which is not done for it, and where nothing is tuned at all
  /// (contextune_state_reason()). `make_inputs` is then not called.
  [[nodiscard]] std::vector<ChoiceTiming> timings(const Problem& problem, std::int64_t number = 0) {
    return measure(problem, number_of(problem, number, static_cast<bool>(number_)));
  }
  [[nodiscard]] std::vector<ChoiceTiming> timings(const Problem& problem, const Key& key) {
    return measure(problem, number_of(problem, key, true));
  }

 private:
  /// A call and its arguments, as the C functions see them.
  struct Call {
    Call(Choice& of, std::tuple<std::add_lvalue_reference_t<Args>...> given)
        : choice(of), arguments(given) {
      run.size = sizeof run;
      run.user = this;
      run.run = &Call::run_way;
    }
    static int run_way(void* self, std::size_t way, std::size_t config) {
      Call& call = *static_cast<Call*>(self);
      call.failure = nullptr;
      try {
        const auto invoke = [&](auto&... args) {
          return call.choice.functions_[way](call.choice.config(way, config), args...);
        };
        if constexpr (std::is_void_v<Result>) {
          std::apply(invoke, call.arguments);
          return 0;
        } else {
          call.result.emplace(std::apply(invoke, call.arguments));
          if (!detail::is_failure(*call.result)) return 0;
          detail::note_returned(*call.result);
          return 1;
        }
      }
      CONTEXTUNE_PASS_THREAD_END
      catch (...) {
        detail::note_exception();
        call.failure = std::current_exception();
        return 1;
      }
    }
    Result take() {
      if (failure) std::rethrow_exception(failure);
      if constexpr (!std::is_void_v<Result>) return std::move(*result);
    }

    struct Nothing {};
    Choice& choice;
    std::tuple<std::add_lvalue_reference_t<Args>...> arguments;
    std::conditional_t<std::is_void_v<Result>, Nothing,
                       std::optional<std::conditional_t<std::is_void_v<Result>, int, Result>>>
        result{};
    std::exception_ptr failure;
    std::vector<contextune_memory> memory;
    contextune_choice_run run{};
  };
  /// The arguments that `make_inputs` gives, and a call on them.
  struct Inputs {
    Inputs(Choice& choice, const Problem& problem)
        : values(choice.make_(problem)),
          call(choice, std::apply(
                           [](auto&... args) {
                             return std::tuple<std::add_lvalue_reference_t<Args>...>(args...);
                           },
                           values)) {
      std::apply([&](auto&... args) { choice.name(call, args...); }, values);
    }
    std::tuple<std::decay_t<Args>...> values;
    Call call;
  };

  Choice& add(contextune_fusion fusion, std::string name, const ConfigSpace* space,
              Function function, ImplementationOptions options) {
    add_way(std::move(name), space, fusion, std::move(options));
    functions_.push_back(std::move(function));
    return *this;
  }
  [[nodiscard]] Problem problem_of(std::add_lvalue_reference_t<Args>... args) const {
    Problem problem;
    if (size_) problem.bytes = size_(args...);
    if (type_) problem.type = type_(args...);
    return problem;
  }
  [[nodiscard]] std::uint32_t number_with(const Problem& problem,
                                          std::add_lvalue_reference_t<Args>... args) {
    if (key_) return number_of(problem, key_(args...), true);
    return number_of(problem, number_ ? number_(args...) : 0, static_cast<bool>(number_));
  }
  void name(Call& call, std::add_lvalue_reference_t<Args>... args) const {
    if (!memory_) return;
    name_memory(memory_(args...), call.memory);
    call.run.memory = call.memory.data();
    call.run.num_memory = call.memory.size();
  }
  void measure_hints(Problem problem, std::add_lvalue_reference_t<Args>... args) {
    if (!make_ || !size_)
      refuse("it has hints, but does not say its size() and make_inputs() for them");
    for (const std::uint64_t size : hints()) {
      problem.bytes = size;
      static_cast<void>(measure(problem, number_with(problem, args...)));
    }
  }
  [[nodiscard]] std::vector<ChoiceTiming> measure(const Problem& problem, std::uint32_t index) {
    if (make_ && is_to_be_measured(index)) {
      Inputs inputs(*this, problem);
      if (contextune_choice_measure(handle(), index, &inputs.call.run) != 0) return {};
    }
    return timings_of(index);
  }

  std::vector<Function> functions_;
  std::function<std::size_t(std::add_lvalue_reference_t<Args>...)> size_;
  std::function<std::string_view(std::add_lvalue_reference_t<Args>...)> type_;
  std::function<std::int64_t(std::add_lvalue_reference_t<Args>...)> number_;
  std::function<Key(std::add_lvalue_reference_t<Args>...)> key_;
  std::function<ChoiceMemory(std::add_lvalue_reference_t<Args>...)> memory_;
  std::function<std::tuple<std::decay_t<Args>...>(const Problem&)> make_;
};

}  // namespace contextune
