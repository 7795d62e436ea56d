#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <contextune/config.hpp>

namespace contextune::collective {

/// Numbered as NCCL's cost table.
enum class Algorithm : std::uint8_t {
  Tree = 0,
  Ring = 1,
  CollnetDirect = 2,
  CollnetChain = 3,
  Nvls = 4,
  NvlsTree = 5,
  Pat = 6,
};
inline constexpr int num_algorithms = 7;

/// Numbered as NCCL's cost table.
enum class Protocol : std::uint8_t { LL = 0, LL128 = 1, Simple = 2 };
inline constexpr int num_protocols = 3;

/// "Ring": as space files and NCCL_ALGO have it.
[[nodiscard]] std::string_view name_of(Algorithm algorithm) noexcept;
/// "LL128"
[[nodiscard]] std::string_view name_of(Protocol protocol) noexcept;
[[nodiscard]] std::optional<Algorithm> parse_algorithm(std::string_view name) noexcept;
[[nodiscard]] std::optional<Protocol> parse_protocol(std::string_view name) noexcept;

/// Whether the network or the NVLink switch adds up, and not the SMs.
[[nodiscard]] constexpr bool reduces_in_switch(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::CollnetDirect || algorithm == Algorithm::CollnetChain ||
         algorithm == Algorithm::Nvls || algorithm == Algorithm::NvlsTree;
}

/// Whether a plugin may say how many channels are used. Where NCCL schedules by way of CollNet, it
/// does not limit the number that it is told to the channels that exist. NVLS uses CollNet on
/// several nodes.
[[nodiscard]] constexpr bool takes_channels(Algorithm algorithm, int nodes) noexcept {
  switch (algorithm) {
    case Algorithm::CollnetDirect:
    case Algorithm::CollnetChain:
      return false;
    case Algorithm::Nvls:
      return nodes <= 1;
    default:
      return true;
  }
}

/// A cell of NCCL's cost table. All zeros by default, so that static tables of it need no space
/// in a file.
struct Cell {
  Algorithm algorithm = Algorithm::Tree;
  Protocol protocol = Protocol::LL;

  /// Its place in a table of this version's algorithms and protocols.
  [[nodiscard]] constexpr std::size_t index() const noexcept {
    return static_cast<std::size_t>(algorithm) * num_protocols + static_cast<std::size_t>(protocol);
  }
  [[nodiscard]] bool operator==(const Cell& other) const = default;
};
/// The most channels of a communicator, whatever the hardware.
inline constexpr int max_channels = 64;

inline constexpr std::size_t num_cells = std::size_t{num_algorithms} * num_protocols;

/// The effect of one getCollInfo call on NCCL: a cell with a number of channels, or nothing at all.
struct Decision {
  bool sets_cell = false;  ///< false: the default, with the table as it is
  Cell cell;
  std::uint8_t channels = 0;  ///< 0: as NCCL chooses

  [[nodiscard]] constexpr bool is_default() const noexcept { return !sets_cell; }
  [[nodiscard]] bool operator==(const Decision& other) const = default;
};

// Parameters of a collective's config.
inline constexpr const char* algorithm_parameter = "algorithm";
inline constexpr const char* protocol_parameter = "protocol";
inline constexpr const char* channels_parameter = "channels";

/// The empty config for the default, else "algorithm=Ring protocol=LL channels=8".
[[nodiscard]] Config config_of(const Decision& decision);

/// The inverse. @throws Error for a config that config_of does not make
[[nodiscard]] Decision decision_of(const Config& config);

/// A set of cells, as ranks send it to one another.
class CellSet {
 public:
  CellSet() = default;
  explicit constexpr CellSet(std::uint32_t bits) noexcept : bits_(bits & all_bits) {}

  constexpr void add(Cell cell) noexcept { bits_ |= 1U << cell.index(); }
  [[nodiscard]] constexpr bool has(Cell cell) const noexcept {
    return (bits_ >> cell.index() & 1U) != 0;
  }
  [[nodiscard]] constexpr std::uint32_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr CellSet operator&(CellSet other) const noexcept {
    return CellSet(bits_ & other.bits_);
  }
  [[nodiscard]] bool operator==(const CellSet& other) const = default;

 private:
  static constexpr std::uint32_t all_bits = (1U << num_cells) - 1;
  std::uint32_t bits_ = 0;
};

/// NCCL's cost table at one call, in its own unit of time.
class CostTable {
 public:
  /// A cell that must never be used.
  static constexpr float illegal = -1.0F;

  /// Nothing is legal.
  CostTable() noexcept { costs_.fill(illegal); }

  /// @param table  row after row, `algorithms` of `protocols` numbers; what this version does not
  ///               know is left out, what is missing is illegal
  CostTable(const float* table, int algorithms, int protocols) noexcept;

  [[nodiscard]] float cost(Cell cell) const noexcept { return costs_[cell.index()]; }
  [[nodiscard]] CellSet legal() const noexcept;

  /// The cell that NCCL takes by itself: the first of the cheapest. Absent: nothing is legal.
  [[nodiscard]] std::optional<Cell> cheapest() const noexcept;

 private:
  std::array<float, num_cells> costs_{};
};

/// All cells that this version knows, in the order of the table.
[[nodiscard]] std::span<const Cell> all_cells() noexcept;

}  // namespace contextune::collective
