#include "rank/wire/handshake.hpp"

#include <sys/random.h>

#include <algorithm>
#include <vector>

#include "core/value/byte_stream.hpp"
#include "rank/wire/frame.hpp"

namespace contextune::rank {
namespace {

// The purpose of a tag: a tag that was made for one purpose fits no other.
enum class Role : std::uint8_t { Proof = 1, Welcome, ToListener, ToCaller };

MacKey fixed_key(std::uint64_t number) {
  return {0x636f6e7465787475U, number};
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::uint64_t tag_of(const MacKey& key, Role role, const Nonce& listener, const Nonce& caller,
                     std::span<const std::byte> what) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.number(frame_magic);
  writer.number(frame_version);
  writer.number(static_cast<std::uint8_t>(role));
  writer.raw(listener);
  writer.raw(caller);
  writer.raw(what);
  return siphash(key, bytes);
}

template <std::size_t Size>
std::array<std::byte, Size> fixed(const std::vector<std::byte>& bytes) {
  std::array<std::byte, Size> result{};
  std::copy_n(bytes.begin(), std::min(Size, bytes.size()), result.begin());
  return result;
}

Nonce read_nonce(ByteReader& reader) {
  Nonce nonce{};
  const auto bytes = reader.raw(nonce.size());
  std::copy(bytes.begin(), bytes.end(), nonce.begin());
  return nonce;
}

}  // namespace

std::string_view reason_of(Admission admission) noexcept {
  switch (admission) {
    case Admission::Welcome:
      return "welcome";
    case Admission::OtherJob:
      return "it belongs to another job";
    case Admission::NoSuchRank:
      return "the job has no such rank";
    case Admission::RankTaken:
      return "another process has or had this rank";
    case Admission::NotHere:
      return "this is not the coordinating rank";
  }
  return "no reason was given";
}

MacKey key_of_secret(std::string_view secret) noexcept {
  return {siphash(fixed_key(1), bytes_of(secret)), siphash(fixed_key(2), bytes_of(secret))};
}

std::uint64_t number_of_job(std::string_view job) noexcept {
  return siphash(fixed_key(3), bytes_of(job));
}

std::optional<Nonce> random_nonce() noexcept {
  Nonce nonce{};
  if (getrandom(nonce.data(), nonce.size(), GRND_NONBLOCK) != static_cast<ssize_t>(nonce.size()))
    return std::nullopt;
  return nonce;
}

std::array<std::byte, challenge_bytes> make_challenge(const Nonce& listener) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.number(frame_magic);
  writer.number(frame_version);
  writer.number(std::uint16_t{0});
  writer.raw(listener);
  return fixed<challenge_bytes>(bytes);
}

bool read_challenge(std::span<const std::byte> bytes, Nonce& listener, std::string& error) {
  ByteReader reader(bytes);
  if (reader.number<std::uint32_t>() != frame_magic) {
    error = "the process that listens there is not contextune";
    return false;
  }
  if (const auto version = reader.number<std::uint16_t>(); version != frame_version) {
    error = "another version of contextune listens there: wire format " + std::to_string(version) +
            " instead of " + std::to_string(frame_version);
    return false;
  }
  static_cast<void>(reader.number<std::uint16_t>());
  listener = read_nonce(reader);
  if (reader.failed()) error = "the challenge is too short";
  return !reader.failed();
}

std::array<std::byte, proof_bytes> make_proof(const MacKey& key, const Nonce& listener,
                                              const Claim& claim) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.raw(claim.nonce);
  writer.number(claim.job);
  writer.number(claim.rank);
  writer.number(static_cast<std::uint32_t>(claim.purpose));
  writer.number(tag_of(key, Role::Proof, listener, claim.nonce, bytes));
  return fixed<proof_bytes>(bytes);
}

bool read_proof(const MacKey& key, const Nonce& listener, std::span<const std::byte> bytes,
                Claim& claim) {
  if (bytes.size() != proof_bytes) return false;
  const auto said = bytes.first(proof_bytes - frame_tag_bytes);
  ByteReader tag(bytes.last(frame_tag_bytes));
  ByteReader reader(said);
  const Nonce caller = read_nonce(reader);
  if (tag.number<std::uint64_t>() != tag_of(key, Role::Proof, listener, caller, said)) return false;
  Claim proved;
  proved.nonce = caller;
  proved.job = reader.number<std::uint64_t>();
  proved.rank = reader.number<std::uint32_t>();
  const auto purpose = reader.number<std::uint32_t>();
  if (purpose < static_cast<std::uint32_t>(Purpose::Join) ||
      purpose > static_cast<std::uint32_t>(Purpose::Relay))
    return false;
  proved.purpose = static_cast<Purpose>(purpose);
  claim = proved;
  return true;
}

std::array<std::byte, welcome_bytes> make_welcome(const MacKey& key, const Nonce& listener,
                                                  const Nonce& caller, Admission admission) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.number(static_cast<std::uint64_t>(admission));
  writer.number(tag_of(key, Role::Welcome, listener, caller, bytes));
  return fixed<welcome_bytes>(bytes);
}

bool read_welcome(const MacKey& key, const Nonce& listener, const Nonce& caller,
                  std::span<const std::byte> bytes, Admission& admission) {
  if (bytes.size() != welcome_bytes) return false;
  ByteReader reader(bytes);
  const auto said = reader.number<std::uint64_t>();
  const auto tag = reader.number<std::uint64_t>();
  if (tag != tag_of(key, Role::Welcome, listener, caller, bytes.first(8))) return false;
  if (said > static_cast<std::uint64_t>(Admission::NotHere)) return false;
  admission = static_cast<Admission>(said);
  return true;
}

SessionKeys session_keys(const MacKey& key, const Nonce& listener, const Nonce& caller) {
  const auto direction = [&](Role role) {
    const std::array<std::byte, 1> first{std::byte{1}};
    const std::array<std::byte, 1> second{std::byte{2}};
    return MacKey{tag_of(key, role, listener, caller, first),
                  tag_of(key, role, listener, caller, second)};
  };
  return {direction(Role::ToListener), direction(Role::ToCaller)};
}

}  // namespace contextune::rank
