#include "device_profile.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace simcuda {

std::optional<DeviceProfile> parse_profile(const std::string& text) {
  DeviceProfile profile;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::size_t equals = text.find('=', begin);
    if (equals >= end) return std::nullopt;
    const std::string field = text.substr(begin, equals - begin);
    const std::string value = text.substr(equals + 1, end - equals - 1);
    begin = end + 1;
    if (field == "name") {
      profile.name = value;
      continue;
    }
    char* stop = nullptr;
    const double number = std::strtod(value.c_str(), &stop);
    if (*stop != '\0' || !(number > 0)) return std::nullopt;
    if (field == "compute_capability") {
      profile.compute_capability = static_cast<unsigned>(std::lround(10 * number));
    } else if (field == "num_sms") {
      profile.num_sms = static_cast<unsigned>(number);
    } else if (field == "memory_mib") {
      profile.memory_bytes = static_cast<std::size_t>(number) << 20U;
    } else {
      return std::nullopt;
    }
  }
  return profile;
}

}  // namespace simcuda
