#include "space/starter_file.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <vector>

#include "space/argument_type.hpp"
#include "space/kernel_name.hpp"

namespace contextune::space {
namespace {

constexpr std::size_t most_kernels = 64;

constexpr const char* introduction =
    "-- Kernels of the region, longest first. For each: fill in what to try (space) and what it\n"
    "-- makes of a launch (apply), and take the dashes away. A kernel that stays a comment stays "
    "untuned.\n"
    "-- apply must keep the result right for every config; prune returns true to keep a config.\n"
    "-- launch: grid, block, cluster (.x .y .z), shared_bytes, args[1], args[2], ...; in apply "
    "also\n"
    "-- kernel, module, source with defines. device: num_sms, max_shared_bytes, ...\n";

/// For a comment: one line, whatever a name holds.
std::string one_line(const std::string& text) {
  std::string result = text.substr(0, 1000);
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return result;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string shape(const std::array<std::uint32_t, 3>& extent) {
  std::string text = std::to_string(extent[0]);
  if (extent[1] != 1 || extent[2] != 1) text += " x " + std::to_string(extent[1]);
  if (extent[2] != 1) text += " x " + std::to_string(extent[2]);
  return text;
}

std::string seen_line(const DiscoveredKernel& kernel) {
  const double mean =
      kernel.launches == 0 ? 0.0 : kernel.seconds / static_cast<double>(kernel.launches);
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "%.1f %% of the time: %llu launches of %.2f us",
                100.0 * kernel.share, static_cast<unsigned long long>(kernel.launches), 1e6 * mean);
  return text.data();
}

std::string shape_line(const DiscoveredKernel& kernel) {
  return "grid " + shape(kernel.grid) + ", block " + shape(kernel.block) + ", " +
         std::to_string(kernel.registers) + " registers, shared memory " +
         std::to_string(kernel.static_shared_bytes) + " bytes static and " +
         std::to_string(kernel.shared_bytes) + " dynamic";
}

/// The value of block.x and its neighbours, as a first guess.
std::string block_values(std::uint32_t block) {
  std::set<std::uint32_t> values;
  for (const std::uint32_t value : {block / 4, block / 2, block, block * 2, block * 4}) {
    if (value >= 32 && value <= 1024) values.insert(value);
  }
  values.insert(std::clamp<std::uint32_t>(block, 1, 1024));
  std::string text;
  for (const std::uint32_t value : values) {
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  }
  return text;
}

std::string params_line(const DiscoveredKernel& kernel) {
  const std::vector<ArgumentType> types = types_of_parameters(kernel.parameters);
  if (!kernel.parameters.empty() && types.size() == kernel.num_arguments) {
    std::string words;
    for (const ArgumentType type : types) {
      words += (words.empty() ? "\"" : ", \"") + std::string(to_word(type)) + "\"";
    }
    return "  params = { " + words + " },  -- " + one_line(kernel.parameters) + "\n";
  }
  std::string words;
  for (std::size_t i = 0; i < kernel.num_arguments; ++i) words += i == 0 ? "\"?\"" : ", \"?\"";
  return "  -- params = { " + words + " },  -- not known: i8 to u64, f32, f64, ptr or opaque\n";
}

std::string block_for(const DiscoveredKernel& kernel) {
  std::string text = "\n-- " + seen_line(kernel) + "\n-- " + shape_line(kernel) + "\n";
  text += "kernel " + quoted(kernel.kernel) + " {\n";
  text += params_line(kernel);
  text += "  -- key   = function(launch) return launch.args[1] end,\n";
  text += "  -- space = { block = {" + block_values(kernel.block[0]) + "} },\n";
  text += "  -- prune = function(config, launch) return config.block <= 1024 end,\n";
  text += "  -- apply = function(config, launch)\n";
  text += "  --   launch.grid.x  = ceil_div(launch.grid.x * launch.block.x, config.block)\n";
  text += "  --   launch.block.x = config.block\n";
  text += "  -- end,\n";
  text += "}\n";
  return text;
}

bool can_be_named(const std::string& name) {
  return !name.empty() && name.size() <= 4096 && std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
  });
}

}  // namespace

std::string write_starter(std::span<const DiscoveredKernel> kernels, double coverage) {
  std::vector<DiscoveredKernel> sorted(kernels.begin(), kernels.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  std::string text = introduction;
  std::string others;
  std::set<std::string> declared;
  double covered = 0.0;
  for (const DiscoveredKernel& kernel : sorted) {
    const bool wanted = declared.empty() || (covered < coverage && declared.size() < most_kernels);
    covered += kernel.share;
    if (wanted && can_be_named(kernel.kernel) &&
        declared.insert(normalised_name(kernel.kernel)).second) {
      text += block_for(kernel);
    } else {
      others += "--   " + one_line(kernel.kernel) + ": " + seen_line(kernel) + ", " +
                shape_line(kernel) + "\n";
    }
  }
  if (!others.empty())
    text += "\n-- Further launches, of little time or of a name above:\n" + others;
  return text;
}

}  // namespace contextune::space
