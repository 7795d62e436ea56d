#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/coordination/coordinator.hpp"
#include "rank/star/socket_coordinator.hpp"

/// Kinds of questions that tests ask.
inline constexpr std::uint32_t join_parts = 1;   ///< the decision is all parts, in order
inline constexpr std::uint32_t refuse_all = 2;   ///< "not today"
inline constexpr std::uint32_t throw_error = 3;  ///< std::runtime_error("broken")
inline constexpr std::uint32_t tell_all = 4;     ///< Lockstep's

[[nodiscard]] contextune::rank::Deciders test_deciders();

[[nodiscard]] contextune::Payload bytes_of(const std::string& text);

/// Of a job of its own on this host, with short times: no test has to wait long for a loss.
[[nodiscard]] contextune::rank::SocketSettings test_settings(std::uint32_t num_ranks);

/// The same for one of the ranks.
[[nodiscard]] contextune::rank::SocketSettings of_rank(contextune::rank::SocketSettings settings,
                                                       std::uint32_t rank);

using Ranks = std::vector<std::unique_ptr<contextune::Coordinator>>;

/// Three that met by gathering, as if each were on a host of its own.
[[nodiscard]] Ranks make_gathered_ranks();

[[nodiscard]] Ranks make_ranks(const contextune::rank::SocketSettings& settings);

/// Ranks of which each span of four but the first has a relay, and is attached to it.
[[nodiscard]] Ranks make_relayed_ranks(std::uint32_t num_ranks);
/// Waits until the rank has a relay, or has none.
void wait_for_relay(const contextune::Coordinator& rank, bool has_one);
/// Fewer than this are not relayed in those tests.
inline constexpr std::uint32_t fewest_relayed = 5;

/// Of all ranks, below which no test comes.
inline constexpr double long_enough = 40;
