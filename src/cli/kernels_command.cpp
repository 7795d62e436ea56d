#include "cli/words/commands.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/words/text.hpp"
#include "gpu/image/code_images.hpp"
#include "gpu/image/entry_wait.hpp"
#include "gpu/image/kernel_name.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

using gpu::CodeKernel;
using gpu::CodeKernels;
using gpu::NoEntryWait;

constexpr std::size_t most_listed = 40;
constexpr std::size_t most_kernel_columns = 64;
constexpr int known_architecture = 90;

std::string architecture_text(int architecture) {
  return "sm_" + std::to_string(architecture);
}

struct Tally {
  unsigned long long kernels = 0;
  std::array<unsigned long long, 3> can{};  ///< by form
  std::map<NoEntryWait, unsigned long long> cannot;
};

/// Prints a file's kernels as they are found.
class KernelList {
 public:
  KernelList(const KernelsRequest& request, std::string path, bool& any_in_json)
      : request_(request), path_(std::move(path)), any_in_json_(any_in_json) {}

  void see(std::string_view image) {
    std::string why;
    const auto found = gpu::read_code_kernels(image, why);
    if (!found) return damage_.push_back(why);
    print_path();
    Tally& tally = tallies_[found->architecture];
    for (const CodeKernel& kernel : found->kernels) {
      ++tally.kernels;
      if (kernel.reason) {
        ++tally.cannot[*kernel.reason];
      } else {
        ++tally.can[static_cast<std::size_t>(kernel.form)];
      }
      if (request_.json) {
        print_json(found->architecture, kernel);
      } else if (request_.all || found->architecture == known_architecture) {
        print(found->architecture, kernel);
      }
    }
    std::cout << std::flush;
  }

  /// @return whether all that the file has could be read, and it has something
  bool end(const gpu::CodeImages& images) {
    damage_.insert(damage_.end(), images.damage.begin(), images.damage.end());
    if (images.ptx + images.other > 0) print_path();
    if (!request_.json) print_summary(images);
    std::map<std::string, int> damages;
    for (const std::string& why : damage_) ++damages[why];
    for (const auto& [why, times] : damages) {
      std::cerr << "contextune kernels: " << path_ << ": " << log::printable(why)
                << (times > 1 ? " (" + std::to_string(times) + " times)" : "") << "\n";
    }
    const bool empty = images.machine_code + images.ptx + images.other == 0 && damage_.empty();
    if (empty) std::cerr << "contextune kernels: " << path_ << ": it has no code for a GPU\n";
    return !empty && damage_.empty();
  }

 private:
  void print_path() {
    if (!request_.json && !has_path_) std::cout << path_ << "\n";
    has_path_ = true;
  }

  void print_json(int architecture, const CodeKernel& kernel) {
    using Json = nlohmann::ordered_json;
    Json one = {{"file", path_},
                {"architecture", architecture_text(architecture)},
                {"symbol", kernel.symbol},
                {"registers", kernel.registers > 0 ? Json(kernel.registers) : Json(nullptr)},
                {"wait", !kernel.reason},
                {"form", kernel.reason ? Json(nullptr) : Json(name_of(kernel.form))},
                {"reason", kernel.reason ? Json(info_of(*kernel.reason).word) : Json(nullptr)}};
    std::cout << (any_in_json_ ? ",\n" : "\n")
              << one.dump(-1, ' ', false, Json::error_handler_t::replace);
    any_in_json_ = true;
  }

  void print(int architecture, const CodeKernel& kernel) {
    if (!request_.all && listed_ == most_listed) {
      ++left_out_;
      return;
    }
    if (listed_++ == 0) std::cout << "  arch    registers  wait              kernel\n";
    const std::string verdict = kernel.reason ? "no: " + std::string(info_of(*kernel.reason).word)
                                              : "yes: " + std::string(name_of(kernel.form));
    const std::string registers = kernel.registers > 0 ? std::to_string(kernel.registers) : "-";
    std::cout << "  " << std::left << std::setw(7) << architecture_text(architecture) << " "
              << std::right << std::setw(9) << registers << "  " << std::left << std::setw(16)
              << verdict << "  "
              << shortened(log::printable(gpu::demangled_kernel_name(kernel.symbol)),
                           most_kernel_columns)
              << "\n";
  }

  void print_summary(const gpu::CodeImages& images) const {
    if (left_out_ > 0) std::cout << "  ... and " << left_out_ << " more: --all lists them\n";
    std::string others;
    unsigned long long total = 0;
    for (const auto& [architecture, tally] : tallies_) {
      if (tally.kernels == 0) continue;
      total += tally.kernels;
      if (architecture != known_architecture) {
        others += (others.empty() ? "" : ", ") + architecture_text(architecture) + " " +
                  std::to_string(tally.kernels);
        continue;
      }
      const auto [in_place, moved, detour] = tally.can;
      std::cout << "  " << architecture_text(architecture) << ": "
                << count_text(tally.kernels, "kernel", "kernels") << ", "
                << in_place + moved + detour << " can be given a wait at the entry: " << in_place
                << " in place, " << moved << " moved, " << detour << " by a detour\n";
      for (const auto& [reason, count] : tally.cannot) {
        std::cout << "    " << std::right << std::setw(6) << count << "  " << std::left
                  << std::setw(12) << info_of(reason).word << "  " << info_of(reason).sentence
                  << "\n";
      }
    }
    if (total == 0 && images.machine_code > 0) std::cout << "  no kernel in its machine code\n";
    if (!others.empty()) std::cout << "  other architectures, without a wait: " << others << "\n";
    if (images.ptx > 0) {
      std::cout << "  " << count_text(images.ptx, "piece", "pieces")
                << " of PTX, which the driver compiles: not looked at\n";
    }
    if (images.other > 0) {
      std::cout << "  " << count_text(images.other, "entry", "entries")
                << " of a form that is not known: not looked at\n";
    }
  }

  const KernelsRequest& request_;
  const std::string path_;
  bool& any_in_json_;
  bool has_path_ = false;  ///< it is printed
  std::size_t listed_ = 0;
  unsigned long long left_out_ = 0;
  std::map<int, Tally> tallies_;
  std::vector<std::string> damage_;
};

bool list_file(const KernelsRequest& request, const std::string& path, bool& any_in_json) {
  const std::string shown = log::printable(path);
  errno = 0;
  const gpu::FileSource file(path);
  if (!file.is_open()) {
    std::cerr << "contextune kernels: " << shown << " cannot be read: "
              << (errno == ENOTSUP ? "it is no regular file" : std::strerror(errno)) << "\n";
    return false;
  }
  KernelList list(request, request.json ? path : shown, any_in_json);
  const auto images =
      gpu::for_each_machine_code(file, [&](std::string_view image) { list.see(image); });
  if (images) return list.end(*images);
  std::cerr << "contextune kernels: " << shown << ": it is no program, library, cubin or fatbin\n";
  return false;
}

}  // namespace

int answer(const KernelsRequest& request) {
  bool all_read = true;
  bool any_in_json = false;
  if (request.json) std::cout << "[";
  for (const std::string& path : request.files) {
    all_read = list_file(request, path, any_in_json) && all_read;
  }
  if (request.json) std::cout << "\n]\n";
  std::cout << std::flush;
  return std::cout && all_read ? 0 : 1;
}

}  // namespace contextune::cli
