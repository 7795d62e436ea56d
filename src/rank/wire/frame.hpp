#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rank/wire/siphash.hpp"

/// The wire format between ranks. A frame holds, little endian:
/// body length u32, magic u32, version u16, type u16, sender u32, job u64, sequence u64, the body,
/// and a tag u64. The tag is the SipHash-2-4 of all that stands before it. The key is that of one
/// direction of one connection, and the sequence counts its frames from 0. Thus a frame that is
/// repeated, left out or comes from elsewhere does not fit.
namespace contextune::rank {

inline constexpr std::uint32_t frame_magic = 0x6b6e7263;  // "crnk"
/// The version of the frame and of every body: whoever changes what a message holds counts this up.
inline constexpr std::uint16_t frame_version = 5;
inline constexpr std::size_t frame_header_bytes = 32;
inline constexpr std::size_t frame_tag_bytes = 8;
inline constexpr std::size_t max_body_bytes = std::size_t{16} << 20U;

struct Frame {
  std::uint16_t type = 0;
  std::vector<std::byte> body;
};

/// Whose frames these are, as the handshake has made sure.
struct FrameOrigin {
  MacKey key;
  std::uint64_t job = 0;
  std::uint32_t sender = 0;
};

/// Makes the frames of one direction of a connection. Not thread-safe.
class FrameWriter {
 public:
  explicit FrameWriter(const FrameOrigin& origin) : origin_(origin) {}

  /// @param body at most max_body_bytes: the caller's matter
  [[nodiscard]] std::vector<std::byte> seal(std::uint16_t type, std::span<const std::byte> body);

 private:
  FrameOrigin origin_;
  std::uint64_t sequence_ = 0;
};

/// Cuts what comes in, in pieces of any size, into frames, and trusts none of it. Never holds more
/// than the longest frame and one piece. Not thread-safe.
class FrameReader {
 public:
  explicit FrameReader(const FrameOrigin& origin) : origin_(origin) {}

  void feed(std::span<const std::byte> piece);
  /// Takes the next whole frame. False: more bytes are needed, or there is an error.
  [[nodiscard]] bool next(Frame& frame);
  /// The error, as a sentence. Final: nothing is read after it. Empty: there was none.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  bool check_start(std::span<const std::byte> header, std::size_t& body_bytes);
  bool check_rest(std::span<const std::byte> header);
  bool fail(std::string error);

  FrameOrigin origin_;
  std::uint64_t sequence_ = 0;
  std::vector<std::byte> buffer_;
  std::size_t taken_ = 0;  // from the front of the buffer
  std::string error_;
};

}  // namespace contextune::rank
