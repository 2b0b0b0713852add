// Makes a program of tests one of the CUDA executor's.
#include "tests/catch.h"
#include "tests/support/run_problem.h"
#include "tests/support/tested_device.h"

namespace headrace::tests {

const headrace_device kTestedDevice = HEADRACE_DEVICE_CUDA;

std::string missing_requirement() {
  try {
    const Device device(HEADRACE_DEVICE_CUDA, 0);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace headrace::tests
