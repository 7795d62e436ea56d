#include "stale_constants.hpp"

#include <algorithm>

#include "driver.hpp"

namespace simcuda {

void StaleConstants::take(const Context& context) {
  for (const Module* const module : context.modules)
    for (const ModuleImage::Global& global : module->image->globals) {
      if (!global.constant) continue;
      const std::uintptr_t begin = module->globals.at(global.name);
      const auto* const bytes = reinterpret_cast<const std::byte*>(begin);
      kept_.emplace_back(begin, std::vector<std::byte>(bytes, bytes + global.bytes));
    }
}

void StaleConstants::exchange() {
  for (auto& [begin, bytes] : kept_) {
    const Memory::Block* const block = driver().memory.find(begin);
    if (block == nullptr || block->begin != begin || block->bytes < bytes.size()) continue;
    std::swap_ranges(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(begin));
  }
}

}  // namespace simcuda
