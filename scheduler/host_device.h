// One code for host and device: functions marked HEADRACE_HOST_DEVICE are compiled for both.
#pragma once

#if defined(__CUDACC__)
#define HEADRACE_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define HEADRACE_HOST_DEVICE inline
#endif
