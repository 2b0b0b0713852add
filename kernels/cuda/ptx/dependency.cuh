// Programmatic dependent launch: a grid may start while the one before it on the stream still runs.
// Both do nothing in a grid that was launched in the ordinary way.
#pragma once

namespace headrace::cuda::ptx {

// Waits until the preceding grid has ended and its writes are visible.
__device__ __forceinline__ void wait_for_preceding_grid() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Lets the next grid start once every block of this one has called it or ended. That grid's own
// wait still lasts until this grid has ended.
__device__ __forceinline__ void allow_next_grid() {
  asm volatile("griddepcontrol.launch_dependents;");
}

}  // namespace headrace::cuda::ptx
