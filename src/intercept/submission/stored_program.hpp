#pragma once

#include <string>
#include <string_view>

#include <contextune/key.hpp>

#include "core/trials/store.hpp"
#include "intercept/site/process_store.hpp"

namespace contextune::intercept {

/// The findings of earlier runs of this very program, with these arguments, about the region
/// `auto`. Any thread.
class StoredProgram {
 public:
  static constexpr const char* region = "auto";

  explicit StoredProgram(ProcessStore& store);

  /// Null: nothing that counts here.
  [[nodiscard]] const StoredSite* find(std::string_view site) const;

  /// Writes behind the scenes.
  /// @param site with this program's key
  void save(StoredSite site) const;

  [[nodiscard]] const Key& key() const noexcept { return key_; }
  /// The build of the program's file; empty: not known, and nothing is kept.
  [[nodiscard]] const std::string& build() const noexcept { return build_; }
  [[nodiscard]] ProcessStore& store() const noexcept { return store_; }

 private:
  ProcessStore& store_;
  Key key_;  ///< program and arguments
  std::string build_;
};

}  // namespace contextune::intercept
