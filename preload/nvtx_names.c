#include "nvtx_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct node {
  struct node* next_by_handle;
  struct node* next_by_name;
  const void* handle;
  char name[];
};

enum { num_buckets = 256 };
static struct node* by_handle[num_buckets];
static struct node* by_name[num_buckets]; /* those that have a handle of our own */

static size_t bucket_of_handle(const void* handle) {
  return (((uintptr_t)handle >> 4) * 0x9E3779B97F4A7C15u >> 32) % num_buckets;
}

static size_t bucket_of_name(const char* name) {
  uint32_t hash = 2166136261u;
  for (; *name != '\0'; ++name) {
    hash = (hash ^ (unsigned char)*name) * 16777619u;
  }
  return hash % num_buckets;
}

static void prepend(struct node** head, struct node* node, struct node** next) {
  struct node* first = __atomic_load_n(head, __ATOMIC_ACQUIRE);
  do {
    *next = first;
  } while (
      !__atomic_compare_exchange_n(head, &first, node, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

static struct node* find_handle(const void* handle) {
  struct node* node = __atomic_load_n(&by_handle[bucket_of_handle(handle)], __ATOMIC_ACQUIRE);
  while (node != NULL && node->handle != handle) {
    node = node->next_by_handle;
  }
  return node;
}

static struct node* make_node(const void* handle, const char* name) {
  const size_t bytes = strlen(name) + 1;
  const int error = errno;
  struct node* node = malloc(sizeof(struct node) + bytes);
  errno = error;
  if (node == NULL) {
    return NULL;
  }
  memcpy(node->name, name, bytes);
  node->handle = handle != NULL ? handle : node;
  prepend(&by_handle[bucket_of_handle(node->handle)], node, &node->next_by_handle);
  return node;
}

const void* contextune_nvtx_intern(const char* name) {
  struct node** head = &by_name[bucket_of_name(name)];
  struct node* node = __atomic_load_n(head, __ATOMIC_ACQUIRE);
  while (node != NULL && strcmp(node->name, name) != 0) {
    node = node->next_by_name;
  }
  if (node == NULL) {
    node = make_node(NULL, name);
    if (node == NULL) {
      return NULL;
    }
    prepend(head, node, &node->next_by_name);
  }
  return node;
}

void contextune_nvtx_remember(const void* handle, const char* name) {
  if (handle == NULL) {
    return;
  }
  const struct node* known = find_handle(handle);
  if (known == NULL || strcmp(known->name, name) != 0) {
    make_node(handle, name);
  }
}

const char* contextune_nvtx_name(const void* handle) {
  const struct node* node = handle != NULL ? find_handle(handle) : NULL;
  return node != NULL ? node->name : "";
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
      buffer[used + i] = (char)(0x80u | ((code >> (6 * (length - 1 - i))) & 0x3Fu));
    }
    buffer[used] = (char)(marks[length] | (code >> (6 * (length - 1))));
    used += length;
  }
  buffer[used] = '\0';
  return buffer;
}
