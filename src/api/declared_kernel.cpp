#include "api/declared_kernel.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "api/api_table.h"
#include "api/declared_rule.hpp"
#include "api/last_error.hpp"
#include "api/process.hpp"

namespace contextune::api {
namespace {

/// Whether any are pending: apart from them, for calls of functions and choices look.
constinit std::atomic<bool> any_pending{false};

/// Declarations that were made before there was a runtime, as static objects do. Never destroyed.
struct Pending {
  std::mutex mutex;
  std::vector<std::shared_ptr<DeclaredRule>> rules;

  std::vector<std::shared_ptr<DeclaredRule>> take() {
    const std::lock_guard lock(mutex);
    any_pending.store(false, std::memory_order_release);
    return std::exchange(rules, {});
  }
};

Pending& pending() {
  static auto* const kept = new Pending;
  return *kept;
}

}  // namespace

int declare_kernel(const contextune_kernel* kernel) noexcept {
  try {
    constexpr std::size_t least = offsetof(contextune_kernel, keys_by_size);
    if (kernel == nullptr || kernel->size < least) {
      return fail(
          "a kernel is declared with another version of contextune.h; set `size` to "
          "sizeof(contextune_kernel), and build with the header of this library");
    }
    // Fields that a program built with an older header does not have are 0.
    contextune_kernel declared{};
    std::memcpy(&declared, kernel, std::min(kernel->size, sizeof declared));
    declared.size = sizeof declared;
    auto rule = std::make_shared<DeclaredRule>(declared);
    if (intercept::Runtime* now = runtime()) {
      now->declare(std::move(rule));
      return 0;
    }
    Pending& kept = pending();
    std::unique_lock lock(kept.mutex);
    kept.rules.push_back(std::move(rule));
    any_pending.store(true, std::memory_order_release);
    lock.unlock();
    intercept::Runtime::at_start(&hand_over_declarations);
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

bool has_pending_declarations() noexcept {
  return any_pending.load(std::memory_order_acquire);
}

void hand_over_declarations(intercept::Runtime& runtime) noexcept {
  try {
    for (auto& rule : pending().take()) runtime.declare(std::move(rule));
  } catch (const std::exception& error) {
    runtime.log().fault(error.what());
  }
}

void hand_over_declarations(const contextune_api& other) noexcept {
  try {
    for (const auto& rule : pending().take()) {
      std::vector<const char*> configs;
      const contextune_kernel declared = rule->declaration(configs);
      static_cast<void>(other.declare_kernel(&declared));
    }
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

}  // namespace contextune::api
