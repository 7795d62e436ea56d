#include "environment/variables.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>
#include <string>

namespace contextune {
namespace {

using Entries = std::vector<std::string>;

// Never freed: values are pointed to.
constinit std::atomic<const Entries*> kept{nullptr};

/// The value in "NAME=VALUE", if it is of that name.
const char* value_in(const char* entry, std::string_view name) noexcept {
  const std::string_view text(entry);
  return text.size() > name.size() && text[name.size()] == '=' && text.starts_with(name)
             ? entry + name.size() + 1
             : nullptr;
}

}  // namespace

void keep_variables() {
  auto* const copied = new Entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    copied->emplace_back(*entry);
  }
  const Entries* expected = nullptr;
  if (!kept.compare_exchange_strong(expected, copied)) delete copied;
}

const char* variable(std::string_view name) noexcept {
  if (const Entries* const entries = kept.load(std::memory_order_acquire)) {
    for (const std::string& entry : *entries) {
      if (const char* const value = value_in(entry.c_str(), name)) return value;
    }
    return nullptr;
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (const char* const value = value_in(*entry, name)) return value;
  }
  return nullptr;
}

const char* trusted_variable(std::string_view name) noexcept {
  return getauxval(AT_SECURE) == 0 ? variable(name) : nullptr;
}

std::vector<std::string_view> variables() {
  std::vector<std::string_view> all;
  if (const Entries* const entries = kept.load(std::memory_order_acquire)) {
    all.assign(entries->begin(), entries->end());
    return all;
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    all.emplace_back(*entry);
  }
  return all;
}

}  // namespace contextune
