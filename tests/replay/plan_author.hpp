#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ordering.hpp"
#include "plan.hpp"
#include "random.hpp"

/// What a region holds that cannot be repeated; each has one reason in the rank log.
enum class Obstacle {
  None,
  ManagedMemory,
  SharedMemory,
  HostFunction,
  WaitValue,
  Allocate,
  Release,
  OtherThread,
  KernelOnHost,
  HostReads,
  Bounce,
  CopyWithPitch,
  GraphWithHost,
  Capture,
  Unstable,
};
constexpr std::size_t num_obstacles = 15;

/// Draws a plan. Whatever it draws is given the events that make it right, and no more.
class PlanAuthor {
 public:
  explicit PlanAuthor(std::uint64_t seed);
  [[nodiscard]] Plan write();

 private:
  /// What operations may touch at the same time only to read: buffers, the table among them, then
  /// the module's counters, then pinned memory.
  struct Resource {
    std::optional<Ordering::Step> written;
    std::vector<Ordering::Step> read;
  };
  struct Use {
    std::size_t resource = 0;
    bool writes = false;
  };

  // The set-up.
  void draw_obstacle();
  void draw_streams();
  void draw_memory();
  void add_buffer(std::size_t memory, std::size_t first_byte, std::uint32_t words, bool kept);
  void draw_table();

  // The region, an action at a time.
  void write_region();
  void write_between();
  void write_one(bool in_region);
  void write_obstacle();
  void write_kernel(bool in_region);
  void write_graph(bool calls_host);
  void launch_graph(std::size_t graph);
  /// @param in_graph what the table holds when it is launched is not known
  [[nodiscard]] std::vector<Use> draw_kernel(Action& action, bool in_region, bool in_graph);
  void write_from_host();
  void write_on_device();
  void write_set();
  void write_to_host(bool pinned);
  void write_pinned();
  void write_loose_event();
  void write_host_wait();
  void write_tail();
  void write_pair();
  void write_seen_by_host_alone();
  void undo_shuffles();

  // Order.
  void put(Action action, const std::vector<Use>& uses);
  void order(std::size_t stream, const std::vector<Use>& uses);
  void order_host(const Resource& resource);
  void add_edge(const Ordering::Step& from, std::size_t to);
  void record(std::size_t event, std::size_t stream);
  void wait(std::size_t stream, std::size_t event);
  void emit(Action action) { target_->push_back(action); }

  void write_module_load();
  [[nodiscard]] Action on_stream(Action::Kind kind);
  [[nodiscard]] std::size_t any_buffer(bool kept_only);
  [[nodiscard]] std::size_t overwritten_buffer();
  [[nodiscard]] std::size_t any_pinned(bool result);
  [[nodiscard]] std::size_t counters() const { return plan_.buffers.size(); }
  [[nodiscard]] std::size_t pinned_resource(std::size_t pinned) const {
    return plan_.buffers.size() + 1 + pinned;
  }
  /// Of a stray write: where it is seen, whatever happens then. False: nowhere.
  [[nodiscard]] bool pick_victim(Action& action);
  [[nodiscard]] bool host_may_wait() const { return !to_host_; }

  Random random_;
  Plan plan_;
  Obstacle obstacle_ = Obstacle::None;
  bool any_flavour_ = true;  ///< no pass of these visits is the program's own
  std::optional<Ordering> ordering_;
  std::vector<Resource> resources_;
  std::vector<Ordering::Moment> events_;
  std::vector<std::size_t> table_now_;
  std::vector<std::pair<std::size_t, std::size_t>> shuffles_;
  std::vector<std::vector<Use>> graph_uses_;
  std::vector<Action>* target_ = nullptr;
  bool to_host_ = false;  ///< a copy to the host is under way: waiting for it is an obstacle
};
