#include "runtime/context.h"

#include "runtime/argument_checks.h"
#include "runtime/status.h"

namespace headrace::runtime {

headrace_status create_context(const headrace_context_options& options,
                               std::unique_ptr<headrace_context>& context) {
  if (!(check_struct_size("options", options.struct_size, sizeof(options)) &&
        check_range("options.num_workers", options.num_workers, 0, kMaxWorkers))) {
    return HEADRACE_INVALID_ARGUMENT;
  }
  switch (raw_value(options.device)) {
    case HEADRACE_DEVICE_AUTO:
    case HEADRACE_DEVICE_CPU:
      context = std::make_unique<headrace_context>(
          std::make_unique<CpuExecutor>(static_cast<std::uint32_t>(options.num_workers)));
      return HEADRACE_OK;
    case HEADRACE_DEVICE_CUDA:
      return fail(HEADRACE_UNSUPPORTED,
                  "options.device is HEADRACE_DEVICE_CUDA, but this build has no CUDA executor; "
                  "needed: HEADRACE_DEVICE_CPU or HEADRACE_DEVICE_AUTO");
    default:
      return fail(HEADRACE_INVALID_ARGUMENT,
                  "options.device is {}; needed: HEADRACE_DEVICE_AUTO (0), HEADRACE_DEVICE_CPU (1) "
                  "or HEADRACE_DEVICE_CUDA (2)",
                  raw_value(options.device));
  }
}

headrace_status get_context_info(const headrace_context& context, headrace_context_info& info) {
  if (!check_struct_size("info", info.struct_size, sizeof(info))) return HEADRACE_INVALID_ARGUMENT;
  info.device = context.device;
  info.num_workers = static_cast<std::int32_t>(context.cpu->num_workers());
  info.description = context.description.c_str();
  return HEADRACE_OK;
}

}  // namespace headrace::runtime
