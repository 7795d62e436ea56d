#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace contextune {

/// By how much a config's results may differ from the default's: a share of the larger of two
/// numbers of one floating-point type. A value.
class ResultTolerance {
 public:
  /// Not in a bit.
  ResultTolerance() = default;

  /// "f32:1e-5"; the type is f16, bf16, f32 or f64. Absent: the text is not of that form.
  [[nodiscard]] static std::optional<ResultTolerance> parse(std::string_view text);

  [[nodiscard]] bool is_bitwise() const noexcept { return type_ == Type::Bits; }

  /// Whether whatever agrees under `stricter` agrees under this one.
  [[nodiscard]] bool covers(const ResultTolerance& stricter) const noexcept {
    return stricter.is_bitwise() || (type_ == stricter.type_ && share_ >= stricter.share_);
  }

  /// Whether all numbers of both agree. Numbers that are the same in all bits do, also if they are
  /// none; other infinities and NaNs do not. Both are of one size; what is left behind the last
  /// whole number has to be the same.
  [[nodiscard]] bool agree(std::span<const std::byte> a, std::span<const std::byte> b) const;

 private:
  enum class Type { Bits, F16, BF16, F32, F64 };
  [[nodiscard]] std::size_t bytes() const noexcept;
  [[nodiscard]] double number(const std::byte* from) const noexcept;

  Type type_ = Type::Bits;
  double share_ = 0;
};

}  // namespace contextune
