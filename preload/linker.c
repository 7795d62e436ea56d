#include "frontend.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

contextune_dlsym_fn contextune_real_dlsym;
contextune_dlsym_fn contextune_next_dlsym;

/* By version: an unversioned lookup would need dlsym, which is looked for as well. By one that is
 * there: a lookup that fails allocates memory, which a sanitizer that is starting cannot give. */
static void* find_in_libc(const char* name) {
  void* found = dlvsym(RTLD_NEXT, name, CONTEXTUNE_OLDEST_LIBC);
  if (found == NULL) {
    __builtin_trap(); /* no libc lacks what is asked for here, and nothing could go on without it */
  }
  return found;
}

/* What comes before a sanitizer has started is asked of libc's own functions: the sanitizer has put
 * its own in their place, and those crash. */

static bool in_same_object(const void* a, const void* b) {
  const __typeof__(&dladdr) find = (__typeof__(&dladdr))find_in_libc("dladdr");
  Dl_info of_a;
  Dl_info of_b;
  return find(a, &of_a) != 0 && find(b, &of_b) != 0 && of_a.dli_fbase == of_b.dli_fbase;
}

void contextune_find_dlsym(void) {
  if (CONTEXTUNE_LIKELY(__atomic_load_n(&contextune_next_dlsym, __ATOMIC_ACQUIRE) != NULL)) {
    return;
  }
  void* real = find_in_libc("dlsym");
  void* next = contextune_next_definition(&contextune_find_dlsym, "dlsym", true);
  if (next == NULL || in_same_object(next, real)) {
    next = real; /* libc has several versions of it */
  }
  __atomic_store_n(&contextune_real_dlsym, (contextune_dlsym_fn)real, __ATOMIC_RELEASE);
  __atomic_store_n(&contextune_next_dlsym, (contextune_dlsym_fn)next, __ATOMIC_RELEASE);
}

bool contextune_is_tool(const void* caller) {
  static const char* const tools[] = {
      "libcuda.so", "libcupti.so",    "libcupti-",         "libnvperf",     "libcheckpoint",
      "libnvidia-", "libcuinj64",     "libToolsInjection", "libnsys",       "libsanitizer-",
      "libNvda",    "libInterceptor", "libTreeLauncher",   "libcontextune", "libcudadebugger",
  };
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL) {
    return false;
  }
  const char* slash = strrchr(info.dli_fname, '/');
  const char* base = slash != NULL ? slash + 1 : info.dli_fname;
  for (size_t i = 0; i < sizeof tools / sizeof tools[0]; ++i) {
    if (strncmp(base, tools[i], strlen(tools[i])) == 0) {
      return true;
    }
  }
  return false;
}

void* contextune_open_object_of(const void* address) {
  Dl_info info;
  struct link_map* map = NULL;
  if (dladdr1(address, &info, (void**)&map, RTLD_DL_LINKMAP) == 0 || map == NULL ||
      map->l_name == NULL || map->l_name[0] == '\0') {
    return NULL;
  }
  return dlopen(map->l_name, RTLD_NOLOAD | RTLD_LAZY);
}

/* ---- a search in load order, as RTLD_NEXT does it, on behalf of another object ---- */

struct next_search {
  const char* name;
  ElfW(Addr) caller;
  bool at_start;
  bool passed_caller;
  void* found;
};

static bool contains(const struct dl_phdr_info* object, ElfW(Addr) address) {
  for (unsigned int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &object->dlpi_phdr[i];
    const ElfW(Addr) start = object->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && address >= start && address < start + segment->p_memsz) {
      return true;
    }
  }
  return false;
}

/* libc's own, by a name that no sanitizer has taken. */
static void visit_objects(int (*callback)(struct dl_phdr_info*, size_t, void*), void* data) {
  static __typeof__(&dl_iterate_phdr) iterate;
  if (__atomic_load_n(&iterate, __ATOMIC_ACQUIRE) == NULL) {
    __atomic_store_n(&iterate, (__typeof__(iterate))find_in_libc("dl_iterate_phdr"),
                     __ATOMIC_RELEASE);
  }
  iterate(callback, data);
}

static uint32_t gnu_hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) {
    hash = hash * 33 + (unsigned char)*name;
  }
  return hash;
}

/* The index of `name` in the symbol table, or 0. */
static uint32_t find_symbol(const uint32_t* table, const ElfW(Sym) * symbols, const char* strings,
                            const char* name) {
  const uint32_t num_buckets = table[0];
  const uint32_t first_hashed = table[1];
  const uint32_t* buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* chain = buckets + num_buckets;
  const uint32_t hash = gnu_hash_of(name);
  uint32_t index = num_buckets != 0 ? buckets[hash % num_buckets] : 0;
  if (index < first_hashed) {
    return 0;
  }
  for (;; ++index) {
    const uint32_t entry = chain[index - first_hashed];
    if ((entry | 1U) == (hash | 1U) && contextune_is_same(strings + symbols[index].st_name, name)) {
      return index;
    }
    if ((entry & 1U) != 0) {
      return 0;
    }
  }
}

static void* definition_in(const struct dl_phdr_info* object, const char* name) {
  const ElfW(Dyn)* dynamic = NULL;
  for (unsigned int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = (const ElfW(Dyn)*)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    }
  }
  ElfW(Addr) table = 0;
  ElfW(Addr) symbols = 0;
  ElfW(Addr) strings = 0;
  for (; dynamic != NULL && dynamic->d_tag != DT_NULL; ++dynamic) {
    /* glibc has relocated these pointers already, but in the kernel's own object. */
    const ElfW(Addr) value = dynamic->d_un.d_ptr < object->dlpi_addr
                                 ? object->dlpi_addr + dynamic->d_un.d_ptr
                                 : dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_GNU_HASH:
        table = value;
        break;
      case DT_SYMTAB:
        symbols = value;
        break;
      case DT_STRTAB:
        strings = value;
        break;
      default:
        break;
    }
  }
  if (table == 0 || symbols == 0 || strings == 0) {
    return NULL;
  }
  const ElfW(Sym)* all = (const ElfW(Sym)*)symbols;
  const uint32_t index = find_symbol((const uint32_t*)table, all, (const char*)strings, name);
  if (index == 0 || all[index].st_shndx == SHN_UNDEF || all[index].st_value == 0) {
    return NULL;
  }
  return (void*)(object->dlpi_addr + all[index].st_value);
}

static int visit(struct dl_phdr_info* object, size_t size, void* data) {
  (void)size;
  struct next_search* search = data;
  /* What is loaded at start ends with the dynamic linker. What dlopen brings has a scope of its
   * own, and RTLD_NEXT from there is left to the real dlsym. */
  const bool start_ends = object->dlpi_addr != 0 && object->dlpi_addr == getauxval(AT_BASE);
  if (!search->passed_caller) {
    search->passed_caller = contains(object, search->caller);
    return !search->passed_caller && start_ends;
  }
  if (contains(object, (ElfW(Addr)) & visit)) {
    return 0;
  }
  search->found = definition_in(object, search->name);
  return search->found != NULL || (search->at_start && start_ends);
}

void* contextune_next_definition(const void* caller, const char* name, bool at_start) {
  struct next_search search = {.name = name, .caller = (ElfW(Addr))caller, .at_start = at_start};
  visit_objects(visit, &search);
  return search.found;
}

/* ---- segments of code ---- */

struct code_search {
  ElfW(Addr) address;
  ElfW(Addr) other;
  bool found;
};

static int visit_code(struct dl_phdr_info* object, size_t size, void* data) {
  (void)size;
  struct code_search* search = data;
  for (unsigned int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &object->dlpi_phdr[i];
    const ElfW(Addr) start = object->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0 &&
        search->address - start < segment->p_memsz && search->other - start < segment->p_memsz) {
      search->found = true;
    }
  }
  return search->found;
}

bool contextune_is_code_beside(const void* address, const void* other) {
  struct code_search search = {.address = (ElfW(Addr))address, .other = (ElfW(Addr))other};
  visit_objects(visit_code, &search);
  return search.found;
}
