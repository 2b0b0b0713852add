#include "tests/api/raw_enums.h"

void set_device(headrace_context_options* options, int value) {
  options->device = (headrace_device)value;
}

void set_q_dtype(headrace_attention_desc* desc, int value) {
  desc->q_dtype = (headrace_dtype)value;
}

void set_kv_dtype(headrace_attention_desc* desc, int value) {
  desc->kv_dtype = (headrace_dtype)value;
}

void set_out_dtype(headrace_attention_desc* desc, int value) {
  desc->out_dtype = (headrace_dtype)value;
}

void set_layout(headrace_attention_desc* desc, int value) { desc->layout = (headrace_layout)value; }

headrace_status describe_with_format(const headrace_plan* plan, int format, char* text,
                                     size_t* text_bytes) {
  return headrace_plan_describe(plan, (headrace_plan_format)format, text, text_bytes);
}

const char* status_string_of(int status) { return headrace_status_string((headrace_status)status); }
