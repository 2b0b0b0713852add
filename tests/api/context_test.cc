#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "headrace/headrace.hpp"
#include "tests/api/expect_error.h"
#include "tests/api/raw_enums.h"
#include "tests/catch.h"

using headrace::Context;
using headrace::tests::expect_error;

TEST_CASE("AUTO and CPU give a CPU context, with the workers asked for") {
  for (const headrace_device device : {HEADRACE_DEVICE_AUTO, HEADRACE_DEVICE_CPU}) {
    const headrace_context_info info = Context(device, 3).info();
    CHECK(info.device == HEADRACE_DEVICE_CPU);
    CHECK(info.num_workers == 3);
  }
}

TEST_CASE("0 workers means all of the machine") {
  const Context context;
  CHECK(context.info().num_workers ==
        static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

TEST_CASE("a context describes itself") {
  const Context one(HEADRACE_DEVICE_CPU, 1);
  const Context two(HEADRACE_DEVICE_CPU, 2);
  CHECK(std::string(one.info().description).starts_with("CPU, 1 thread, "));
  CHECK(std::string(two.info().description).starts_with("CPU, 2 threads, "));
}

TEST_CASE("wrong context options are refused one by one, and no handle is written") {
  headrace_context_options options = headrace_context_options_default();
  headrace_context* const untouched = reinterpret_cast<headrace_context*>(0x5A);
  headrace_context* context = untouched;

  SECTION("null options") {
    expect_error(headrace_context_create(nullptr, &context), HEADRACE_INVALID_ARGUMENT,
                 {"options is null"});
  }
  SECTION("null handle") {
    expect_error(headrace_context_create(&options, nullptr), HEADRACE_INVALID_ARGUMENT,
                 {"context is null"});
  }
  SECTION("struct_size of another version") {
    options.struct_size = 8;
    expect_error(headrace_context_create(&options, &context), HEADRACE_INVALID_ARGUMENT,
                 {"options.struct_size is 8", "16"});
  }
  SECTION("negative workers") {
    options.num_workers = -1;
    expect_error(headrace_context_create(&options, &context), HEADRACE_INVALID_ARGUMENT,
                 {"options.num_workers is -1", "0 to 4096"});
  }
  SECTION("absurdly many workers") {
    options.num_workers = 4097;
    expect_error(headrace_context_create(&options, &context), HEADRACE_INVALID_ARGUMENT,
                 {"options.num_workers is 4097", "0 to 4096"});
  }
  SECTION("CUDA where build, driver or device have none") {
    options.device = HEADRACE_DEVICE_CUDA;
    const headrace_status status = headrace_context_create(&options, &context);
    if (status == HEADRACE_OK) {  // this machine has a Hopper GPU
      headrace_context_destroy(std::exchange(context, untouched));
    } else {
      expect_error(status, HEADRACE_UNSUPPORTED, {"options.device is HEADRACE_DEVICE_CUDA"});
    }
  }
  SECTION("no device at all") {
    set_device(&options, 7);
    expect_error(headrace_context_create(&options, &context), HEADRACE_INVALID_ARGUMENT,
                 {"options.device is 7", "HEADRACE_DEVICE_CPU (1)"});
  }
  CHECK(context == untouched);
}

TEST_CASE("wrong arguments of headrace_context_get_info") {
  const Context context(HEADRACE_DEVICE_CPU, 1);
  headrace_context_info info{};
  info.struct_size = sizeof(info);
  expect_error(headrace_context_get_info(nullptr, &info), HEADRACE_INVALID_ARGUMENT,
               {"context is null"});
  expect_error(headrace_context_get_info(context.get(), nullptr), HEADRACE_INVALID_ARGUMENT,
               {"info is null"});
  info.struct_size = 4;
  expect_error(headrace_context_get_info(context.get(), &info), HEADRACE_INVALID_ARGUMENT,
               {"info.struct_size is 4", std::to_string(sizeof(info))});
  CHECK(info.num_workers == 0);
  CHECK(info.description == nullptr);
}

TEST_CASE("destroying null is allowed") {
  headrace_context_destroy(nullptr);
  headrace_plan_destroy(nullptr);
}

TEST_CASE("status strings") {
  CHECK(status_string_of(HEADRACE_OK) == std::string("ok"));
  CHECK(status_string_of(HEADRACE_BUFFER_TOO_SMALL) == std::string("buffer too small"));
  CHECK(status_string_of(HEADRACE_INTERNAL) == std::string("internal error"));
  CHECK(status_string_of(7777) == std::string("unknown status"));
}

TEST_CASE("the header, the library and the build agree on the version") {
  const std::string header = std::to_string(HEADRACE_VERSION_MAJOR) + "." +
                             std::to_string(HEADRACE_VERSION_MINOR) + "." +
                             std::to_string(HEADRACE_VERSION_PATCH);
  CHECK(headrace_version() == header);
  CHECK(PROJECT_VERSION == header);
}

TEST_CASE("the last error belongs to the thread that failed") {
  headrace_context* context = nullptr;
  REQUIRE(headrace_context_create(nullptr, &context) == HEADRACE_INVALID_ARGUMENT);
  const std::string mine = headrace_last_error();
  CHECK(mine.starts_with("options is null"));

  std::string before;
  std::string after;
  std::thread other([&] {
    before = headrace_last_error();
    headrace_context_get_info(nullptr, nullptr);
    after = headrace_last_error();
  });
  other.join();
  CHECK(before.empty());
  CHECK(after.starts_with("context is null"));
  CHECK(headrace_last_error() == mine);
}
