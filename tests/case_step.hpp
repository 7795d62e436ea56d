#pragma once

/// From one case to the next in a test of thousands. Under sanitizers, where each takes several
/// times as long and most of what they would find is in the first ones, it is every seventh: an odd
/// number, so that no byte of a word is left out.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int case_step = 7;
#else
inline constexpr int case_step = 1;
#endif
