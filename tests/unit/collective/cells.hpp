#pragma once

#include "collective/cell.hpp"

// Cells and decisions that tests use.
inline constexpr contextune::collective::Cell ring_ll{contextune::collective::Algorithm::Ring,
                                                      contextune::collective::Protocol::LL};
inline constexpr contextune::collective::Cell ring_ll128{contextune::collective::Algorithm::Ring,
                                                         contextune::collective::Protocol::LL128};
inline constexpr contextune::collective::Cell ring_simple{contextune::collective::Algorithm::Ring,
                                                          contextune::collective::Protocol::Simple};
inline constexpr contextune::collective::Cell tree_ll{contextune::collective::Algorithm::Tree,
                                                      contextune::collective::Protocol::LL};
inline constexpr contextune::collective::Cell tree_simple{contextune::collective::Algorithm::Tree,
                                                          contextune::collective::Protocol::Simple};
inline constexpr contextune::collective::Cell nvls_simple{contextune::collective::Algorithm::Nvls,
                                                          contextune::collective::Protocol::Simple};

inline constexpr contextune::collective::Decision ring{true, ring_ll, 8};
inline constexpr contextune::collective::Decision tree{true, tree_simple, 4};
inline constexpr contextune::collective::Decision nvls{true, nvls_simple, 0};
