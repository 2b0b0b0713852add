/* Calls with numbers that an enum does not have. They are compiled as C, where an enum holds any
 * int: in C++ such a value would be undefined before the library sees it. */
#ifndef HEADRACE_TESTS_API_RAW_ENUMS_H_
#define HEADRACE_TESTS_API_RAW_ENUMS_H_

#include "headrace/headrace.h"

#ifdef __cplusplus
extern "C" {
#endif

void set_device(headrace_context_options* options, int value);
void set_q_dtype(headrace_attention_desc* desc, int value);
void set_kv_dtype(headrace_attention_desc* desc, int value);
void set_out_dtype(headrace_attention_desc* desc, int value);
void set_layout(headrace_attention_desc* desc, int value);
headrace_status describe_with_format(const headrace_plan* plan, int format, char* text,
                                     size_t* text_bytes);
const char* status_string_of(int status);

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_TESTS_API_RAW_ENUMS_H_ */
