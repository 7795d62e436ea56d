#include <contextune/contextune.h>
#include <contextune/error.hpp>
#include <contextune/kernel.hpp>

namespace contextune {
namespace {

Dim3 dim3_of(const std::uint32_t (&numbers)[3]) {
  return {numbers[0], numbers[1], numbers[2]};
}

void assign(std::uint32_t (&numbers)[3], Dim3 dim3) {
  numbers[0] = dim3.x;
  numbers[1] = dim3.y;
  numbers[2] = dim3.z;
}

}  // namespace

LaunchInfo::LaunchInfo(contextune_launch_view& view) noexcept : view_(&view) {
  view.reads = 0;
}

std::string_view LaunchInfo::kernel() const noexcept {
  return view_->kernel;
}

Dim3 LaunchInfo::grid() const noexcept {
  view_->reads |= contextune_reads_grid;
  return dim3_of(view_->grid);
}

Dim3 LaunchInfo::block() const noexcept {
  view_->reads |= contextune_reads_block;
  return dim3_of(view_->block);
}

Dim3 LaunchInfo::cluster() const noexcept {
  view_->reads |= contextune_reads_shape;
  return dim3_of(view_->cluster);
}

std::uint32_t LaunchInfo::shared_bytes() const noexcept {
  view_->reads |= contextune_reads_shape;
  return view_->shared_bytes;
}

// A site belongs to one device, so reading its facts makes no answer depend on a launch.
Device LaunchInfo::device() const noexcept {
  return {view_->num_sms, view_->compute_capability, view_->max_threads_per_block,
          view_->max_shared_bytes};
}

std::size_t LaunchInfo::num_arguments() const noexcept {
  return view_->num_arguments;
}

const void* LaunchInfo::bytes(std::size_t index, std::size_t size_bytes) const {
  if (index >= view_->num_arguments) {
    throw Error("kernel '" + std::string(kernel()) + "' has " +
                std::to_string(view_->num_arguments) + " arguments; there is no argument " +
                std::to_string(index) + " (they are counted from 0)");
  }
  if (view_->argument_bytes[index] != size_bytes) {
    throw Error("argument " + std::to_string(index) + " of kernel '" + std::string(kernel()) +
                "' has " + std::to_string(view_->argument_bytes[index]) + " bytes, not " +
                std::to_string(size_bytes) + "; read it as the type of the kernel's parameter");
  }
  if (index < 64) {
    view_->read_arguments |= std::uint64_t{1} << index;
  } else {
    view_->reads |= contextune_reads_everything;
  }
  return view_->arguments[index];
}

LaunchEdit::LaunchEdit(contextune_launch_view& view, contextune_launch_change& change,
                       std::vector<std::string>& texts) noexcept
    : LaunchInfo(view), change_(&change), texts_(&texts) {}

LaunchEdit& LaunchEdit::set_grid(Dim3 grid) noexcept {
  assign(change_->grid, grid);
  return *this;
}

LaunchEdit& LaunchEdit::set_block(Dim3 block) noexcept {
  assign(change_->block, block);
  return *this;
}

LaunchEdit& LaunchEdit::set_cluster(Dim3 cluster) noexcept {
  assign(change_->cluster, cluster);
  return *this;
}

LaunchEdit& LaunchEdit::set_shared_bytes(std::uint32_t size_bytes) noexcept {
  change_->shared_bytes = size_bytes;
  return *this;
}

// `texts_`: function, module, source, then the options; the rule points the change at them when the
// author's callable is done, as adding one may move the others.
LaunchEdit& LaunchEdit::set_function(std::string function, std::string module_file) {
  *texts_ = {std::move(function), std::move(module_file), std::string()};
  return *this;
}

LaunchEdit& LaunchEdit::set_source(std::string source_file, std::string name,
                                   std::vector<std::string> build_options) {
  *texts_ = {std::move(name), std::string(), std::move(source_file)};
  texts_->insert(texts_->end(), std::make_move_iterator(build_options.begin()),
                 std::make_move_iterator(build_options.end()));
  return *this;
}

}  // namespace contextune
