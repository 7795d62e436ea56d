/* The oldest supported toolkit is 12.4: what the registry names that its headers lack. */
#pragma once

#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>

#if CUDA_VERSION < 12050
typedef struct CUctxCreateParams_st CUctxCreateParams;
typedef CUresult (*PFN_cuCtxCreate_v12050)(CUcontext*, CUctxCreateParams*, unsigned int, CUdevice);
typedef CUresult (*PFN_cuCtxRecordEvent_v12050)(CUcontext, CUevent);
typedef CUresult (*PFN_cuCtxWaitEvent_v12050)(CUcontext, CUevent);
#endif
#if CUDA_VERSION < 12060
typedef struct CUmemDecompressParams_st CUmemDecompressParams;
typedef CUresult (*PFN_cuMemBatchDecompressAsync_v12060)(CUmemDecompressParams*, size_t,
                                                         unsigned int, size_t*, CUstream);
typedef PFN_cuMemBatchDecompressAsync_v12060 PFN_cuMemBatchDecompressAsync_v12060_ptsz;
#endif
#if CUDA_VERSION < 12080
typedef struct CUmemcpyAttributes_st CUmemcpyAttributes;
typedef struct CUDA_MEMCPY3D_BATCH_OP_st CUDA_MEMCPY3D_BATCH_OP;
typedef CUresult (*PFN_cuMemcpyBatchAsync_v12080)(CUdeviceptr*, CUdeviceptr*, size_t*, size_t,
                                                  CUmemcpyAttributes*, size_t*, size_t, size_t*,
                                                  CUstream);
typedef PFN_cuMemcpyBatchAsync_v12080 PFN_cuMemcpyBatchAsync_v12080_ptsz;
typedef CUresult (*PFN_cuMemcpy3DBatchAsync_v12080)(size_t, CUDA_MEMCPY3D_BATCH_OP*, size_t*,
                                                    unsigned long long, CUstream);
typedef PFN_cuMemcpy3DBatchAsync_v12080 PFN_cuMemcpy3DBatchAsync_v12080_ptsz;
#endif
#if CUDA_VERSION < 13000
typedef CUresult (*PFN_cuCtxSynchronize_v13000)(CUcontext);
typedef CUresult (*PFN_cuMemcpyBatchAsync_v13000)(CUdeviceptr*, CUdeviceptr*, size_t*, size_t,
                                                  CUmemcpyAttributes*, size_t*, size_t, CUstream);
typedef PFN_cuMemcpyBatchAsync_v13000 PFN_cuMemcpyBatchAsync_v13000_ptsz;
typedef CUresult (*PFN_cuMemcpy3DBatchAsync_v13000)(size_t, CUDA_MEMCPY3D_BATCH_OP*,
                                                    unsigned long long, CUstream);
typedef PFN_cuMemcpy3DBatchAsync_v13000 PFN_cuMemcpy3DBatchAsync_v13000_ptsz;
typedef CUresult (*PFN_cuMemPrefetchBatchAsync_v13000)(CUdeviceptr*, size_t*, size_t,
                                                       CUmemLocation*, size_t*, size_t,
                                                       unsigned long long, CUstream);
typedef PFN_cuMemPrefetchBatchAsync_v13000 PFN_cuMemPrefetchBatchAsync_v13000_ptsz;
typedef CUresult (*PFN_cuMemDiscardBatchAsync_v13000)(CUdeviceptr*, size_t*, size_t,
                                                      unsigned long long, CUstream);
typedef PFN_cuMemDiscardBatchAsync_v13000 PFN_cuMemDiscardBatchAsync_v13000_ptsz;
typedef PFN_cuMemPrefetchBatchAsync_v13000 PFN_cuMemDiscardAndPrefetchBatchAsync_v13000;
typedef PFN_cuMemPrefetchBatchAsync_v13000 PFN_cuMemDiscardAndPrefetchBatchAsync_v13000_ptsz;
#endif
