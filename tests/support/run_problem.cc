#include "tests/support/run_problem.h"

#include <algorithm>
#include <stdexcept>

namespace headrace::tests {
namespace {

headrace_plan_options plan_options(std::int32_t max_requests, std::int32_t max_seq_len,
                                   bool invariant) {
  headrace_plan_options options = headrace_plan_options_default();
  options.max_requests = max_requests;
  options.max_seq_len = max_seq_len;
  options.invariant = invariant ? 1 : 0;
  options.check_plans = 1;
  return options;
}

headrace_plan_sizes plan_sizes(const Device& device, const headrace_attention_desc& desc,
                               const headrace_plan_options& options) {
  headrace_plan_sizes sizes;
  sizes.struct_size = sizeof(sizes);
  require_ok(headrace_plan_get_sizes(device.context(), &desc, &options, &sizes));
  return sizes;
}

}  // namespace

void require_ok(headrace_status status) {
  if (status != HEADRACE_OK) throw std::runtime_error(headrace_last_error());
}

Device::Device(headrace_device kind, std::int32_t num_workers) : kind_(kind) {
  headrace_context_options options = headrace_context_options_default();
  options.device = kind;
  options.num_workers = num_workers;
  headrace_context* context = nullptr;
  require_ok(headrace_context_create(&options, &context));
  context_.reset(context);
}

TestPlan::TestPlan(const Device& device, const headrace_attention_desc& desc,
                   std::int32_t max_requests, std::int32_t max_seq_len, bool invariant,
                   Guards guards)
    : device_(device.kind()),
      guards_(guards),
      sizes_(plan_sizes(device, desc, plan_options(max_requests, max_seq_len, invariant))),
      buffer_(device.kind(), sizes_.plan_bytes, guards),
      workspace_(device.kind(), sizes_.workspace_bytes, guards) {
  const headrace_plan_options options = plan_options(max_requests, max_seq_len, invariant);
  headrace_plan* plan = nullptr;
  require_ok(headrace_plan_create(device.context(), &desc, &options, buffer_.data(), buffer_.size(),
                                  &plan));
  plan_.reset(plan);
}

void TestPlan::update(std::span<const std::int32_t> seq_lens, void* stream) {
  require_ok(headrace_plan_update(plan_.get(), seq_lens.data(),
                                  static_cast<std::int32_t>(seq_lens.size()), stream));
}

std::string TestPlan::to_json() const {
  std::size_t bytes = 0;
  require_ok(headrace_plan_describe(plan_.get(), HEADRACE_PLAN_JSON, nullptr, &bytes));
  std::string json(bytes, '\0');
  require_ok(headrace_plan_describe(plan_.get(), HEADRACE_PLAN_JSON, json.data(), &bytes));
  json.pop_back();  // the terminator
  return json;
}

headrace_run_args TestPlan::run_args(const ProblemMemory& memory,
                                     const DeviceBuffer& workspace) const {
  headrace_run_args args = memory.args();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  return args;
}

Result TestPlan::run(const Problem& problem, bool want_lse) {
  return run(problem, workspace_, want_lse);
}

Result TestPlan::run(const Problem& problem, DeviceBuffer& workspace, bool want_lse) {
  const ProblemMemory memory(problem, device_, guards_, want_lse);
  const headrace_run_args args = run_args(memory, workspace);
  require_ok(headrace_run(plan_.get(), &args));
  Result result = memory.collect();
  if (!workspace.guards_intact()) result.damage += "something around the workspace was written; ";
  if (!buffer_.guards_intact()) result.damage += "something around the plan was written; ";
  return result;
}

Result run_problem(const Problem& problem, const RunOptions& options) {
  const std::vector<std::int32_t>& planned =
      options.planned_lens.empty() ? problem.seq_lens : options.planned_lens;
  std::int32_t max_seq_len = options.max_seq_len;
  if (max_seq_len == 0) {
    max_seq_len = std::max(1, *std::max_element(planned.begin(), planned.end()));
  }
  const Device device(options.device, options.num_workers);
  TestPlan plan(device, problem.desc, static_cast<std::int32_t>(planned.size()), max_seq_len,
                options.invariant, options.guards);
  plan.update(planned);
  return plan.run(problem, options.want_lse);
}

}  // namespace headrace::tests
