#pragma once

#include "collective_rank.hpp"

// Collectives that are one group of calls.
void group_of_one(Rank& rank, int steps);
/// One of a single kind, now and then larger, and one of several kinds.
void groups(Rank& rank, int steps);
void several_in_a_group(Rank& rank, int steps);
/// One of another kind before each group.
void before_groups(Rank& rank, int steps);
/// Many of a single kind, and one more beside them.
void long_group(Rank& rank, int steps);
/// Many of a single kind, and the last of another.
void large_group(Rank& rank, int steps);
/// The same on all ranks, on one of them beside more of its own than are told apart.
void large_group_on_one(Rank& rank, int steps);
