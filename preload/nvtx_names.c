#include "nvtx_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Two tries over hashes, one by name and one by handle, of the same nodes. They only grow, so a
 * step is an exchange in one empty place, and finding takes as many steps as the number of names
 * has digits, to the base of `fan_out`. */
enum { fan_out = 4, digit_bits = 2 };

struct node {
  struct node* longer_by_name[fan_out];
  struct node* longer_by_handle[fan_out];
  const void* handle;
  const char* name; /* that of a reused handle changes; texts are never freed */
  char text[];
};
static struct node* by_name; /* those that have a handle of our own */
static struct node* by_handle;

static uint64_t hash_of_name(const char* name) {
  uint64_t hash = 14695981039346656037U;
  for (; *name != '\0'; ++name) {
    hash = (hash ^ (unsigned char)*name) * 1099511628211U;
  }
  return hash * 0x9E3779B97F4A7C15U; /* whose first digits depend on the last letters too */
}

static uint64_t hash_of_handle(const void* handle) {
  return (uint64_t)(uintptr_t)handle * 0x9E3779B97F4A7C15U;
}

static size_t first_digit(uint64_t hash) {
  return (size_t)(hash >> (64 - digit_bits));
}

static struct node* load(struct node** place) {
  return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}

/* Puts `node` into the empty place, unless there is another by now, which it returns. */
static struct node* put(struct node** place, struct node* node) {
  struct node* there = NULL;
  return __atomic_compare_exchange_n(place, &there, node, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
             ? NULL
             : there;
}

static struct node* make_node(const void* handle, const char* name) {
  const size_t bytes = strlen(name) + 1;
  const int error = errno;
  struct node* node = calloc(1, sizeof(struct node) + bytes);
  errno = error;
  if (node == NULL) {
    return NULL;
  }
  memcpy(node->text, name, bytes);
  node->name = node->text;
  node->handle = handle != NULL ? handle : node;
  return node;
}

/* The node with that handle; NULL: there is none, and `made`, if there is one, is in its place. */
static struct node* find_handle(const void* handle, struct node* made) {
  uint64_t hash = hash_of_handle(handle);
  for (struct node** place = &by_handle;; hash <<= digit_bits) {
    struct node* node = load(place);
    if (node == NULL) {
      node = made != NULL ? put(place, made) : NULL;
    }
    if (node == NULL || node->handle == handle) {
      return node;
    }
    place = &node->longer_by_handle[first_digit(hash)];
  }
}

const void* contextune_nvtx_intern(const char* name) {
  struct node* made = NULL;
  uint64_t hash = hash_of_name(name);
  for (struct node** place = &by_name;; hash <<= digit_bits) {
    struct node* node = load(place);
    if (node == NULL) {
      made = made != NULL ? made : make_node(NULL, name);
      if (made == NULL) {
        return NULL;
      }
      node = put(place, made);
      if (node == NULL) {
        (void)find_handle(made, made);
        return made;
      }
    }
    if (strcmp(node->text, name) == 0) {
      free(made); /* another thread was first */
      return node;
    }
    place = &node->longer_by_name[first_digit(hash)];
  }
}

void contextune_nvtx_remember(const void* handle, const char* name) {
  struct node* known = handle != NULL ? find_handle(handle, NULL) : NULL;
  if (handle == NULL ||
      (known != NULL && strcmp(__atomic_load_n(&known->name, __ATOMIC_ACQUIRE), name) == 0)) {
    return;
  }
  if (known == NULL) {
    struct node* made = make_node(handle, name);
    known = made != NULL ? find_handle(handle, made) : NULL;
    if (known == NULL) {
      return;
    }
    free(made); /* another thread was first */
  }
  const struct node* kept = contextune_nvtx_intern(name); /* once, however often it changes */
  if (kept != NULL) {
    __atomic_store_n(&known->name, kept->text, __ATOMIC_RELEASE);
  }
}

const char* contextune_nvtx_name(const void* handle) {
  const struct node* node = handle != NULL ? find_handle(handle, NULL) : NULL;
  return node != NULL ? __atomic_load_n(&node->name, __ATOMIC_ACQUIRE) : "";
}

const char* contextune_nvtx_utf8(const wchar_t* text, char* buffer, size_t bytes) {
  size_t used = 0;
  for (; text != NULL && *text != L'\0'; ++text) {
    const uint32_t code = (uint32_t)*text;
    const size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (used + length >= bytes) {
      break;
    }
    static const unsigned char marks[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    for (size_t i = length; i-- > 1;) {
      buffer[used + i] = (char)(0x80U | ((code >> (6 * (length - 1 - i))) & 0x3FU));
    }
    buffer[used] = (char)(marks[length] | (code >> (6 * (length - 1))));
    used += length;
  }
  buffer[used] = '\0';
  return buffer;
}
