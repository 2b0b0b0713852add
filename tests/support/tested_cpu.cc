// A file of its own, so that a program's own definition takes precedence in linking.
#include "tests/support/tested_device.h"

namespace headrace::tests {

const headrace_device kTestedDevice = HEADRACE_DEVICE_CPU;

}  // namespace headrace::tests
