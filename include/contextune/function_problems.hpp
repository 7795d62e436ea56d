#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <contextune/autotuned_base.hpp>
#include <contextune/error.hpp>
#include <contextune/function_callables.hpp>
#include <contextune/function_space.hpp>
#include <contextune/key_words.hpp>
#include <contextune/launch_limits.hpp>

namespace contextune::detail {

/// The part of an autotuned function that knows its configs and makes problems of calls, by the
/// author's callables.
template <class ConfigType, class Callables>
class FunctionProblems : public AutotunedBase {
 protected:
  FunctionProblems(std::string name, FunctionSpace<ConfigType> space, Callables callables,
                   AutotuneOptions options)
      : AutotunedBase(std::move(name), std::move(options)),
        space_(std::move(space)),
        callables_(std::move(callables)) {
    if (!space_.of_device) declare_all(std::move(space_.listed), nullptr);
  }
  /// The same function with other callables.
  template <class Others>
  FunctionProblems(FunctionProblems<ConfigType, Others>&& other, Callables callables)
      : AutotunedBase(std::move(static_cast<AutotunedBase&>(other))),
        space_(std::move(other.space_)),
        configs_(std::move(other.configs_)),
        callables_(std::move(callables)) {}

  /// Everything that comes before a problem can be looked for.
  /// @return false: nothing is known of the device that the space depends on
  bool prepare() {
    if (is_declared()) return true;
    const std::lock_guard lock(mutex());
    if (is_declared()) return true;
    const Device device = current_device();
    if (device.num_sms == 0) return false;
    declare_all(space_.of_device(device), &device);
    return true;
  }
  void declare_all(std::vector<ConfigType> configs, const Device* device) {
    std::vector<Config> texts;
    for (const ConfigType& config : configs) texts.push_back(described(config));
    configs_ = std::move(configs);
    declare(std::move(texts), device);
  }

  template <class... Args>
  CallKey key_of_call(void* communicator, Args&... args) {
    CallKey found;
    if (communicator != nullptr) found.words.add(reinterpret_cast<std::uintptr_t>(communicator));
    if constexpr (Callables::has_key) found.add(std::invoke(callables_.key, args...));
    if constexpr (Callables::has_size) found.words.add(bucket_of(args...).high);
    return found;
  }
  template <class... Args>
  SizeBucket bucket_of(Args&... args) {
    return options().buckets.bucket_of(
        static_cast<std::uint64_t>(std::invoke(callables_.size, args...)));
  }
  template <class... Args>
  Problem* find_problem(void* communicator, Args&... args) {
    return find(key_of_call(communicator, args...));
  }

  /// @throws Error if no config is left
  template <class... Args>
  Problem& problem_of(void* communicator, Args&... args) {
    CallKey at = key_of_call(communicator, args...);
    Problem* problem = find(at);
    if (problem == nullptr) {
      auto made = std::make_unique<Problem>();
      made->at = std::move(at);
      if constexpr (Callables::has_key)
        made->key = key_of_result(std::invoke(callables_.key, args...));
      if constexpr (Callables::has_size) {
        made->size = bucket_of(args...).typical();
        made->key.add("size", options().buckets.key_part(*made->size));
      }
      made->communicator = communicator;
      if (communicator != nullptr) add_group(*made);
      problem = &add(std::move(made), prune(args...));
    }
    if (problem->kept.empty()) throw Error(problem->failure);
    return *problem;
  }

  /// Some ranks of the job have winners of their own.
  static void add_group(Problem& made) {
    std::string text;
    if (!find_group(made.communicator, text)) {
      made.why_untuned = std::move(text);
    } else if (!text.empty()) {
      made.key.add("group", std::move(text));
    }
  }

  /// The config of a problem that nothing is kept of.
  /// @throws Error if no config is left
  template <class... Args>
  std::uint32_t default_of(Args&... args) {
    const Pruning pruning = prune(args...);
    if (pruning.kept.empty()) throw Error(this->failure_of(Key(), pruning));
    return pruning.kept.front();
  }

  template <class... Args>
  Pruning prune(Args&... args) {
    Pruning result;
    Device device;
    if constexpr (Callables::has_shape) device = current_device();
    for (std::uint32_t i = 0; i < configs_.size(); ++i) {
      const ConfigType& config = configs_[i];
      if constexpr (Callables::has_shape) {
        const LaunchShape shape = std::invoke(callables_.shape, config, args...);
        if (std::string why = why_not(shape, device); !why.empty()) {
          ++result.pruned.by_device;
          result.reasons.emplace_back(i, std::move(why));
          continue;
        }
        if constexpr (Callables::has_kernel) {
          if (std::string why = why_not(shape, limits(config, args...), device); !why.empty()) {
            ++result.pruned.by_kernel;
            result.reasons.emplace_back(i, std::move(why));
            continue;
          }
        }
      }
      if constexpr (Callables::has_prune) {
        if (!std::invoke(callables_.prune, config, args...)) {
          ++result.pruned.by_author;
          result.reasons.emplace_back(i, "prune rules it out");
          continue;
        }
      }
      result.kept.push_back(i);
    }
    return result;
  }
  template <class... Args>
  KernelLimits limits(const ConfigType& config, Args&... args) {
    using Kernel = std::remove_cvref_t<decltype(callables_.kernel)>;
    if constexpr (std::is_same_v<Kernel, KernelLimits>) {
      return callables_.kernel;
    } else if constexpr (std::is_class_v<Kernel>) {
      const auto kernel = std::invoke(callables_.kernel, config, args...);
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(kernel)>, KernelLimits>) {
        return kernel;
      } else {
        return kernel_limits(kernel);
      }
    } else {
      return kernel_limits(callables_.kernel);
    }
  }

  FunctionSpace<ConfigType> space_;
  std::vector<ConfigType> configs_;  ///< as many as configs(); written before they are declared
  Callables callables_;

 private:
  template <class, class>
  friend class FunctionProblems;
};

}  // namespace contextune::detail
