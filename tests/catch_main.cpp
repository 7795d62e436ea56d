// Catch2 2.x has no library with a main function; 3.x brings its own.
#if CONTEXTUNE_CATCH2_VERSION == 2
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
