#include "store/lease.hpp"

#include <sys/random.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <vector>

#include <contextune/error.hpp>

#include "core/value/parse_number.hpp"

namespace contextune::store {
namespace {

constexpr std::string_view first_line = "contextune lease 1";
constexpr std::string_view last_line = "end";
constexpr std::string_view temporary_end = ".tmp";

}  // namespace

std::string Lease::to_text() const {
  std::string text(first_line);
  for (const std::string& line : {std::to_string(holder.pid), std::to_string(holder.start_ticks),
                                  holder.boot, holder.pid_namespace, temporary, holder.host}) {
    text += '\n' + line;
  }
  return text + '\n' + std::string(last_line) + '\n';
}

std::optional<Lease> Lease::parse(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  if (lines.size() != 8 || lines.front() != first_line || lines.back() != last_line)
    return std::nullopt;
  Lease lease;
  if (!read_number(lines[1], lease.holder.pid) || !read_number(lines[2], lease.holder.start_ticks))
    return std::nullopt;
  lease.holder.boot = lines[3];
  lease.holder.pid_namespace = lines[4];
  lease.temporary = lines[5];
  lease.holder.host = lines[6];
  if (!is_temporary_name(lease.temporary)) return std::nullopt;
  return lease;
}

std::string temporary_name(const std::string& stem) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
    throw Error("the kernel gave no random number for the name of a temporary file");
  std::array<char, 16> digits{};
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), random, 16).ptr;
  return "." + stem + "." + std::string(digits.data(), end) + std::string(temporary_end);
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with('.') && name.ends_with(temporary_end) && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

}  // namespace contextune::store
