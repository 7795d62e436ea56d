#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "intercept/program/graph_call.hpp"
#include "intercept/program/launch.hpp"
#include "intercept/site/region.hpp"
#include "intercept/site/region_entries.hpp"
#include "intercept/site/region_services.hpp"

namespace contextune::intercept {

class RegionCollectives;

/// A region as the hooks see it.
class LaunchRegion : public Region,
                     public std::enable_shared_from_this<LaunchRegion>,
                     private EntryObserver {
 public:
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }

  void begin_entry() noexcept override { entries_.begin_on_thread(RegionEntries::api_mark, false); }
  void end_entry() noexcept override { entries_.end_on_thread(RegionEntries::api_mark); }
  [[nodiscard]] RegionEntries& entries() noexcept { return entries_; }
  [[nodiscard]] const RegionEntries& entries() const noexcept { return entries_; }

  /// Makes the launch, exactly once as far as the program can tell.
  /// @param counts it belongs to the entry that may be a pass
  virtual CUresult launch(const contextune_launch& call, bool counts) noexcept = 0;

  /// The same for the launch of a graph: as the program wrote it in a region of kernels only.
  virtual CUresult launch_graph(const GraphCall& call, bool counts) noexcept = 0;
  /// The same under a plan of the caller's, reported to nobody.
  /// @param failed gets the sites whose config cannot be launched; they ran their default
  virtual CUresult launch_graph_with(const GraphCall& call,
                                     const std::function<std::uint32_t(const Site&)>& config_of,
                                     std::vector<const Site*>& failed) noexcept = 0;
  /// Whether graphs launched in it have regions of their own.
  [[nodiscard]] virtual bool leaves_graphs() const noexcept { return false; }

  /// Its collectives; null: they are not tuned in such a region.
  [[nodiscard]] virtual RegionCollectives* collectives() noexcept { return nullptr; }
  /// The program begins a collective in it, and collectives() is null.
  virtual void saw_collective() noexcept {}

  /// Whether the open entry is measured: then it is better not disturbed.
  [[nodiscard]] virtual bool is_measuring() const noexcept { return false; }

  /// Writes lines about where it stands; file writes only.
  virtual void write_summary() noexcept = 0;
  /// Nothing is tuned any more, for that reason.
  virtual void stop(FallbackReason reason, const std::string& text) noexcept = 0;
  /// The program has just waited for the GPU.
  virtual void synchronised() noexcept {}
  /// The same, and a search of the process has winners on probation.
  virtual void check_probation() noexcept {}
  /// The program ends: the GPU is kept waiting no longer.
  virtual void let_go() noexcept {}
  /// The program destroys a stream or a context, or the context is gone already.
  virtual void forget_stream(StreamHandle) noexcept {}
  virtual void forget_context(CUcontext, bool /*gone*/) noexcept {}

  [[nodiscard]] const RegionServices& services() const noexcept { return services_; }
  [[nodiscard]] Launch launch_of(const contextune_launch& call) const noexcept;

 protected:
  /// @param takes_launches as RegionEntries has it
  LaunchRegion(std::string name, const RegionServices& services, bool takes_launches = true)
      : name_(std::move(name)),
        services_(services),
        entries_(*this, *this, services, takes_launches) {}

  [[nodiscard]] bool is_capturing(const Launch& launch) const noexcept;

 private:
  const std::string name_;
  const RegionServices& services_;
  RegionEntries entries_;
};

}  // namespace contextune::intercept
