#pragma once

#include "fixture.hpp"

/// Graphs of a program, made with the driver's own calls; contextune is told of them as the
/// frontend would tell it.
class Graphs {
 public:
  explicit Graphs(Program& program);

  [[nodiscard]] CUstream stream();
  /// What `body` launches on the stream it is given, captured.
  [[nodiscard]] CUgraph capture(const std::function<void(CUstream)>& body);
  /// Kernel nodes, added by hand; the second after the first.
  [[nodiscard]] CUgraph explicit_graph(const std::vector<Adder*>& kernels, unsigned grid,
                                       unsigned block);
  [[nodiscard]] CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0);
  void destroy(CUgraph graph);
  void destroy(CUgraphExec exec);
  /// cuGraphExecUpdate.
  void update(CUgraphExec exec, CUgraph graph);
  CUresult launch(CUgraphExec exec, CUstream stream = nullptr);

  template <typename Function>
  [[nodiscard]] static Function driver(const char* name) {
    const Simulation& simulation = Simulation::get();
    return reinterpret_cast<Function>(simulation.driver.find_symbol(simulation.library, name));
  }

 private:
  Program& program_;
};

/// A program that is measured by CUPTI. A graph that met CUPTI keeps it in the process, so there is
/// one such program in a process, with a region of its own for each test.
class MeasuredProgram {
 public:
  MeasuredProgram();
  /// Entries of a new region, with a synchronisation after each.
  void steps(int times, const std::function<void()>& body);
  [[nodiscard]] bool said(const std::string& event, std::vector<std::string> texts) const;

  Program& program;
  const std::string region;
};
