#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <contextune/autotuned_base.hpp>
#include <contextune/device.hpp>
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
    if (space_.of_device) {
      this->create();
    } else {
      this->create(described_all(space_.listed));
      configs_ = std::move(space_.listed);
    }
  }
  /// The same function with other callables.
  template <class Others>
  FunctionProblems(FunctionProblems<ConfigType, Others>&& other, Callables callables)
      : AutotunedBase(std::move(static_cast<AutotunedBase&>(other))),
        space_(std::move(other.space_)),
        configs_(std::move(other.configs_)),
        callables_(std::move(callables)) {}

  /// The configs that one call has listed.
  struct Listed {
    bool is_of_call = false;  ///< no device is known: they are this call's alone
    std::vector<ConfigType> configs;
    std::vector<Config> texts;
  };
  /// Lists the configs for a device.
  [[nodiscard]] Listed list(const contextune_device& device, contextune_space& space) {
    Listed made;
    made.is_of_call = device.num_sms == 0;
    made.configs = space_.of_device(made.is_of_call ? Device{} : current_device());
    made.texts = described_all(made.configs);
    this->add_configs(space, made.texts);
    return made;
  }
  /// They are the function's from now on. By whoever the library tells, one at a time.
  void take(Listed&& listed) noexcept {
    this->set_configs(std::move(listed.texts));
    configs_ = std::move(listed.configs);
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
    return options().buckets.bucket_of(size_of(args...));
  }
  template <class... Args>
  std::uint64_t size_of(Args&... args) {
    return static_cast<std::uint64_t>(std::invoke(callables_.size, args...));
  }
  /// The number of the problem of a call, new or not; CONTEXTUNE_UNTUNED: nothing is kept of it.
  template <class... Args>
  std::uint32_t problem_of(void* communicator, Args&... args) {
    CallKey at = key_of_call(communicator, args...);
    if (const KnownProblem* const known = find(at)) return known->number;
    Key key;
    if constexpr (Callables::has_key) key = key_of_result(std::invoke(callables_.key, args...));
    if constexpr (Callables::has_size) {
      const std::uint64_t size = size_of(args...);
      return this->add(std::move(at), key, &size, communicator);
    } else {
      return this->add(std::move(at), key, nullptr, communicator);
    }
  }

  /// Whether a problem keeps a config; what else is known of that is noted.
  template <class... Args>
  contextune_ruled_out prune(const ConfigType& config, Args&... args) {
    if constexpr (Callables::has_shape) {
      const Device device = current_device();
      const LaunchShape shape = std::invoke(callables_.shape, config, args...);
      if (const std::string why = why_not(shape, device); !why.empty()) {
        contextune_note_failure(why.c_str());
        return contextune_ruled_out_by_device;
      }
      if constexpr (Callables::has_kernel) {
        const std::string why = why_not(shape, limits(config, args...), device);
        if (!why.empty()) {
          contextune_note_failure(why.c_str());
          return contextune_ruled_out_by_kernel;
        }
      }
    }
    if constexpr (Callables::has_prune) {
      if (!std::invoke(callables_.prune, config, args...)) return contextune_ruled_out_by_author;
    }
    return contextune_kept;
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
  std::vector<ConfigType> configs_;  ///< as many as configs(); written before they are known
  Callables callables_;

 private:
  [[nodiscard]] static std::vector<Config> described_all(const std::vector<ConfigType>& configs) {
    std::vector<Config> texts;
    for (const ConfigType& config : configs) texts.push_back(described(config));
    return texts;
  }

  template <class, class>
  friend class FunctionProblems;
};

}  // namespace contextune::detail
