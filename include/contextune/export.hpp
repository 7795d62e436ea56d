#pragma once

/// Marks what libcontextune.so shows to programs that link it; everything else is hidden.
#if defined(__GNUC__)
#define CONTEXTUNE_EXPORT __attribute__((visibility("default")))
#else
#define CONTEXTUNE_EXPORT
#endif
