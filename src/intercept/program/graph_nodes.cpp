#include "intercept/program/graph_nodes.hpp"

#include <contextune/error.hpp>

#include <map>

#include "gpu/driver/launch_shape.hpp"
#include "gpu/image/kernel_shape.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t most_nodes = 16384;

/// Why a node forbids a second instantiation, as a sentence; null: it does not.
const char* why_single(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return nullptr;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return "The graph allocates memory.";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return "The graph has conditional nodes.";
    default:
      return "The graph has nodes of a kind that is not known here.";
  }
}

/// Why a replay cannot do a node again, as a sentence; null: it can.
const char* why_once(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return nullptr;
    case CU_GRAPH_NODE_TYPE_HOST:
      return "The graph calls host functions.";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return "The graph records or waits for events.";
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      return "The graph uses external semaphores.";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return "The graph waits for or writes values in memory.";
    default:
      return why_single(type);
  }
}

bool is_device_memory(const gpu::Driver& driver, CUmemorytype type, CUdeviceptr device) {
  if (type == CU_MEMORYTYPE_DEVICE) return true;
  if (type != CU_MEMORYTYPE_UNIFIED) return false;
  unsigned kind = 0;
  return driver.cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device) ==
             CUDA_SUCCESS &&
         kind == CU_MEMORYTYPE_DEVICE;
}

/// Whether a copy has a side that a replay cannot put back.
bool leaves_device_memory(const gpu::Driver& driver, CUgraphNode node) {
  CUDA_MEMCPY3D copy{};
  if (driver.cuGraphMemcpyNodeGetParams == nullptr ||
      driver.cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS) {
    return true;
  }
  return !is_device_memory(driver, copy.srcMemoryType, copy.srcDevice) ||
         !is_device_memory(driver, copy.dstMemoryType, copy.dstDevice);
}

CUgraphNodeType type_of(const gpu::Driver& driver, CUgraphNode node) {
  CUgraphNodeType type{};
  gpu::check(driver, driver.cuGraphNodeGetType(node, &type), "cuGraphNodeGetType");
  return type;
}

/// 0 where the driver cannot tell.
CUkernelNodeAttrValue attribute_of(const gpu::Driver& driver, CUgraphNode node,
                                   CUkernelNodeAttrID id) {
  CUkernelNodeAttrValue value{};
  if (driver.cuGraphKernelNodeGetAttribute(node, id, &value) != CUDA_SUCCESS) return {};
  return value;
}

GraphKernel read_kernel(const gpu::Driver& driver, CUgraphNode node) {
  GraphKernel kernel;
  kernel.node = node;
  gpu::check(driver, driver.cuGraphKernelNodeGetParams(node, &kernel.params),
             "cuGraphKernelNodeGetParams");
  const auto updatable =
      attribute_of(driver, node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE);
  if (updatable.deviceUpdatableKernelNode.deviceUpdatable != 0) {
    throw Error("The device may change the graph's kernels.");
  }
  // An attribute that is not set reads as 0.
  const auto note = [&](CUkernelNodeAttrID id, const auto& is_set) {
    const CUkernelNodeAttrValue value = attribute_of(driver, node, id);
    if (!is_set(value)) return;
    CUlaunchAttribute attribute{};
    attribute.id = id;
    attribute.value = value;
    kernel.attributes.push_back(attribute);
  };
  note(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, [](const auto& v) { return v.cooperative != 0; });
  note(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, [](const auto& v) { return v.clusterDim.x != 0; });
  note(CU_LAUNCH_ATTRIBUTE_PRIORITY, [](const auto& v) { return v.priority != 0; });
  return kernel;
}

CUgraph child_of(const gpu::Driver& driver, CUgraphNode node) {
  if (driver.cuGraphChildGraphNodeGetGraph == nullptr) throw Error("The graph has child graphs.");
  CUgraph child = nullptr;
  gpu::check(driver, driver.cuGraphChildGraphNodeGetGraph(node, &child),
             "cuGraphChildGraphNodeGetGraph");
  return child;
}

CUresult edges_of(const gpu::Driver& driver, CUgraph graph, std::vector<CUgraphNode>& from,
                  std::vector<CUgraphNode>& to) {
  std::size_t count = 0;
#if CUDA_VERSION >= 13000
  std::vector<CUgraphEdgeData> data;
  const auto get = [&] {
    data.resize(count);
    return driver.cuGraphGetEdges(graph, count == 0 ? nullptr : from.data(),
                                  count == 0 ? nullptr : to.data(),
                                  count == 0 ? nullptr : data.data(), &count);
  };
#else
  const auto get = [&] {
    return driver.cuGraphGetEdges(graph, count == 0 ? nullptr : from.data(),
                                  count == 0 ? nullptr : to.data(), &count);
  };
#endif
  const CUresult result = get();
  if (result != CUDA_SUCCESS || count == 0) return result;
  from.resize(count);
  to.resize(count);
  return get();
}

}  // namespace

Launch GraphKernel::launch(CUlaunchConfig& config) const noexcept {
  contextune_launch call{};
  call.fn = contextune_fn_cuLaunchKernel;
  call.function = params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  call.grid[0] = params.gridDimX;
  call.grid[1] = params.gridDimY;
  call.grid[2] = params.gridDimZ;
  call.block[0] = params.blockDimX;
  call.block[1] = params.blockDimY;
  call.block[2] = params.blockDimZ;
  call.shared_bytes = params.sharedMemBytes;
  call.kernel_params = params.kernelParams;
  call.extra = params.extra;
  if (!attributes.empty()) {
    call.fn = contextune_fn_cuLaunchKernelEx;
    config = {};
    gpu::set_shape(config, call.grid, call.block, call.shared_bytes);
    config.attrs = const_cast<CUlaunchAttribute*>(attributes.data());  // only read
    config.numAttrs = static_cast<unsigned>(attributes.size());
    call.config = &config;
  }
  return Launch(call);
}

std::uint64_t shape_of(const gpu::Driver& driver, CUfunction function, const Dim3& grid,
                       const Dim3& block, std::uint32_t shared_bytes) {
  const char* name = nullptr;
  if (driver.cuFuncGetName == nullptr || driver.cuFuncGetName(&name, function) != CUDA_SUCCESS) {
    name = nullptr;
  }
  if (name == nullptr &&
      (driver.cuKernelGetName == nullptr ||
       driver.cuKernelGetName(&name, reinterpret_cast<CUkernel>(function)) != CUDA_SUCCESS)) {
    name = nullptr;
  }
  return gpu::kernel_shape(name == nullptr ? "" : name, grid, block, shared_bytes);
}

std::vector<CUgraphNode> nodes_of(const gpu::Driver& driver, CUgraph graph) {
  std::size_t count = 0;
  gpu::check(driver, driver.cuGraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
  std::vector<CUgraphNode> nodes(count);
  if (count != 0) {
    gpu::check(driver, driver.cuGraphGetNodes(graph, nodes.data(), &count), "cuGraphGetNodes");
  }
  return nodes;
}

GraphNodes::GraphNodes(const gpu::Driver& driver, CUgraph graph) {
  const std::vector<CUgraphNode> nodes = nodes_of(driver, graph);
  if (nodes.size() > most_nodes) {
    throw Error("The graph has more than " + std::to_string(most_nodes) + " nodes.");
  }
  std::vector<CUgraphNodeType> types;
  for (CUgraphNode node : nodes) {
    types.push_back(type_of(driver, node));
    if (const char* why = why_single(types.back())) throw Error(why);
  }
  read_edges(driver, graph, nodes);
  for (const std::size_t at : sorted()) {
    if (types[at] == CU_GRAPH_NODE_TYPE_GRAPH) read_inner(driver, nodes[at]);
    if (types[at] != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    kernels_.push_back(read_kernel(driver, nodes[at]));
    place_.push_back(at);
  }
}

void GraphNodes::read_inner(const gpu::Driver& driver, CUgraphNode child) {
  const GraphNodes inner(driver, child_of(driver, child));
  inner_.insert(inner_.end(), inner.kernels_.begin(), inner.kernels_.end());
  inner_.insert(inner_.end(), inner.inner_.begin(), inner.inner_.end());
}

void GraphNodes::read_edges(const gpu::Driver& driver, CUgraph graph,
                            const std::vector<CUgraphNode>& nodes) {
  followers_.resize(nodes.size());
  std::vector<CUgraphNode> from;
  std::vector<CUgraphNode> to;
  orders_known_ = edges_of(driver, graph, from, to) == CUDA_SUCCESS;
  if (!orders_known_) return;
  std::map<CUgraphNode, std::size_t> places;
  for (std::size_t i = 0; i < nodes.size(); ++i) places[nodes[i]] = i;
  for (std::size_t i = 0; i < from.size(); ++i) {
    followers_[places.at(from[i])].push_back(places.at(to[i]));
  }
}

std::vector<std::size_t> GraphNodes::sorted() const {
  std::vector<std::size_t> waits_for(followers_.size());
  for (const auto& followers : followers_) {
    for (const std::size_t follower : followers) ++waits_for[follower];
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < waits_for.size(); ++i) {
    if (waits_for[i] == 0) order.push_back(i);
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const std::size_t follower : followers_[order[next]]) {
      if (--waits_for[follower] == 0) order.push_back(follower);
    }
  }
  return order;
}

bool GraphNodes::ordered(std::size_t first, std::size_t second) const {
  if (!orders_known_) return false;
  std::vector<bool> seen(followers_.size());
  std::vector<std::size_t> reached{place_[first]};
  while (!reached.empty()) {
    const std::size_t at = reached.back();
    reached.pop_back();
    if (at == place_[second]) return true;
    for (const std::size_t follower : followers_[at]) {
      if (seen[follower]) continue;
      seen[follower] = true;
      reached.push_back(follower);
    }
  }
  return false;
}

std::vector<GraphCopy> copies_of(const gpu::Driver& driver, CUgraph graph) {
  std::vector<GraphCopy> copies;
  for (CUgraphNode node : nodes_of(driver, graph)) {
    const CUgraphNodeType type = type_of(driver, node);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      const auto inner = copies_of(driver, child_of(driver, node));
      copies.insert(copies.end(), inner.begin(), inner.end());
    }
    if (type != CU_GRAPH_NODE_TYPE_MEMCPY) continue;
    CUDA_MEMCPY3D copy{};
    if (driver.cuGraphMemcpyNodeGetParams == nullptr)
      throw Error("The graph copies what the driver does not tell.");
    gpu::check(driver, driver.cuGraphMemcpyNodeGetParams(node, &copy),
               "cuGraphMemcpyNodeGetParams");
    copies.push_back({copy.dstDevice, copy.srcDevice});
  }
  return copies;
}

std::string why_unreplayable(const gpu::Driver& driver, CUgraph graph) {
  for (CUgraphNode node : nodes_of(driver, graph)) {
    const CUgraphNodeType type = type_of(driver, node);
    if (const char* why = why_once(type)) return why;
    if (type == CU_GRAPH_NODE_TYPE_MEMCPY && leaves_device_memory(driver, node)) {
      return "The graph copies from or to the host or an array.";
    }
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    if (std::string why = why_unreplayable(driver, child_of(driver, node)); !why.empty())
      return why;
  }
  return {};
}

}  // namespace contextune::intercept
