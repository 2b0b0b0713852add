#include "runtime/context.h"

#include <string>

#include "runtime/argument_checks.h"
#include "runtime/cpu_executor.h"
#include "runtime/cuda_executor.h"
#include "runtime/status.h"

namespace headrace::runtime {

headrace_status create_context(const headrace_context_options& options,
                               std::unique_ptr<headrace_context>& context) {
  if (!(check_struct_size("options", options.struct_size, sizeof(options)) &&
        check_range("options.num_workers", options.num_workers, 0, kMaxWorkers))) {
    return HEADRACE_INVALID_ARGUMENT;
  }
  const auto num_workers = static_cast<std::uint32_t>(options.num_workers);
  std::unique_ptr<Executor> executor;
  headrace_status status = HEADRACE_OK;
  switch (raw_value(options.device)) {
    case HEADRACE_DEVICE_AUTO: {
      // That there is no GPU is no failure of this call: an earlier one's message stays.
      const std::string earlier_error = last_error_buffer().data();
      status = create_cuda_executor(num_workers, executor);
      if (status == HEADRACE_UNSUPPORTED) {
        fail(status, "{}", earlier_error);
        executor = std::make_unique<CpuExecutor>(num_workers);
        status = HEADRACE_OK;
      }
      break;
    }
    case HEADRACE_DEVICE_CPU:
      executor = std::make_unique<CpuExecutor>(num_workers);
      break;
    case HEADRACE_DEVICE_CUDA:
      status = create_cuda_executor(num_workers, executor);
      break;
    default:
      return fail(HEADRACE_INVALID_ARGUMENT,
                  "options.device is {}; needed: HEADRACE_DEVICE_AUTO (0), HEADRACE_DEVICE_CPU (1) "
                  "or HEADRACE_DEVICE_CUDA (2)",
                  raw_value(options.device));
  }
  if (status == HEADRACE_OK) context = std::make_unique<headrace_context>(std::move(executor));
  return status;
}

headrace_status get_context_info(const headrace_context& context, headrace_context_info& info) {
  if (!check_struct_size("info", info.struct_size, sizeof(info))) return HEADRACE_INVALID_ARGUMENT;
  info.device = context.executor->device();
  info.num_workers = static_cast<std::int32_t>(context.executor->num_workers());
  info.description = context.description.c_str();
  return HEADRACE_OK;
}

}  // namespace headrace::runtime
