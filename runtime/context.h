// The context handle: a device and what executes plans there.
#pragma once

#include <memory>
#include <string>

#include "headrace/headrace.h"
#include "runtime/executor.h"

struct headrace_context {
  explicit headrace_context(std::unique_ptr<headrace::runtime::Executor> runner)
      : executor(std::move(runner)), description(executor->describe()) {}

  std::unique_ptr<headrace::runtime::Executor> executor;
  std::string description;
};

namespace headrace::runtime {

inline constexpr std::int32_t kMaxWorkers = 4096;

// The one place where a device kind becomes an executor. Sets *context on success only.
headrace_status create_context(const headrace_context_options& options,
                               std::unique_ptr<headrace_context>& context);

headrace_status get_context_info(const headrace_context& context, headrace_context_info& info);

}  // namespace headrace::runtime
