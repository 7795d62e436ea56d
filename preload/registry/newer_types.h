/* The oldest supported toolkit is 12.4: what the registry names that its headers lack. */
#pragma once

#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>

#if CUDA_VERSION < 12050
typedef struct CUctxCreateParams_st CUctxCreateParams;
typedef CUresult (*PFN_cuCtxCreate_v12050)(CUcontext*, CUctxCreateParams*, unsigned int, CUdevice);
#endif
#if CUDA_VERSION < 13000
typedef CUresult (*PFN_cuCtxSynchronize_v13000)(CUcontext);
#endif
