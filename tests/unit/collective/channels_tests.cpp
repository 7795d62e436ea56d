// How many channels are of use.
#include <vector>

#include "catch.hpp"
#include "cells.hpp"
#include "collective/channels.hpp"

using namespace contextune::collective;

namespace {

constexpr std::uint64_t kibibyte = 1024;

}  // namespace

TEST_CASE("A channel gets 16 KiB of traffic at least", "[channels]") {
  const ChannelLimits limits;
  // An AllReduce moves each byte twice.
  CHECK(useful_channels(Function::AllReduce, 64 * kibibyte, ring_simple, limits) == 8);
  CHECK(useful_channels(Function::AllReduce, 64 * kibibyte, ring_ll128, limits) == 8);
  CHECK(useful_channels(Function::AllReduce, 64 * kibibyte, ring_ll, limits) == 32);
  // The size of a gathered message is that of the whole.
  CHECK(useful_channels(Function::AllGather, 64 * kibibyte, ring_simple, limits) == 4);
  CHECK(useful_channels(Function::Broadcast, 64 * kibibyte, ring_ll, limits) == 16);
  // A byte more is a channel more.
  CHECK(useful_channels(Function::AllGather, 64 * kibibyte + 1, ring_simple, limits) == 5);
}

TEST_CASE("There are no more useful channels than exist, and never none", "[channels]") {
  ChannelLimits limits;
  limits.channels = 24;
  limits.nvls_channels = 16;
  CHECK(useful_channels(Function::AllReduce, 1U << 30U, ring_simple, limits) == 24);
  CHECK(useful_channels(Function::AllReduce, 1U << 30U, nvls_simple, limits) == 16);
  CHECK(useful_channels(Function::AllReduce, contextune::SizeBucket::no_limit, ring_ll, limits) ==
        24);
  CHECK(useful_channels(Function::AllReduce, 0, ring_simple, limits) == 1);
  limits.channels = 0;
  CHECK(useful_channels(Function::AllReduce, 1U << 30U, ring_simple, limits) == 1);
  limits.channels = 1000;
  CHECK(useful_channels(Function::AllReduce, 1U << 30U, ring_simple, limits) == 64);
}

TEST_CASE("A newer NCCL gives a channel more to do", "[channels]") {
  ChannelLimits limits;
  limits.min_traffic_bytes = 32 * kibibyte;
  CHECK(useful_channels(Function::AllReduce, 64 * kibibyte, ring_simple, limits) == 4);
}

TEST_CASE("The ladder doubles and ends at the most", "[channels]") {
  CHECK(channel_ladder(1) == std::vector<int>{1});
  CHECK(channel_ladder(2) == std::vector<int>{1, 2});
  CHECK(channel_ladder(24) == std::vector<int>{1, 2, 4, 8, 16, 20, 24});
  CHECK(channel_ladder(32) == std::vector<int>{1, 2, 4, 8, 16, 20, 24, 28, 32});
  CHECK(channel_ladder(0) == std::vector<int>{1});
}
