#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace contextune::detail {

/// The value of a run, until the call that it was for takes it: nothing, a reference or a value,
/// which may be move-only.
template <class Result>
class KeptResult {
 public:
  void forget() { value_.reset(); }
  void keep(Result&& result) { value_.emplace(std::move(result)); }
  [[nodiscard]] Result take() { return std::move(*value_); }

 private:
  std::optional<Result> value_;
};
template <class Referred>
class KeptResult<Referred&> {
 public:
  void forget() { value_ = nullptr; }
  void keep(Referred& result) { value_ = std::addressof(result); }
  [[nodiscard]] Referred& take() { return *value_; }

 private:
  Referred* value_ = nullptr;
};
template <>
class KeptResult<void> {
 public:
  void forget() {}
  void take() {}
};

}  // namespace contextune::detail
