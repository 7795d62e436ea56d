#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simnccl {

/// A way to do a collective, for which a fault may be meant.
struct Choice {
  int algorithm = -1;  // -1: none
  int protocol = -1;
  int channels = 0;
  std::size_t bytes = 0;
};

/// One fault that a test asked for.
struct Fault {
  enum class Kind { slow, illegal, connect_fail, connect_memory, wrong_result };
  Kind kind = Kind::slow;
  int algorithm = -1;  // -1: any
  int protocol = -1;
  std::optional<unsigned long> rank, channels, bytes;
  unsigned long min_bytes = 0;
  double factor = 10;        // of `slow`
  unsigned long memory = 0;  // of `connect_memory`: bytes
};

/// The faults of a process, by `KIND:ALGO[/PROTO][:FIELD=VALUE[,FIELD=VALUE...]]`, several with
/// `;`. Immutable: the same collective meets the same faults on every rank.
class Faults {
 public:
  /// Nothing when the text is not understood.
  static std::optional<Faults> parse(std::string_view text);
  /// The first fault of a kind that is meant for a choice on a rank, or null.
  [[nodiscard]] const Fault* find(Fault::Kind kind, int rank, const Choice& choice) const;

 private:
  std::vector<Fault> faults_;
};

/// NCCL's number of a name such as RING or LL128, in any case; -1: there is none.
[[nodiscard]] int algorithm_of(std::string_view name);
[[nodiscard]] int protocol_of(std::string_view name);

}  // namespace simnccl
