#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rank/wire/frame.hpp"
#include "rank/wire/handshake.hpp"
#include "rank/wire/message.hpp"

namespace contextune::fuzz {

/// The job that the process under test belongs to.
struct Job {
  rank::MacKey key;
  std::uint64_t number = 0;
  std::uint32_t num_ranks = 2;
};

/// What a frame says wrongly of itself; its tag fits.
struct Untruth {
  enum class Field : std::uint8_t { Nothing, Length, Magic, Version, Sender, Job, Sequence, Tag };
  Field field = Field::Nothing;
  std::uint32_t value = 0;
};

/// The other end of one connection with the process under test. Aborts where that process says what
/// no rank may say, or does not say what it has to within seconds.
class WirePeer {
 public:
  /// @param socket connected; taken over
  WirePeer(int socket, const Job& job);
  WirePeer(const WirePeer&) = delete;
  WirePeer& operator=(const WirePeer&) = delete;
  ~WirePeer();

  /// As the one that called, with whatever claim, the process that is `peer`. False: it was turned
  /// away.
  bool prove(const rank::Claim& claim, std::uint32_t peer);
  /// Sends so much in place of a proof.
  void prove_nothing(std::span<const std::byte> bytes);
  /// As the one that was called. False: the other hung up.
  bool answer(std::uint32_t own_rank, rank::Admission admission);

  [[nodiscard]] bool is_open() const noexcept { return writer_.has_value(); }
  [[nodiscard]] std::uint32_t own_rank() const noexcept { return own_rank_; }

  /// In pieces of so many bytes, each taken by the other end before the next is sent; 0: in one.
  void send(std::span<const std::byte> bytes, std::size_t piece);
  void send(std::uint16_t type, std::span<const std::byte> body, std::size_t piece,
            Untruth untruth = {});
  void send(const rank::Message& message, std::size_t piece);
  /// Sends no more; what comes is still read.
  void hang_up();

  /// What has come since. All of it has to be frames of the other end.
  [[nodiscard]] std::vector<rank::Message> received();

 private:
  [[nodiscard]] std::vector<std::byte> read_exactly(std::size_t size);
  void open(const rank::Nonce& listener, const rank::Nonce& caller, bool is_caller,
            std::uint32_t peer);

  int socket_;
  Job job_;
  std::uint32_t own_rank_ = 0;
  std::uint64_t sequence_ = 0;
  rank::FrameOrigin origin_;
  std::optional<rank::FrameWriter> writer_;
  std::optional<rank::FrameReader> reader_;
};

/// Whether something can be read, or accepted, within 20 s.
[[nodiscard]] bool becomes_readable(int socket);

/// Ends the run: the code under test broke that rule.
[[noreturn]] void broken(const char* rule);

}  // namespace contextune::fuzz
