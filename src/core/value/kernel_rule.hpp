#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/error.hpp>
#include <contextune/key.hpp>
#include <contextune/unseen_size.hpp>

namespace contextune {

/// How to read one kernel argument.
enum class ArgumentType { I8, U8, I16, U16, I32, U32, I64, U64, F32, F64, Pointer, Opaque };

/// Where one argument lies in a launch's packed arguments.
struct ArgumentLayout {
  std::size_t offset_bytes = 0;
  std::size_t size_bytes = 0;
};

/// A launch as a rule sees it: as the program asked for it. Valid during the call only.
struct LaunchView {
  std::string_view kernel;  ///< demangled, without parameters
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{0, 0, 0};  ///< 0: none asked for
  std::uint32_t shared_bytes = 0;                 ///< dynamic shared memory
  const void* const* arguments = nullptr;         ///< one pointer an argument; host memory
  const ArgumentLayout* layouts = nullptr;
  std::size_t num_arguments = 0;
  std::string_view parameters;  ///< of the demangled name: "int, float const*"; empty: unknown
};

/// The parts of a launch that a rule looked at. Two launches that agree on them get the same
/// answer, so that an answer can be kept. A rule that cannot tell says `everything`.
struct LaunchReads {
  bool grid = false;
  bool block = false;
  bool shape = false;  ///< cluster or dynamic shared memory
  bool everything = false;
  std::uint64_t arguments = 0;  ///< bit i: argument i; an index past 63 sets `everything`

  void merge(const LaunchReads& other) {
    grid |= other.grid;
    block |= other.block;
    shape |= other.shape;
    everything |= other.everything;
    arguments |= other.arguments;
  }
};

/// A config makes no launch that a device could have: that costs the config, not the kernel.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// The changes that one config makes to a launch. Absent: as the program wrote it.
struct LaunchChange {
  std::optional<std::array<std::uint32_t, 3>> grid;
  std::optional<std::array<std::uint32_t, 3>> block;
  std::optional<std::array<std::uint32_t, 3>> cluster;
  std::optional<std::uint32_t> shared_bytes;
  std::string function;  ///< another function, by demangled name or symbol; empty: the same
  std::string module;  ///< where `function` lives: a cubin, fatbin or PTX file; empty: same module
  std::string
      source;  ///< CUDA C++ file to build with NVRTC; `function` is then the name expression
  std::vector<std::string> build_options;  ///< of NVRTC: -DNAME=VALUE and others

  bool operator==(const LaunchChange&) const = default;
};

/// Facts of the device that a rule may use.
struct DeviceFacts {
  std::string name;
  int num_sms = 0;
  int compute_capability = 0;  ///< 90 for 9.0
  int max_threads_per_block = 0;
  int max_threads_per_sm = 0;
  std::size_t max_shared_bytes = 0;  ///< opt-in, one block
  std::size_t max_shared_bytes_per_sm = 0;
  int registers_per_sm = 0;
  std::size_t l2_bytes = 0;
  bool simulated = false;
};

/// An author's declaration of one kernel: its key, its configs, and the effect of a config on a
/// launch. A port: implemented by space files and by kernels declared in C++.
/// Threads: calls on one rule are serialised by the caller.
/// Every call may throw Error (contextune/error.hpp) that names file, line and kernel; the site
/// then runs its default.
class KernelRule {
 public:
  virtual ~KernelRule() = default;

  /// Demangled name without parameters (or a symbol) of the kernel that the rule is for.
  [[nodiscard]] virtual std::string_view kernel() const = 0;

  /// Where the rule was written, for messages: "file.lua:3".
  [[nodiscard]] virtual std::string_view origin() const = 0;

  /// Further part of the site's key; empty when the author gave none.
  [[nodiscard]] virtual Key key(const LaunchView& launch, LaunchReads& reads) = 0;

  /// Whether the key holds the size of the problem, as a bucket: then launches of one bucket are
  /// one problem whatever their grids, which follow the size.
  [[nodiscard]] virtual bool keys_by_size() const { return false; }

  /// The treatment of a launch of a size that comes when its region is tuned; with keys_by_size
  /// only.
  [[nodiscard]] virtual UnseenSize unseen() const { return UnseenSize::Tune; }

  /// The configs for this launch, pruned, without the default.
  [[nodiscard]] virtual std::vector<Config> configs(const LaunchView& launch) = 0;

  /// Applies `config` to the launch. @throws ConfigError: it makes none, and others may
  [[nodiscard]] virtual LaunchChange apply(const Config& config, const LaunchView& launch,
                                           LaunchReads& reads) = 0;

  /// Whether blocks wait for each other or for other ranks, so that a launch whose blocks are not
  /// all on the device at once might never end.
  [[nodiscard]] virtual bool co_resident() const { return false; }

  /// Words, each a hash of something that decides what a config means beside its values: what
  /// `apply` makes of it. Another word in the place of one: configs of the same values are others.
  /// Empty: not known.
  [[nodiscard]] virtual std::string meaning() const { return {}; }

  /// Schedule overrides; absent: those of the region.
  [[nodiscard]] virtual std::optional<int> n_warmup() const { return std::nullopt; }
  [[nodiscard]] virtual std::optional<int> n_repeat() const { return std::nullopt; }
};

}  // namespace contextune
