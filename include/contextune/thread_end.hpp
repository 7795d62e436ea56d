#pragma once

#include <exception>

#ifdef __GLIBCXX__
#include <cxxabi.h>

/// Stands before `catch (...)`. A thread that ends by pthread_exit or pthread_cancel leaves its
/// functions as by an exception. Whoever catches that has to pass it on, or the process ends.
#define CONTEXTUNE_PASS_THREAD_END      \
  catch (const abi::__forced_unwind&) { \
    throw;                              \
  }
#else
#define CONTEXTUNE_PASS_THREAD_END
#endif
