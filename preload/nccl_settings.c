/* NCCL's settings as the user made them: variables, as they were when the core was attached, and
 * for what they do not say the files that NCCL reads as it is first used. Ranks need not use it
 * first with the same call, so one may have read them before its first communicator is made and
 * another not; all have to see the same. */
#include "nccl_wrappers.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe is left to NCCL, which would find nothing in it any more, and so is what has no end. */
static FILE* open_settings(const char* file) {
  enum { most_bytes = 1 << 20 };
  struct stat status;
  if (stat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > most_bytes) {
    return NULL;
  }
  return fopen(file, "re");
}

/* Lines of NAME=VALUE, of which the first counts; no white space is taken away. */
static bool find_in_file(const char* file, const char* name, char* value, size_t bytes) {
  FILE* stream = open_settings(file);
  if (stream == NULL) {
    return false;
  }
  const size_t length = strlen(name);
  char line[2048];
  bool found = false;
  while (!found && fgets(line, sizeof line, stream) != NULL) {
    found = strncmp(line, name, length) == 0 && line[length] == '=';
  }
  fclose(stream);
  if (found) {
    line[strcspn(line, "\n")] = '\0';
    snprintf(value, bytes, "%s", line + length + 1);
  }
  return found;
}

static bool find_in_home(const char* name, char* value, size_t bytes) {
  char memory[4096];
  char file[1024];
  struct passwd user;
  struct passwd* entry = NULL;
  if (getpwuid_r(getuid(), &user, memory, sizeof memory, &entry) != 0 || entry == NULL ||
      entry->pw_dir == NULL) {
    return false;
  }
  snprintf(file, sizeof file, "%s/.nccl.conf", entry->pw_dir);
  return find_in_file(file, name, value, bytes);
}

bool contextune_nccl_setting(enum contextune_variable which, char* value, size_t bytes) {
  const char* name = contextune_variable_name(which);
  const char* variable = contextune_variable(which);
  if (variable != NULL) {
    snprintf(value, bytes, "%s", variable);
    return true;
  }
  const char* file = contextune_variable(contextune_variable_nccl_conf_file);
  const bool found = file != NULL && file[0] != '\0' ? find_in_file(file, name, value, bytes)
                                                     : find_in_home(name, value, bytes);
  return found || find_in_file("/etc/nccl.conf", name, value, bytes);
}

/* NCCL lets it grow at the end only, and checks the first three. */
struct config {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int until_net_name[4];
  const char* net_name;
  int until_comm_name[2];
  const char* comm_name;
  int collnet;
  int policy; /* from 2.27 on */
};

bool contextune_nccl_excludes_tuner(const void* config) {
  enum { with_policy = 22700, efficiency = 1 };
  const struct config* settings = config;
  return settings != NULL && settings->size >= sizeof *settings && settings->magic == 0xcafebeef &&
         settings->version >= with_policy && settings->policy != INT_MIN &&
         (settings->policy & efficiency) != 0;
}
