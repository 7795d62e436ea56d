#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rank/wire/message.hpp"

/// What an input of the wire's fuzz target says: who is tested, then acts of the others, each a
/// byte and what belongs to it. Every sequence of bytes is such a script.
namespace contextune::fuzz {

enum class Tested : std::uint8_t {
  Hub,        ///< rank 0; the script is the other ranks, and strangers
  Member,     ///< rank 1; the script is rank 0, and the others that ask and are asked
  Gathering,  ///< a rank that reads the blocks of a communicator's ranks; the rest are the blocks
  Relay,      ///< rank 2 of 4, which passes on what rank 3 says
  Served,     ///< rank 3 of 4
};
inline constexpr std::uint8_t num_tested = static_cast<std::uint8_t>(Tested::Served) + 1;
/// In the byte of a message's type: ranks follow its topic, of which it is.
inline constexpr std::uint8_t of_several = 0x80;

enum class Act : std::uint8_t {
  Call,      ///< a claim: its rank, purpose, and what is wrong with it
  Stranger,  ///< bytes in place of a proof
  Answer,    ///< who calls; the rank that answers
  Message,   ///< connection, piece, a message that can be encoded
  Frame,     ///< connection, piece, type, body
  Untruth,   ///< connection, field, value, type, body: see fuzz::Untruth
  Bytes,     ///< connection, piece, bytes
  HangUp,    ///< connection
  Say,       ///< the tested process: topic, kind, seconds, part
  Withdraw,  ///< it: topic
  Occupied,  ///< it: topic, seconds
  Poll,      ///< it: topic
  Wait,      ///< until deadlines that are short have passed
};
inline constexpr std::uint8_t num_acts = static_cast<std::uint8_t>(Act::Wait) + 1;

/// Reads a script. Past its end all is zero.
class ScriptReader {
 public:
  explicit ScriptReader(std::span<const std::uint8_t> script) : left_(script) {}

  [[nodiscard]] bool at_end() const noexcept { return left_.empty(); }
  std::uint8_t byte();
  std::uint32_t word();
  /// With its length before it, two bytes.
  std::vector<std::byte> bytes();
  std::vector<std::byte> rest();
  double seconds();
  RankSet ranks(std::uint32_t num_ranks);
  Topic topic(std::uint32_t num_ranks);
  /// `epoch` is the one that was heard, which a script cannot know.
  rank::Message message(std::uint32_t num_ranks, std::uint64_t epoch,
                        const std::vector<std::string>& addresses);

 private:
  std::span<const std::uint8_t> left_;
};

/// Writes what ScriptReader reads, for seeds.
class ScriptWriter {
 public:
  ScriptWriter(Tested tested, std::uint8_t num_ranks);

  ScriptWriter& act(Act act) { return byte(static_cast<std::uint8_t>(act)); }
  ScriptWriter& byte(std::uint8_t value);
  ScriptWriter& bytes(std::span<const std::byte> bytes);
  ScriptWriter& topic(std::uint8_t group, std::uint8_t question, std::uint8_t ranks);
  ScriptWriter& call(std::uint8_t rank, rank::Purpose purpose);
  /// Begins a message without a text or part; what belongs to its type comes next.
  ScriptWriter& message(std::uint8_t connection, rank::MessageType type);
  /// The same for a message of several ranks: they come behind its topic, as a topic's do.
  ScriptWriter& message_of_several(std::uint8_t connection, rank::MessageType type);
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

/// The index of as many seconds among those that a script can name.
inline constexpr std::uint8_t no_time = 0;
inline constexpr std::uint8_t long_time = 2;

}  // namespace contextune::fuzz
