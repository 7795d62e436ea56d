#include "rank/wire/frame.hpp"

#include <utility>

#include "core/value/byte_stream.hpp"

namespace contextune::rank {

std::vector<std::byte> FrameWriter::seal(std::uint16_t type, std::span<const std::byte> body) {
  std::vector<std::byte> bytes;
  bytes.reserve(frame_header_bytes + body.size() + frame_tag_bytes);
  ByteWriter writer(bytes);
  writer.number(static_cast<std::uint32_t>(body.size()));
  writer.number(frame_magic);
  writer.number(frame_version);
  writer.number(type);
  writer.number(origin_.sender);
  writer.number(origin_.job);
  writer.number(sequence_++);
  writer.raw(body);
  writer.number(siphash(origin_.key, bytes));
  return bytes;
}

void FrameReader::feed(std::span<const std::byte> piece) {
  if (!error_.empty()) return;
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(taken_));
  taken_ = 0;
  buffer_.insert(buffer_.end(), piece.begin(), piece.end());
}

bool FrameReader::next(Frame& frame) {
  if (!error_.empty()) return false;
  const std::span<const std::byte> rest = std::span<const std::byte>(buffer_).subspan(taken_);
  if (rest.size() < frame_header_bytes) return false;
  const std::span<const std::byte> header = rest.first(frame_header_bytes);
  std::size_t body_bytes = 0;
  if (!check_start(header, body_bytes)) return false;
  const std::size_t tagged = frame_header_bytes + body_bytes;
  if (rest.size() < tagged + frame_tag_bytes) return false;
  ByteReader tag(rest.subspan(tagged, frame_tag_bytes));
  if (tag.number<std::uint64_t>() != siphash(origin_.key, rest.first(tagged)))
    return fail("the tag of a frame is wrong: it was changed on the way, or is not this peer's");
  if (!check_rest(header)) return false;
  frame.type = static_cast<std::uint16_t>(std::to_integer<unsigned>(header[10]) |
                                          (std::to_integer<unsigned>(header[11]) << 8U));
  const auto body = rest.subspan(frame_header_bytes, body_bytes);
  frame.body.assign(body.begin(), body.end());
  taken_ += tagged + frame_tag_bytes;
  ++sequence_;
  return true;
}

// As little as is needed to know where the tag is: the rest is looked at once that fits.
bool FrameReader::check_start(std::span<const std::byte> header, std::size_t& body_bytes) {
  ByteReader reader(header);
  body_bytes = reader.number<std::uint32_t>();
  const auto magic = reader.number<std::uint32_t>();
  const auto version = reader.number<std::uint16_t>();
  if (magic != frame_magic)
    return fail("the bytes received are no frame of contextune's: wrong magic");
  if (version != frame_version)
    return fail("version " + std::to_string(version) + " of the wire format instead of " +
                std::to_string(frame_version));
  if (body_bytes > max_body_bytes)
    return fail("a frame of " + std::to_string(body_bytes) + " bytes, which is more than " +
                std::to_string(max_body_bytes));
  return true;
}

bool FrameReader::check_rest(std::span<const std::byte> header) {
  ByteReader reader(header.subspan(12));
  const auto sender = reader.number<std::uint32_t>();
  const auto job = reader.number<std::uint64_t>();
  const auto sequence = reader.number<std::uint64_t>();
  if (job != origin_.job) return fail("a frame of another job");
  if (sender != origin_.sender)
    return fail("a frame of rank " + std::to_string(sender) + " from rank " +
                std::to_string(origin_.sender));
  if (sequence != sequence_)
    return fail("frame " + std::to_string(sequence) + " instead of " + std::to_string(sequence_) +
                ": one was repeated or left out");
  return true;
}

bool FrameReader::fail(std::string error) {
  error_ = std::move(error);
  buffer_ = {};
  taken_ = 0;
  return false;
}

}  // namespace contextune::rank
