#include <contextune/buckets.hpp>

#include <algorithm>
#include <bit>
#include <charconv>

#include <contextune/error.hpp>

namespace contextune {
namespace {

constexpr std::uint64_t largest_power = std::uint64_t{1} << 63U;

/// A size of up to 64 bits times another.
__extension__ using Product = unsigned __int128;

[[noreturn]] void refuse_edge(std::string_view part, std::string_view why) {
  throw Error("buckets: \"" + std::string(part) + "\" " + std::string(why) +
              "; give \"pow2\", \"exact\", or upper edges in ascending order, such as "
              "\"4096,64K,1M\"");
}

std::uint64_t parse_edge(std::string_view part) {
  std::uint64_t edge = 0;
  const char* const end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, edge);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  unsigned shift = 0;
  if (unit == "K") shift = 10;
  if (unit == "M") shift = 20;
  if (unit == "G") shift = 30;
  if (error == std::errc::result_out_of_range) refuse_edge(part, "is too large");
  if (error != std::errc{} || (!unit.empty() && shift == 0)) refuse_edge(part, "is no size");
  if (edge >= SizeBucket::no_limit >> shift) refuse_edge(part, "is too large");
  return edge << shift;
}

/// How far two sizes are apart, as a fraction of at least 1.
struct Ratio {
  std::uint64_t larger;
  std::uint64_t smaller;

  Ratio(std::uint64_t a, std::uint64_t b) noexcept
      : larger(std::max<std::uint64_t>({a, b, 1})),
        smaller(std::max<std::uint64_t>(std::min(a, b), 1)) {}

  [[nodiscard]] Product times(std::uint64_t denominator) const noexcept {
    return Product{larger} * denominator;
  }
};

}  // namespace

Buckets Buckets::exact() noexcept {
  Buckets buckets;
  buckets.kind_ = Kind::Exact;
  return buckets;
}

Buckets Buckets::edges(std::vector<std::uint64_t> edges) {
  if (edges.empty()) throw Error("buckets: there are no edges; give at least one");
  std::uint64_t before = 0;
  for (const std::uint64_t edge : edges) {
    const std::string text = std::to_string(edge);
    if (edge == 0) refuse_edge(text, "is no edge: no size is below it");
    if (edge == SizeBucket::no_limit) refuse_edge(text, "is too large");
    if (edge <= before) refuse_edge(text, "is not larger than the edge before it");
    before = edge;
  }
  Buckets buckets;
  buckets.kind_ = Kind::Edges;
  buckets.edges_ = std::move(edges);
  return buckets;
}

Buckets Buckets::parse(std::string_view text) {
  if (text == "pow2") return {};
  if (text == "exact") return exact();
  std::vector<std::uint64_t> edges;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    edges.push_back(parse_edge(text.substr(from, comma - from)));
    from = comma + 1;
  }
  return Buckets::edges(std::move(edges));
}

std::string Buckets::to_string() const {
  if (kind_ == Kind::PowerOfTwo) return "pow2";
  if (kind_ == Kind::Exact) return "exact";
  std::string text;
  for (const std::uint64_t edge : edges_) {
    if (!text.empty()) text += ',';
    text += std::to_string(edge);
  }
  return text;
}

SizeBucket Buckets::bucket_of(std::uint64_t size) const noexcept {
  switch (kind_) {
    case Kind::Exact:
      return {size, size};
    case Kind::PowerOfTwo: {
      if (size <= 1) return {0, 1};
      if (size > largest_power) return {largest_power + 1, SizeBucket::no_limit};
      const std::uint64_t high = std::bit_ceil(size);
      return {high / 2 + 1, high};
    }
    case Kind::Edges:
      break;
  }
  const auto edge = std::lower_bound(edges_.begin(), edges_.end(), size);
  return {edge == edges_.begin() ? 0 : *(edge - 1) + 1,
          edge == edges_.end() ? SizeBucket::no_limit : *edge};
}

Key::Part Buckets::key_part(std::uint64_t size) const {
  const SizeBucket bucket = bucket_of(size);
  if (kind_ == Kind::Exact) return static_cast<std::int64_t>(size);
  if (bucket.high == SizeBucket::no_limit) {
    return "over:" + std::to_string(bucket.low - 1);
  }
  return std::to_string(bucket.low) + '-' + std::to_string(bucket.high);
}

std::optional<SizeBucket> Buckets::bucket_of_key(std::string_view text) noexcept {
  const bool is_open = text.starts_with("over:");
  if (is_open) text.remove_prefix(std::string_view("over:").size());
  const char* const end = text.data() + text.size();
  SizeBucket bucket;
  auto [stop, error] = std::from_chars(text.data(), end, bucket.low);
  if (error != std::errc{}) return std::nullopt;
  if (is_open) {
    if (stop != end || bucket.low == SizeBucket::no_limit) return std::nullopt;
    ++bucket.low;
    return bucket;
  }
  bucket.high = bucket.low;
  if (stop == end) return bucket;
  if (*stop != '-') return std::nullopt;
  const auto high = std::from_chars(stop + 1, end, bucket.high);
  if (high.ec != std::errc{} || high.ptr != end || bucket.high < bucket.low) return std::nullopt;
  return bucket;
}

bool is_nearer(std::uint64_t one, std::uint64_t other, std::uint64_t size) noexcept {
  const Ratio of_one(one, size);
  const Ratio of_other(other, size);
  const Product a = of_one.times(of_other.smaller);
  const Product b = of_other.times(of_one.smaller);
  return a < b || (a == b && one < other);
}

bool are_within(std::uint64_t one, std::uint64_t other, std::uint32_t times) noexcept {
  const Ratio ratio(one, other);
  return ratio.larger <= Product{ratio.smaller} * times;
}

}  // namespace contextune
