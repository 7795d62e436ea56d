#include "api/tunable/code_version.hpp"

#include "core/value/hexadecimal.hpp"
#include "core/value/stable_hash.hpp"

namespace contextune::api {

std::string declaration_of(std::string_view version, std::string_view of) {
  if (version.empty()) return {};
  StableHash hash;
  hash.add(of);
  hash.add(version);
  return hexadecimal(hash.value());
}

}  // namespace contextune::api
