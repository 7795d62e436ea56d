#include "space/space_file.hpp"

#include <utility>

#include <contextune/error.hpp>

#include "space/file_text.hpp"
#include "space/kernel_name.hpp"
#include "space/script.hpp"
#include "space/space_rule.hpp"

namespace contextune::space {

SpaceFile::SpaceFile(std::shared_ptr<Script> script) : script_(std::move(script)) {
  for (std::size_t i = 0; i < script_->kernels().size(); ++i) {
    auto rule = std::make_shared<SpaceRule>(script_, i);
    names_.push_back(rule->normalised());
    rules_.push_back(std::move(rule));
  }
}

SpaceFile SpaceFile::load(const std::string& path, const DeviceFacts& device) {
  return parse(read_space_file(path), path, device);
}

SpaceFile SpaceFile::parse(std::string_view text, const std::string& path,
                           const DeviceFacts& device) {
  return SpaceFile(std::make_shared<Script>(text, path, device));
}

std::span<const KernelDeclaration> SpaceFile::kernels() const {
  return script_->kernels();
}

std::span<const CollectiveDeclaration> SpaceFile::collectives() const {
  return script_->collectives();
}

std::span<const ChoiceDeclaration> SpaceFile::choices() const {
  return script_->choices();
}

bool SpaceFile::asked_for_device() const {
  return script_->scene().device_was_read;
}

std::shared_ptr<KernelRule> SpaceFile::find(std::string_view name, std::string_view symbol) const {
  const std::string wanted = normalised_name(name);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == wanted || (!symbol.empty() && names_[i] == symbol)) return rules_[i];
  }
  return nullptr;
}

}  // namespace contextune::space
