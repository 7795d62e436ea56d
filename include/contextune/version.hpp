#pragma once

/// The release that these headers belong to. contextune_version() in contextune.h tells the release
/// of the library that the process runs with.
#define CONTEXTUNE_VERSION_MAJOR 0
#define CONTEXTUNE_VERSION_MINOR 1
#define CONTEXTUNE_VERSION_PATCH 0
#define CONTEXTUNE_VERSION "0.1.0"
