// A file of its own, so that a program's own definition takes precedence in linking.
#include "tests/catch.h"

namespace headrace::tests {

std::string missing_requirement() { return ""; }

}  // namespace headrace::tests
