#include "log_field.hpp"

namespace bench {

std::string field(const std::string& line, const std::string& name) {
  const auto at = line.find(" " + name + "=");
  if (at == line.npos) return {};
  const auto begin = at + name.size() + 2;
  return line.substr(begin, line.find(' ', begin) - begin);
}

double number(const std::string& line, const std::string& name) {
  const std::string text = field(line, name);
  return text.empty() ? 0 : std::stod(text);
}

}  // namespace bench
