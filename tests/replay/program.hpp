#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernel_call.hpp"
#include "plan.hpp"
#include "program_memory.hpp"

/// Carries a plan out, on the current context. It knows nothing of tuning.
class Program {
 public:
  explicit Program(const Plan& plan);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// What is still under way when the region is first entered.
  void begin();
  /// Enters the region once and does what comes after it.
  void visit();
  /// Of all that the program can see, once its work is over.
  [[nodiscard]] std::uint64_t digest() const;

  /// Called before and after the end of the region's range.
  void (*around_end)(bool before) = nullptr;

 private:
  void carry_out(const Action& action);
  void launch(const Action& action);
  void fill_call(KernelCall& call, const Action& action) const;
  void copy_from_host(const Action& action);
  void copy_on_device(const Action& action);
  void copy_to_host(const Action& action);
  void set(const Action& action);
  void write_results(const Action& action);
  void wait_for_value(const Action& action);
  void launch_elsewhere(const Action& action);
  void copy_with_pitch(const Action& action);
  [[nodiscard]] CUgraphExec make_graph(const GraphPlan& plan);
  [[nodiscard]] CUgraphNode add_node(CUgraph graph, const Action& action, CUgraphNode* after);
  void capture(const Action& action);
  void load_module(const Action& action);
  void unload(CUmodule module);
  void tidy_up();

  [[nodiscard]] CUfunction function(const Action& action);
  [[nodiscard]] CUstream stream(const Action& action) const;
  [[nodiscard]] const StreamCalls& calls(const Action& action) const {
    return stream_calls(action.per_thread_call);
  }
  [[nodiscard]] CUdeviceptr place(std::size_t buffer, const Action& action) const {
    return memory_.buffer(buffer) + action.offset_bytes;
  }

  const Plan& plan_;
  ProgramMemory memory_;
  std::vector<CUstream> streams_;
  std::vector<CUevent> events_;
  std::map<std::pair<std::size_t, std::string>, CUfunction> functions_;  ///< by module, name
  std::vector<CUgraphExec> graphs_;
  CUdeviceptr spare_ = 0;  ///< to be given back inside the region
  std::vector<CUdeviceptr> allocated_;
  std::vector<CUmodule> loaded_;
  unsigned visits_ = 0;
  std::uint64_t on_host_ = empty_digest;  ///< of what came to pageable memory
  std::vector<std::vector<std::uint8_t>> results_;
};
