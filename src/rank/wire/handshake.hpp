#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rank/wire/siphash.hpp"

/// The handshake by which two ranks make sure of each other before any frame: three messages, each
/// of a fixed length. The listener sends a challenge. The caller proves that it knows the secret,
/// for this challenge, and says who it is. The listener proves the same and says whether the caller
/// may stay. Nothing that a caller says is looked at before its proof fits. A message recorded from
/// another connection does not fit, because both sides add numbers that are drawn anew. The frames
/// that follow are authenticated, not encrypted.
namespace contextune::rank {

using Nonce = std::array<std::byte, 16>;

inline constexpr std::size_t challenge_bytes = 24;
inline constexpr std::size_t proof_bytes = 40;
inline constexpr std::size_t welcome_bytes = 16;

/// Shorter secrets could be guessed.
inline constexpr std::size_t min_secret_bytes = 16;

enum class Purpose : std::uint8_t {
  Join = 1,   ///< to be a rank of the job, for as long as the connection lasts
  Ask = 2,    ///< to ask for a verdict
  Relay = 3,  ///< to have its messages passed on, for as long as the connection lasts
};

enum class Admission : std::uint8_t { Welcome, OtherJob, NoSuchRank, RankTaken, NotHere };

/// A sentence for those who are not welcome.
[[nodiscard]] std::string_view reason_of(Admission admission) noexcept;

/// Who calls, as he says and proves.
struct Claim {
  Nonce nonce{};
  std::uint64_t job = 0;
  std::uint32_t rank = 0;
  Purpose purpose = Purpose::Join;
};

/// Keys of the two directions of one connection.
struct SessionKeys {
  MacKey to_listener;
  MacKey to_caller;
};

/// The key of a job. Any length; whoever needs safety gives at least min_secret_bytes.
[[nodiscard]] MacKey key_of_secret(std::string_view secret) noexcept;

/// The number by which the wire names a job.
[[nodiscard]] std::uint64_t number_of_job(std::string_view job) noexcept;

/// Fresh random bytes; nothing if the system has none. Never blocks.
[[nodiscard]] std::optional<Nonce> random_nonce() noexcept;

[[nodiscard]] std::array<std::byte, challenge_bytes> make_challenge(const Nonce& listener);
[[nodiscard]] bool read_challenge(std::span<const std::byte> bytes, Nonce& listener,
                                  std::string& error);

[[nodiscard]] std::array<std::byte, proof_bytes> make_proof(const MacKey& key,
                                                            const Nonce& listener,
                                                            const Claim& claim);
/// False: the caller does not know the secret, or answers another challenge; `claim` is untouched.
[[nodiscard]] bool read_proof(const MacKey& key, const Nonce& listener,
                              std::span<const std::byte> bytes, Claim& claim);

[[nodiscard]] std::array<std::byte, welcome_bytes> make_welcome(const MacKey& key,
                                                                const Nonce& listener,
                                                                const Nonce& caller,
                                                                Admission admission);
/// False: the listener does not know the secret.
[[nodiscard]] bool read_welcome(const MacKey& key, const Nonce& listener, const Nonce& caller,
                                std::span<const std::byte> bytes, Admission& admission);

[[nodiscard]] SessionKeys session_keys(const MacKey& key, const Nonce& listener,
                                       const Nonce& caller);

}  // namespace contextune::rank
