#include "log/line_time.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "core/value/parse_number.hpp"

namespace contextune::log {
namespace {

constexpr std::string_view form = "0000-00-00T00:00:00.";

void put(std::span<char> digits, long number) {
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, number /= 10)
    *digit = static_cast<char>('0' + number % 10);
}

// In a buffer, since lines are written in a program that has other things to do. Years have four
// digits here.
std::string text_of(SystemTime time, std::size_t decimals, long unit) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  std::array<char, 32> buffer{};
  const std::span<char> text(buffer);
  std::ranges::copy(form, buffer.begin());
  put(text.subspan(0, 4), int{date.year()});
  put(text.subspan(5, 2), static_cast<long>(unsigned{date.month()}));
  put(text.subspan(8, 2), static_cast<long>(unsigned{date.day()}));
  put(text.subspan(11, 2), clock.hours().count());
  put(text.subspan(14, 2), clock.minutes().count());
  put(text.subspan(17, 2), clock.seconds().count());
  put(text.subspan(form.size(), decimals), static_cast<long>(clock.subseconds().count()) / unit);
  text[form.size() + decimals] = 'Z';
  return {buffer.data(), form.size() + decimals + 1};
}

bool has_form(std::string_view text) {
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == '0' ? !digit : text[i] != form[i]) return false;
  }
  return true;
}

}  // namespace

std::string milliseconds_text(SystemTime time) {
  return text_of(time, 3, 1000);
}

std::string microseconds_text(SystemTime time) {
  return text_of(time, 6, 1);
}

std::string microseconds_text(double seconds) {
  return microseconds_text(SystemTime(
      std::chrono::round<std::chrono::microseconds>(std::chrono::duration<double>(seconds))));
}

std::string text_of_past(double seconds_ago) {
  using std::chrono::microseconds;
  const auto now = std::chrono::floor<microseconds>(std::chrono::system_clock::now());
  return microseconds_text(
      now - std::chrono::round<microseconds>(std::chrono::duration<double>(seconds_ago)));
}

std::optional<SystemTime> parse_time(std::string_view text) {
  constexpr std::size_t most_decimals = 6;
  if (text.size() < form.size() + 2 || text.back() != 'Z' || !has_form(text)) return std::nullopt;
  const auto part = [&](std::size_t at, std::size_t size) {
    return parse_number<unsigned>(text.substr(at, size)).value_or(0);
  };
  const std::string_view decimals = text.substr(form.size(), text.size() - form.size() - 1);
  auto fraction = parse_number<unsigned>(decimals);
  if (!fraction || decimals.size() > most_decimals) return std::nullopt;
  for (std::size_t i = decimals.size(); i < most_decimals; ++i) *fraction *= 10;
  using namespace std::chrono;
  const year_month_day date(year(static_cast<int>(part(0, 4))), month(part(5, 2)), day(part(8, 2)));
  const unsigned hour = part(11, 2);
  const unsigned minute = part(14, 2);
  const unsigned second = part(17, 2);
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  return sys_days(date) + hours(hour) + minutes(minute) + seconds(second) + microseconds(*fraction);
}

}  // namespace contextune::log
