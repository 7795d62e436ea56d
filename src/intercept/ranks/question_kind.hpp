#pragma once

#include <cstdint>

/// The kinds of questions that ranks ask one another, as the coordinator numbers its deciders.
namespace contextune::intercept::question_kind {

inline constexpr std::uint32_t batch = 1;     ///< GroupPlanners
inline constexpr std::uint32_t domain = 2;    ///< DomainPlanner
inline constexpr std::uint32_t lockstep = 3;  ///< Lockstep

}  // namespace contextune::intercept::question_kind
