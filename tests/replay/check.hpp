#pragma once

#include <cuda.h>

/// Ends the program if a call failed: it makes no call that may.
void check(CUresult result, const char* what);
