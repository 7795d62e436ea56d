#include "intercept/submission/stored_program.hpp"

#include <sys/auxv.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/value/hexadecimal.hpp"
#include "core/value/stable_hash.hpp"
#include "gpu/image/program_file.hpp"
#include "intercept/host/program_name.hpp"

namespace contextune::intercept {
namespace {

std::string hash_of_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  StableHash hash;
  // Behind the name under which the program was started.
  hash.add(all.substr(std::min(all.find('\0'), all.size())));
  return hexadecimal(hash.value());
}

}  // namespace

StoredProgram::StoredProgram(ProcessStore& store) : store_(store) {
  const std::string path = program_name();
  key_.add("program", path.substr(path.rfind('/') + 1));
  key_.add("arguments", hash_of_arguments());
  const auto* const in_program = reinterpret_cast<const void*>(getauxval(AT_PHDR));
  if (const auto file = gpu::program_file_of(in_program, 1)) build_ = file->build;
}

const StoredSite* StoredProgram::find(std::string_view site) const {
  if (build_.empty()) return nullptr;
  const StoredSite* const stored = store_.find(store_.entry_of(region), std::string(site), key_);
  return stored != nullptr && stored->image == build_ ? stored : nullptr;
}

void StoredProgram::save(StoredSite site) const {
  if (build_.empty()) return;
  ProcessStore::Saved saved;
  saved.site = std::move(site);
  saved.code.build = build_;
  std::vector<ProcessStore::Saved> sites;
  sites.push_back(std::move(saved));
  store_.save(store_.entry_of(region).identity, std::move(sites), std::nullopt);
}

}  // namespace contextune::intercept
