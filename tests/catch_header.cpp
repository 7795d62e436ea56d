// Compiled for its precompiled header, which all tests use.
#include "catch.hpp"
