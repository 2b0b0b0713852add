// What the C ABI's enums are called on the command line and in reports.
#pragma once

#include <map>
#include <string>

#include "headrace/headrace.h"

namespace headrace::bench {

inline const std::map<std::string, headrace_dtype>& dtypes() {
  static const std::map<std::string, headrace_dtype> names{{"bf16", HEADRACE_BFLOAT16},
                                                           {"fp16", HEADRACE_FLOAT16},
                                                           {"f32", HEADRACE_FLOAT32},
                                                           {"fp8", HEADRACE_FLOAT8_E4M3}};
  return names;
}

inline const std::map<std::string, headrace_layout>& layouts() {
  static const std::map<std::string, headrace_layout> names{{"nhd", HEADRACE_NHD},
                                                            {"hnd", HEADRACE_HND}};
  return names;
}

inline const std::map<std::string, headrace_device>& devices() {
  static const std::map<std::string, headrace_device> names{{"cpu", HEADRACE_DEVICE_CPU},
                                                            {"cuda", HEADRACE_DEVICE_CUDA}};
  return names;
}

template <typename Enum>
std::string name_of(const std::map<std::string, Enum>& names, Enum value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  return "?";
}

}  // namespace headrace::bench
