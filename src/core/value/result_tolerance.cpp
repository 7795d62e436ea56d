#include "core/value/result_tolerance.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/value/parse_number.hpp"

namespace contextune {
namespace {

template <typename T>
T read(const std::byte* from) noexcept {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

double half(std::uint16_t bits) noexcept {
  const int exponent = (bits >> 10U) & 0x1f;
  const double fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == 0x1f) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

}  // namespace

std::optional<ResultTolerance> ResultTolerance::parse(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Type>, 4> types{
      {{"f16", Type::F16}, {"bf16", Type::BF16}, {"f32", Type::F32}, {"f64", Type::F64}}};
  ResultTolerance tolerance;
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  for (const auto& [word, type] : types)
    if (text.substr(0, colon) == word) tolerance.type_ = type;
  const bool is_share = read_number(text.substr(colon + 1), tolerance.share_) &&
                        tolerance.share_ > 0 && tolerance.share_ < 1;
  if (tolerance.is_bitwise() || !is_share) return std::nullopt;
  return tolerance;
}

std::size_t ResultTolerance::bytes() const noexcept {
  switch (type_) {
    case Type::Bits:
      return 1;
    case Type::F16:
    case Type::BF16:
      return 2;
    case Type::F32:
      return 4;
    case Type::F64:
      return 8;
  }
  return 1;
}

double ResultTolerance::number(const std::byte* from) const noexcept {
  switch (type_) {
    case Type::F16:
      return half(read<std::uint16_t>(from));
    case Type::BF16:
      return std::bit_cast<float>(std::uint32_t{read<std::uint16_t>(from)} << 16U);
    case Type::F32:
      return read<float>(from);
    case Type::F64:
      return read<double>(from);
    case Type::Bits:
      break;
  }
  return std::nan("");
}

bool ResultTolerance::agree(std::span<const std::byte> a, std::span<const std::byte> b) const {
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) return true;
  const std::size_t step = bytes();
  std::size_t at = 0;
  for (; at + step <= a.size(); at += step) {
    if (std::memcmp(a.data() + at, b.data() + at, step) == 0) continue;
    const double one = number(a.data() + at);
    const double other = number(b.data() + at);
    // False for what is no number, too.
    if (!(std::fabs(one - other) <= share_ * std::fmax(std::fabs(one), std::fabs(other))) ||
        std::isinf(one) || std::isinf(other)) {
      return false;
    }
  }
  return std::memcmp(a.data() + at, b.data() + at, a.size() - at) == 0;
}

}  // namespace contextune
