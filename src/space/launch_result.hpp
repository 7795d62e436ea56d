#pragma once

#include <filesystem>

#include "core/value/kernel_rule.hpp"
#include "space/scene.hpp"

namespace contextune::space {

/// The change that the edits of a scene make to its launch, checked as a whole. Notes as read what
/// the result depends on beyond what `apply` read. Files are taken relative to `folder`.
/// @throws ScriptFault with the line of the write that is wrong
[[nodiscard]] LaunchChange finish_launch(Scene& scene, const std::filesystem::path& folder);

}  // namespace contextune::space
