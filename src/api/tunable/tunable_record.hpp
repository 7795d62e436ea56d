#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <contextune/contextune.h>
#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "core/search/pruned_configs.hpp"
#include "intercept/site/region.hpp"

namespace contextune::api {

/// A problem of a tunable in one region, on one device. Written once, read by any thread.
struct TunableSite {
  intercept::Region* region = nullptr;
  int device = 0;
  intercept::Site* site = nullptr;  ///< null: cannot be tuned there
  TunableSite* next = nullptr;
};

/// Which configs a problem may run, and how many others there are. Written once.
struct KeptConfigs {
  std::vector<std::uint32_t> configs;  ///< of the tunable; the first is the default
  PrunedConfigs pruned;
};

/// A problem of a tunable and the sites that it has become.
struct TunableProblem {
  Key key;
  std::string text;
  std::atomic<const KeptConfigs*> kept{nullptr};  ///< null: all
  std::atomic<TunableSite*> sites{nullptr};
  std::atomic<bool> refused{false};       ///< it cannot have a region of its own
  std::atomic<std::uint32_t> foreign{0};  ///< its number in another copy, plus one

  [[nodiscard]] TunableSite* find(const intercept::Region* region, int device) const noexcept;
  /// The site of a region that has finished its search, the last that was met; null if there is
  /// none.
  [[nodiscard]] TunableSite* find_settled(int device) const noexcept;

  /// The tunable's number of a config that its sites number by themselves.
  [[nodiscard]] std::uint32_t outer(std::uint32_t config) const noexcept {
    const KeptConfigs* only = kept.load(std::memory_order_acquire);
    if (only == nullptr) return config;
    return only->configs[config < only->configs.size() ? config : 0];
  }
  [[nodiscard]] std::size_t num_configs(std::size_t of_tunable) const noexcept {
    const KeptConfigs* only = kept.load(std::memory_order_acquire);
    return only == nullptr ? of_tunable : only->configs.size();
  }
};

}  // namespace contextune::api

/// A tunable as the C functions know it. Never destroyed; any thread.
struct contextune_tunable {
  std::string name;       ///< as given
  std::string site_name;  ///< told apart from tunables of that name with other configs
  std::string build;      ///< of the program file that made it; empty: not known
  std::vector<std::string> config_texts;
  std::vector<contextune::Config> configs;
  std::atomic<int> n_warmup{-1};
  std::atomic<int> n_repeat{-1};
  std::atomic<bool> timed_as_span{false};

  std::atomic<contextune_tunable*> foreign{nullptr};  ///< the same in another copy of the library

  /// Null beyond the last. Without a lock.
  [[nodiscard]] contextune::api::TunableProblem* problem(std::uint32_t number) const noexcept {
    const auto chunk = static_cast<std::size_t>(std::bit_width(number + std::uint64_t{1})) - 1;
    if (number >= num_problems_.load(std::memory_order_acquire)) return nullptr;
    return &chunks_[chunk][number + std::uint64_t{1} - (std::uint64_t{1} << chunk)];
  }

  /// The number of a problem, new or not; no_problem when there are too many.
  [[nodiscard]] std::uint32_t number_of(const std::string& key_text);

  /// "gemm{n=4096}", "gemm{}" without a key: the region in which a problem is tuned by itself. A
  /// region that the program calls "gemm" is another one.
  [[nodiscard]] std::string region_name(const contextune::api::TunableProblem& problem) const {
    return site_name + "{" + problem.key.to_string() + "}";
  }

  static constexpr std::uint32_t no_problem = 0xffffffffU;
  static constexpr std::uint32_t max_problems = (1U << 16U) - 1;

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::atomic<std::uint32_t> num_problems_{0};
  /// Chunk i holds 2^i problems, so that none ever moves.
  std::array<std::unique_ptr<contextune::api::TunableProblem[]>, 16> chunks_;
};
