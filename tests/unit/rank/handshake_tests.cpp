#include "rank/wire/handshake.hpp"

#include "catch.hpp"

using namespace contextune::rank;

namespace {

const MacKey key = key_of_secret("correct horse battery staple");

Nonce nonce(unsigned first) {
  Nonce result{};
  result[0] = static_cast<std::byte>(first);
  return result;
}

Claim claim() {
  Claim result;
  result.nonce = nonce(7);
  result.job = 11;
  result.rank = 3;
  result.purpose = Purpose::Ask;
  return result;
}

}  // namespace

TEST_CASE("SipHash-2-4 gives the values of its authors", "[siphash]") {
  // Key 00..0f, messages 00, 00 01, ... of 0 to 15 bytes: appendix A of the paper, vectors.h.
  const MacKey paper{0x0706050403020100U, 0x0f0e0d0c0b0a0908U};
  const std::uint64_t expected[] = {
      0x726fdb47dd0e0e31U, 0x74f839c593dc67fdU, 0x0d6c8009d9a94f5aU, 0x85676696d7fb7e2dU,
      0xcf2794e0277187b7U, 0x18765564cd99a68dU, 0xcbc9466e58fee3ceU, 0xab0200f58b01d137U,
      0x93f5f5799a932462U, 0x9e0082df0ba9e4b0U, 0x7a5dbbc594ddb9f3U, 0xf4b32f46226bada7U,
      0x751e8fbc860ee5fbU, 0x14ea5627c0843d90U, 0xf723ca908e7af2eeU, 0xa129ca6149be45e5U};
  std::vector<std::byte> message;
  for (const std::uint64_t value : expected) {
    CHECK(siphash(paper, message) == value);
    message.push_back(static_cast<std::byte>(message.size()));
  }
}

TEST_CASE("A proof says who calls, to those with the secret", "[handshake]") {
  const auto bytes = make_proof(key, nonce(1), claim());
  Claim seen;
  REQUIRE(read_proof(key, nonce(1), bytes, seen));
  CHECK(seen.nonce == claim().nonce);
  CHECK(seen.job == 11);
  CHECK(seen.rank == 3);
  CHECK(seen.purpose == Purpose::Ask);
}

TEST_CASE("A proof fits neither another secret nor another challenge", "[handshake]") {
  const auto bytes = make_proof(key, nonce(1), claim());
  Claim seen;
  CHECK_FALSE(read_proof(key_of_secret("correct horse battery stapler"), nonce(1), bytes, seen));
  CHECK_FALSE(read_proof(key, nonce(2), bytes, seen));
  CHECK(seen.rank == 0);
}

TEST_CASE("A proof of which any bit is changed fits no more", "[handshake]") {
  auto bytes = make_proof(key, nonce(1), claim());
  for (std::byte& byte : bytes) {
    byte ^= std::byte{0x10};
    Claim seen;
    CHECK_FALSE(read_proof(key, nonce(1), bytes, seen));
    byte ^= std::byte{0x10};
  }
}

TEST_CASE("A welcome fits the two numbers that were drawn, and no others", "[handshake]") {
  const auto bytes = make_welcome(key, nonce(1), nonce(7), Admission::RankTaken);
  Admission admission = Admission::Welcome;
  REQUIRE(read_welcome(key, nonce(1), nonce(7), bytes, admission));
  CHECK(admission == Admission::RankTaken);
  CHECK_FALSE(read_welcome(key, nonce(1), nonce(8), bytes, admission));
  CHECK_FALSE(read_welcome(key, nonce(2), nonce(7), bytes, admission));
}

TEST_CASE("The directions of a connection have different keys, and so have connections",
          "[handshake]") {
  const SessionKeys keys = session_keys(key, nonce(1), nonce(7));
  CHECK_FALSE(keys.to_listener == keys.to_caller);
  CHECK_FALSE(keys.to_listener == session_keys(key, nonce(2), nonce(7)).to_listener);
  CHECK_FALSE(keys.to_listener == session_keys(key, nonce(1), nonce(8)).to_listener);
}

TEST_CASE("A challenge of another version is refused by name", "[handshake]") {
  auto bytes = make_challenge(nonce(1));
  Nonce seen{};
  std::string error;
  REQUIRE(read_challenge(bytes, seen, error));
  CHECK(seen == nonce(1));
  bytes[4] = std::byte{9};
  CHECK_FALSE(read_challenge(bytes, seen, error));
  CHECK(error.find("wire format 9") != std::string::npos);
  bytes[0] = std::byte{9};
  CHECK_FALSE(read_challenge(bytes, seen, error));
  CHECK(error.find("not contextune") != std::string::npos);
}
