#include "capture.hpp"
#include "graph_nodes.hpp"

using namespace simcuda;

namespace {

CUstreamCaptureStatus status_of(const Stream& stream) {
  if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                     : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

struct CaptureInfo {
  CUstreamCaptureStatus* status = nullptr;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** dependencies = nullptr;
  std::size_t* count = nullptr;
  const CUgraphEdgeData** edges = nullptr;
};

CUresult get_info(const Stream& stream, const CaptureInfo& info) {
  require(info.status != nullptr);
  check_implicit_dependency(stream);
  *info.status = status_of(stream);
  if (*info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (info.id != nullptr) *info.id = stream.capture->id;
  if (info.graph != nullptr) *info.graph = reinterpret_cast<CUgraph>(stream.capture->graph);
  if (info.dependencies != nullptr)
    *info.dependencies = reinterpret_cast<const CUgraphNode*>(stream.capture_tail.data());
  if (info.count != nullptr) *info.count = stream.capture_tail.size();
  if (info.edges != nullptr) *info.edges = nullptr;  // none has data
  return CUDA_SUCCESS;
}

CUresult update_dependencies(Stream& stream, const CUgraphNode* dependencies,
                             const CUgraphEdgeData* data, std::size_t count, unsigned flags) {
  require(stream.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
  for (const Edge& edge : edges_at(dependencies, data, count))
    require(!edge.has_data(), CUDA_ERROR_NOT_SUPPORTED);
  require(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  const auto nodes = nodes_at(dependencies, count);
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream.capture_tail.clear();
  stream.capture_tail.insert(stream.capture_tail.end(), nodes.begin(), nodes.end());
  return CUDA_SUCCESS;
}

}  // namespace

SIMCUDA_BOTH_STREAMS(cuStreamBeginCapture, _ptsz, (CUstream hStream), {
  begin_capture(stream_of(hStream, null_stream), CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr, {});
  return CUDA_SUCCESS;
})
SIMCUDA_BOTH_STREAMS(cuStreamBeginCapture_v2, _ptsz, (CUstream hStream, CUstreamCaptureMode mode), {
  begin_capture(stream_of(hStream, null_stream), mode, nullptr, {});
  return CUDA_SUCCESS;
})
SIMCUDA_BOTH_STREAMS(
    cuStreamBeginCaptureToGraph, _ptsz,
    (CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies,
     const CUgraphEdgeData* dependencyData, size_t numDependencies, CUstreamCaptureMode mode),
    {
      for (const Edge& edge : edges_at(dependencies, dependencyData, numDependencies))
        require(!edge.has_data(), CUDA_ERROR_NOT_SUPPORTED);
      begin_capture(stream_of(hStream, null_stream), mode, &driver().handles.get<Graph>(hGraph),
                    nodes_at(dependencies, numDependencies));
      return CUDA_SUCCESS;
    })
SIMCUDA_BOTH_STREAMS(cuStreamEndCapture, _ptsz, (CUstream hStream, CUgraph* phGraph), {
  require(phGraph != nullptr);
  *phGraph = nullptr;
  *phGraph = reinterpret_cast<CUgraph>(end_capture(stream_of(hStream, null_stream)));
  return CUDA_SUCCESS;
})
SIMCUDA_BOTH_STREAMS(cuStreamIsCapturing, _ptsz,
                     (CUstream hStream, CUstreamCaptureStatus* captureStatus), {
                       require(captureStatus != nullptr);
                       const Stream& stream = stream_of(hStream, null_stream);
                       check_implicit_dependency(stream);
                       *captureStatus = status_of(stream);
                       return CUDA_SUCCESS;
                     })

SIMCUDA_BOTH_STREAMS(cuStreamGetCaptureInfo, _ptsz,
                     (CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                      cuuint64_t* id_out),
                     {
                       CaptureInfo info;
                       info.status = captureStatus_out;
                       info.id = id_out;
                       return get_info(stream_of(hStream, null_stream), info);
                     })
SIMCUDA_BOTH_STREAMS(cuStreamGetCaptureInfo_v2, _ptsz,
                     (CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                      cuuint64_t* id_out, CUgraph* graph_out, const CUgraphNode** dependencies_out,
                      size_t* numDependencies_out),
                     {
                       return get_info(stream_of(hStream, null_stream),
                                       {captureStatus_out, id_out, graph_out, dependencies_out,
                                        numDependencies_out});
                     })
SIMCUDA_BOTH_STREAMS(cuStreamGetCaptureInfo_v3, _ptsz,
                     (CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                      cuuint64_t* id_out, CUgraph* graph_out, const CUgraphNode** dependencies_out,
                      const CUgraphEdgeData** edgeData_out, size_t* numDependencies_out),
                     {
                       return get_info(stream_of(hStream, null_stream),
                                       {captureStatus_out, id_out, graph_out, dependencies_out,
                                        numDependencies_out, edgeData_out});
                     })
SIMCUDA_BOTH_STREAMS(cuStreamUpdateCaptureDependencies, _ptsz,
                     (CUstream hStream, CUgraphNode* dependencies, size_t numDependencies,
                      unsigned int flags),
                     {
                       return update_dependencies(stream_of(hStream, null_stream), dependencies,
                                                  nullptr, numDependencies, flags);
                     })
SIMCUDA_BOTH_STREAMS(cuStreamUpdateCaptureDependencies_v2, _ptsz,
                     (CUstream hStream, CUgraphNode* dependencies,
                      const CUgraphEdgeData* dependencyData, size_t numDependencies,
                      unsigned int flags),
                     {
                       return update_dependencies(stream_of(hStream, null_stream), dependencies,
                                                  dependencyData, numDependencies, flags);
                     })

SIMCUDA_ENTRY(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), {
  require(mode != nullptr && *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
  *mode = exchange_capture_mode(*mode);
  return CUDA_SUCCESS;
})
