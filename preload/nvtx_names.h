/* Names behind NVTX handles: domains and registered strings. Nodes are never freed, so a name stays
 * valid; equal names share a node. Any thread may call, nobody waits; the time of a call grows with
 * the logarithm of their number. */
#pragma once

#include <stddef.h>
#include <wchar.h>

/* A handle of our own for `name`, the same for the same name; NULL when there is no memory. */
const void* contextune_nvtx_intern(const char* name);
/* Remembers what the user's tool called its own `handle`; a reused handle gets its new name. */
void contextune_nvtx_remember(const void* handle, const char* name);
/* The name behind a handle, or "" */
const char* contextune_nvtx_name(const void* handle);
/* Writes at most `bytes`, terminated; returns `buffer`. */
const char* contextune_nvtx_utf8(const wchar_t* text, char* buffer, size_t bytes);
