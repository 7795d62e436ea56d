#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <contextune/contextune.h>
#include <contextune/config.hpp>
#include <contextune/config_space.hpp>
#include <contextune/key.hpp>
#include <contextune/key_words.hpp>
#include <contextune/problem_table.hpp>
#include <contextune/tunable_call.hpp>

namespace contextune {

/// The part of a Tunable that does not depend on its callable: configs, and the problems seen so
/// far. Any thread.
class TunableBase {
 public:
  /// @throws Error if the space is empty, or its default is ruled out
  TunableBase(const std::string& name, const ConfigSpace& space);
  ~TunableBase();
  TunableBase(TunableBase&&) noexcept;
  TunableBase& operator=(TunableBase&&) noexcept;

  /// All configs; number 0 is the default.
  [[nodiscard]] const std::vector<Config>& configs() const noexcept { return configs_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// Passes of each config that do not count, and that do, where they differ from the region's. For
  /// problems that are first met from now on.
  /// @throws Error if `n_warmup` is negative or `n_repeat` is not positive
  void set_passes(int n_warmup, int n_repeat);

  /// A version of the code that calls run, as a hash of it: stored winners of another version do
  /// not count. For problems that are first called from now on.
  void set_version(const std::string& version);

  /// A call may then be any amount of work: kernels, copies and NCCL's collectives on any streams
  /// of one device. It costs the time from its first start to its last end, instead of the sum of
  /// its launches. To be called before the first call.
  void time_as_span();

 protected:
  /// Number of the problem of what a key function returned; equal keys have equal numbers. Without
  /// a lock, and for whole numbers without an allocation, once it was asked for.
  template <class Result>
  [[nodiscard]] std::uint32_t problem(const Result& result) const {
    detail::CallKey at;
    at.add(result);
    const detail::KnownProblem* const known = problems_->find(at);
    return known != nullptr ? known->number : add(std::move(at), detail::key_of_result(result));
  }

  [[nodiscard]] contextune_tunable* handle() const noexcept { return handle_; }

 private:
  [[nodiscard]] std::uint32_t add(detail::CallKey at, const Key& key) const;

  std::string name_;
  std::vector<Config> configs_;
  contextune_tunable* handle_ = nullptr;  ///< lives as long as the process
  std::unique_ptr<detail::ProblemTable> problems_;
};

/// The key function of a Tunable without one: every call is the same problem.
struct NoKey {};

/// A launch that has configs.
///
///     contextune::Tunable axpy("axpy", contextune::ConfigSpace().parameter("block", {256, 128,
///     512}),
///                              [](float*, int n) { return contextune::Key{{"n", n}}; },
///                              [](const contextune::Config& config, float* x, int n) {
///                                const int block = int(config.get_int("block"));
///                                kernel<<<(n + block - 1) / block, block>>>(x, n);
///                                return cudaGetLastError();
///                              });
///     axpy(x, n);
///
/// Inside a region it runs the config that the search wants. Outside of regions it runs the winner
/// for its key on this device if there is one, else the default. The default is the first config of
/// the space. The callable's launches from the calling thread are timed as one call, whatever
/// stream they use.
///
/// A config has failed to launch if the callable throws, or returns an enum (cudaError_t, CUresult)
/// that is not 0. The callable is then called once more with the default, so that results stay
/// right. That is why arguments reach it as lvalues, and why it should return cudaGetLastError()
/// rather than leave the error behind. With the default it is called once, and its exception or
/// result is the caller's.
///
/// Any thread may call it, if the callables allow that. Move-only; its problems and winners stay
/// with the process.
template <class Launch, class KeyFunction = NoKey>
class Tunable : public TunableBase {
 public:
  /// @throws Error if the space is empty, or its default is ruled out
  Tunable(const std::string& name, const ConfigSpace& space,
          Launch launch) requires std::is_same_v<KeyFunction, NoKey> : TunableBase(name, space),
                                                                       launch_(std::move(launch)) {}

  /// @param key gives what makes two calls the same problem, from the arguments of the call, as
  ///            key_words.hpp says
  /// @throws Error if the space is empty, or its default is ruled out
  Tunable(const std::string& name, const ConfigSpace& space, KeyFunction key, Launch launch)
      : TunableBase(name, space), launch_(std::move(launch)), key_(std::move(key)) {}

  /// Launches once, or twice if a config that was tried cannot be launched.
  /// Throws what the key function throws, and what the callable throws with the default.
  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    using Result = std::invoke_result_t<Launch&, const Config&, Args&...>;
    std::uint32_t number = 0;
    if constexpr (!std::is_same_v<KeyFunction, NoKey>) number = problem(std::invoke(key_, args...));
    return detail::launch_in_call<Result>(handle(), number, 0, [&](std::uint32_t config) -> Result {
      return std::invoke(launch_, configs()[config], args...);
    });
  }

 private:
  Launch launch_;
  [[no_unique_address]] KeyFunction key_;
};

template <class Launch>
Tunable(const char*, const ConfigSpace&, Launch) -> Tunable<Launch, NoKey>;
template <class Launch>
Tunable(std::string, const ConfigSpace&, Launch) -> Tunable<Launch, NoKey>;
template <class KeyFunction, class Launch>
Tunable(const char*, const ConfigSpace&, KeyFunction, Launch) -> Tunable<Launch, KeyFunction>;
template <class KeyFunction, class Launch>
Tunable(std::string, const ConfigSpace&, KeyFunction, Launch) -> Tunable<Launch, KeyFunction>;

}  // namespace contextune
