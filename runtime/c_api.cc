// The C ABI: checks handles and out pointers, and lets no exception through.
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <system_error>

#include "headrace/headrace.h"
#include "runtime/argument_checks.h"
#include "runtime/context.h"
#include "runtime/plan.h"
#include "runtime/plan_setup.h"
#include "runtime/status.h"

namespace runtime = headrace::runtime;

namespace {

template <typename Body>
headrace_status guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return runtime::fail(HEADRACE_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::system_error& error) {
    return runtime::fail(HEADRACE_OUT_OF_MEMORY, "cannot start a worker thread: {}", error.what());
  } catch (const std::exception& error) {
    return runtime::fail(HEADRACE_INTERNAL, "unexpected error: {}", error.what());
  } catch (...) {
    return runtime::fail(HEADRACE_INTERNAL, "unexpected error");
  }
}

headrace_status write_text(const std::string& description, char* text, std::size_t& text_bytes) {
  const std::size_t needed = description.size() + 1;
  const std::size_t given = text_bytes;
  text_bytes = needed;
  if (text == nullptr) return HEADRACE_OK;
  const headrace_status status = runtime::check_buffer_size("*text_bytes", given, needed);
  if (status == HEADRACE_OK) std::memcpy(text, description.c_str(), needed);
  return status;
}

}  // namespace

headrace_status headrace_context_create(const headrace_context_options* options,
                                        headrace_context** context) {
  return guarded([&] {
    if (!(runtime::check_not_null("options", options) &&
          runtime::check_not_null("context", context))) {
      return HEADRACE_INVALID_ARGUMENT;
    }
    std::unique_ptr<headrace_context> created;
    const headrace_status status = runtime::create_context(*options, created);
    if (status == HEADRACE_OK) *context = created.release();
    return status;
  });
}

void headrace_context_destroy(headrace_context* context) { delete context; }

headrace_status headrace_context_get_info(const headrace_context* context,
                                          headrace_context_info* info) {
  return guarded([&] {
    if (!(runtime::check_not_null("context", context) && runtime::check_not_null("info", info))) {
      return HEADRACE_INVALID_ARGUMENT;
    }
    return runtime::get_context_info(*context, *info);
  });
}

headrace_status headrace_plan_get_sizes(const headrace_context* context,
                                        const headrace_attention_desc* desc,
                                        const headrace_plan_options* options,
                                        headrace_plan_sizes* sizes) {
  return guarded([&] {
    if (!(runtime::check_not_null("context", context) && runtime::check_not_null("desc", desc) &&
          runtime::check_not_null("options", options) && runtime::check_not_null("sizes", sizes) &&
          runtime::check_struct_size("sizes", sizes->struct_size, sizeof(*sizes)))) {
      return HEADRACE_INVALID_ARGUMENT;
    }
    runtime::PlanSetup setup;
    const headrace_status status = runtime::make_plan_setup(*context, *desc, *options, setup);
    if (status != HEADRACE_OK) return status;
    sizes->plan_bytes = setup.layout.total_bytes;
    sizes->workspace_bytes = setup.workspace_bytes;
    sizes->alignment = runtime::kBufferAlignment;
    sizes->max_items = setup.capacity.max_items;
    return HEADRACE_OK;
  });
}

headrace_status headrace_plan_create(headrace_context* context, const headrace_attention_desc* desc,
                                     const headrace_plan_options* options, void* plan_buffer,
                                     size_t plan_buffer_bytes, headrace_plan** plan) {
  return guarded([&] {
    if (!(runtime::check_not_null("context", context) && runtime::check_not_null("desc", desc) &&
          runtime::check_not_null("options", options) && runtime::check_not_null("plan", plan) &&
          runtime::check_pointer("plan_buffer", plan_buffer, runtime::kBufferAlignment))) {
      return HEADRACE_INVALID_ARGUMENT;
    }
    runtime::PlanSetup setup;
    headrace_status status = runtime::make_plan_setup(*context, *desc, *options, setup);
    if (status != HEADRACE_OK) return status;
    status = runtime::check_buffer_size("plan_buffer_bytes", plan_buffer_bytes,
                                        setup.layout.total_bytes);
    if (status != HEADRACE_OK) return status;
    std::unique_ptr<runtime::PlanBuffer> buffer;
    status = context->executor->make_plan_buffer(plan_buffer, setup.layout, setup.capacity, buffer);
    if (status == HEADRACE_OK) *plan = new headrace_plan(*context, setup, std::move(buffer));
    return status;
  });
}

void headrace_plan_destroy(headrace_plan* plan) { delete plan; }

headrace_status headrace_plan_update(headrace_plan* plan, const int32_t* seq_lens,
                                     int32_t num_requests, void* stream) {
  return guarded([&] {
    if (!runtime::check_not_null("plan", plan)) return HEADRACE_INVALID_ARGUMENT;
    return plan->update(seq_lens, num_requests, stream);
  });
}

headrace_status headrace_plan_describe(const headrace_plan* plan, headrace_plan_format format,
                                       char* text, size_t* text_bytes) {
  return guarded([&] {
    if (!(runtime::check_not_null("plan", plan) &&
          runtime::check_not_null("text_bytes", text_bytes) &&
          runtime::check_range("format", runtime::raw_value(format), HEADRACE_PLAN_TEXT,
                               HEADRACE_PLAN_JSON))) {
      return HEADRACE_INVALID_ARGUMENT;
    }
    return write_text(format == HEADRACE_PLAN_TEXT ? plan->to_text() : plan->to_json(), text,
                      *text_bytes);
  });
}

headrace_status headrace_run(headrace_plan* plan, const headrace_run_args* args) {
  return guarded([&] {
    if (!(runtime::check_not_null("plan", plan) && runtime::check_not_null("args", args))) {
      return HEADRACE_INVALID_ARGUMENT;
    }
    return plan->run(*args);
  });
}

const char* headrace_last_error(void) { return runtime::last_error_buffer().data(); }

const char* headrace_status_string(headrace_status status) {
  switch (runtime::raw_value(status)) {
    case HEADRACE_OK:
      return "ok";
    case HEADRACE_INVALID_ARGUMENT:
      return "invalid argument";
    case HEADRACE_UNSUPPORTED:
      return "unsupported";
    case HEADRACE_BUFFER_TOO_SMALL:
      return "buffer too small";
    case HEADRACE_OUT_OF_CAPACITY:
      return "out of capacity";
    case HEADRACE_INVALID_DATA:
      return "invalid data";
    case HEADRACE_OUT_OF_MEMORY:
      return "out of memory";
    case HEADRACE_INTERNAL:
      return "internal error";
    case HEADRACE_CUDA_ERROR:
      return "CUDA error";
    default:
      return "unknown status";
  }
}

const char* headrace_version(void) { return HEADRACE_VERSION; }
