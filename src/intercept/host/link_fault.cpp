#include "intercept/host/link_fault.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace contextune::intercept {
namespace {

constexpr std::string_view core = "libcontextune.so";
constexpr std::string_view frontend = "libcontextune_preload.so";
constexpr const char* remedy =
    " Link what `pkg-config --libs contextune` says in front of the driver, or start the program "
    "with `contextune run`.";

struct ProgramFile {
  std::string name;  ///< empty: the program
  bool links_core = false;
  bool is_frontend = false;
  bool is_driver = false;
  bool is_loader = false;
};

std::string_view base_of(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

bool contains(const dl_phdr_info& object, ElfW(Addr) address) noexcept {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const ElfW(Addr) start = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= start && address < start + segment.p_memsz)
      return true;
  }
  return false;
}

/// Whether the object names that library as one that it needs.
bool links(const dl_phdr_info& object, std::string_view library) noexcept {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + segment.p_vaddr);
  }
  const char* strings = nullptr;
  for (const ElfW(Dyn)* one = dynamic; one != nullptr && one->d_tag != DT_NULL; ++one) {
    // glibc has relocated this pointer already, but in the kernel's own object.
    if (one->d_tag != DT_STRTAB) continue;
    const ElfW(Addr) at = one->d_un.d_ptr;
    strings = reinterpret_cast<const char*>(at < object.dlpi_addr ? at + object.dlpi_addr : at);
  }
  if (strings == nullptr) return false;
  for (const ElfW(Dyn)* one = dynamic; one->d_tag != DT_NULL; ++one) {
    if (one->d_tag == DT_NEEDED && base_of(strings + one->d_un.d_val) == library) return true;
  }
  return false;
}

/// The frontend exports its wrappers under a version of its own, which only a lookup that names the
/// version finds.
ElfW(Addr) address_in_frontend() noexcept {
  return reinterpret_cast<ElfW(Addr)>(dlvsym(RTLD_DEFAULT, "cuInit", "CONTEXTUNE_1"));
}

struct Collected {
  ElfW(Addr) in_frontend = 0;
  std::vector<ProgramFile> objects;
};

int collect(dl_phdr_info* info, std::size_t, void* data) {
  // Exceptions may not pass through libc; without memory the rest is not looked at.
  try {
    auto& collected = *static_cast<Collected*>(data);
    ProgramFile object;
    object.name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    object.links_core = links(*info, core);
    object.is_frontend = collected.in_frontend != 0 && contains(*info, collected.in_frontend);
    object.is_driver = base_of(object.name).starts_with("libcuda.so");
    object.is_loader = info->dlpi_addr != 0 && info->dlpi_addr == getauxval(AT_BASE);
    collected.objects.push_back(std::move(object));
  } catch (...) {
    return 1;
  }
  return 0;
}

/// In the order in which names are looked up in them; those loaded at the start end with the
/// loader.
std::vector<ProgramFile> loaded_objects() {
  Collected collected{.in_frontend = address_in_frontend(), .objects = {}};
  dl_iterate_phdr(&collect, &collected);
  return std::move(collected.objects);
}

using Found = std::vector<ProgramFile>::const_iterator;
Found find(const std::vector<ProgramFile>& objects, bool ProgramFile::*what) {
  return std::find_if(objects.begin(), objects.end(),
                      [&](const ProgramFile& one) { return one.*what; });
}

LinkFault fault_of(const std::vector<ProgramFile>& objects) {
  const auto linking = find(objects, &ProgramFile::links_core);
  const auto fronted = find(objects, &ProgramFile::is_frontend);
  if (fronted != objects.end()) {
    const bool at_start = fronted < find(objects, &ProgramFile::is_loader);
    return {at_start ? FallbackReason::LinkedWrongly : FallbackReason::LoadedLate,
            "libcuda.so " + std::string(at_start ? "is linked" : "was loaded") + " before " +
                std::string(frontend) +
                ", so the program's calls of the driver do not come to contextune." + remedy};
  }
  if (linking == objects.end()) return {};
  const std::string who = linking->name.empty() ? "The program" : "'" + linking->name + "'";
  return {FallbackReason::LinkedWrongly,
          who + " is linked with " + std::string(core) + ", but not with " + std::string(frontend) +
              ", which sees the launches: it was not named, or --as-needed has left it out." +
              remedy};
}

}  // namespace

LinkFault find_link_fault() {
  LinkFault fault = fault_of(loaded_objects());
  if (fault.sentence.empty()) fault.sentence = fallback_info(fault.reason).sentence;
  return fault;
}

bool has_frontend() noexcept {
  static const bool found = address_in_frontend() != 0;
  return found;
}

bool driver_comes_first() noexcept {
  static const bool first = [] {
    try {
      const std::vector<ProgramFile> objects = loaded_objects();
      return find(objects, &ProgramFile::is_driver) < find(objects, &ProgramFile::is_frontend);
    } catch (...) {
      return false;
    }
  }();
  return first;
}

}  // namespace contextune::intercept
