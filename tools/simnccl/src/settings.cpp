#include "settings.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace simnccl {

namespace {

std::string setting(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

[[noreturn]] void refuse(const char* name, const std::string& text) {
  std::fprintf(stderr, "simnccl: %s='%s' is not understood, see README.md\n", name, text.c_str());
  std::abort();
}

double number(const char* name, double otherwise) {
  const std::string text = setting(name);
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || value < 0) refuse(name, text);
  return value;
}

// NCCL's "A,B" and "^A,B". Its form for single functions is not imitated.
template <std::size_t Count>
void restrict_to(const char* name, std::array<bool, Count>& allowed,
                 int (*find)(std::string_view)) {
  std::string text = setting(name);
  allowed.fill(true);
  if (text.empty()) return;
  const bool all_but = text[0] == '^';
  if (all_but) text.erase(0, 1);
  allowed.fill(all_but);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const int found = find(std::string_view(text).substr(begin, end - begin));
    if (found < 0) refuse(name, text);
    allowed[static_cast<std::size_t>(found)] = !all_but;
    begin = end + 1;
  }
}

}  // namespace

Settings& Settings::instance() {
  static auto* const settings = new Settings;
  return *settings;
}

Settings::Settings()
    : noise(number("SIMNCCL_NOISE", 0.01)),
      seed(static_cast<std::uint64_t>(number("SIMNCCL_SEED", 1))),
      deadline_seconds(number("SIMNCCL_DEADLINE_S", 0)),
      hosts(std::max(static_cast<int>(number("SIMNCCL_HOSTS", 1)), 1)),
      channels(std::clamp(static_cast<int>(number("SIMNCCL_CHANNELS", 24)), 1, 64)),
      folder(setting("SIMNCCL_FOLDER")),
      trace(setting("SIMNCCL_TRACE")) {
  if (const std::string text = setting("SIMNCCL_VERSION"); !text.empty()) {
    int minor = 0;
    int patch = 0;
    if (std::sscanf(text.c_str(), "2.%d.%d", &minor, &patch) != 2) refuse("SIMNCCL_VERSION", text);
    version = NCCL_VERSION(2, minor, patch);
  }
  const std::string text = setting("SIMNCCL_FAULTS");
  const auto parsed = Faults::parse(text);
  if (!parsed) refuse("SIMNCCL_FAULTS", text);
  faults = *parsed;
  restrict_to("NCCL_ALGO", algorithms, &algorithm_of);
  restrict_to("NCCL_PROTO", protocols, &protocol_of);
  if (setting("NCCL_NVLS_ENABLE") == "0") algorithms[nvls] = algorithms[nvls_tree] = false;
}

const char* name_of_algorithm(int algorithm) {
  constexpr std::array<const char*, algorithm_count> names{
      "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
  return names.at(static_cast<std::size_t>(algorithm));
}
const char* name_of_protocol(int protocol) {
  constexpr std::array<const char*, protocol_count> names{"LL", "LL128", "SIMPLE"};
  return names.at(static_cast<std::size_t>(protocol));
}
const char* name_of_function(int function) {
  constexpr std::array<const char*, 5> names{"Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                             "AllReduce"};
  return names.at(static_cast<std::size_t>(function));
}

}  // namespace simnccl
