#include "harness/import/tensorflow_rows.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/import/decimal.h"
#include "harness/stats/stats.h"

namespace launchgap::recording {
namespace {

/// The op that every run of a graph begins with.
constexpr std::string_view kFirstOp = "_SOURCE";

bool is_row_of_tensorflow(std::string_view process) {
  constexpr std::string_view kBegins[] = {"/device:", "/gpu:", "/job:", "/host:"};
  return std::ranges::any_of(kBegins,
                             [&](std::string_view begin) { return process.starts_with(begin); });
}

}  // namespace

/// `stream:all` repeats what the numbered streams have, and `memcpy` their copies; "Tensors" have
/// no times.
TensorflowRows::Row TensorflowRows::row_named(std::string_view name) {
  constexpr std::string_view kStream = "/stream:", kCompute = " Compute";
  Row row;
  row.name = name;
  if (name.starts_with("/host:")) row.kind = Kind::threads;
  if (name.starts_with("/job:") && name.ends_with(kCompute) &&
      (name.find("/gpu:") != std::string_view::npos ||
       name.find("/device:GPU:") != std::string_view::npos)) {
    row.kind = Kind::scheduling;
    row.name.resize(row.name.size() - kCompute.size());
  }
  const auto gpu = gpu_row(name);
  if (!gpu) return row;
  row.gpu = gpu->gpu;
  name = gpu->rest;
  if (name.empty() || name.front() == ' ') row.kind = Kind::lines;
  if (name == "/memcpy Compute") row.kind = Kind::copies;
  if (!name.starts_with(kStream) || !name.ends_with(kCompute)) return row;
  name.remove_prefix(kStream.size());
  name.remove_suffix(kCompute.size());
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), row.stream);
  if (failed == std::errc() && end == name.data() + name.size()) row.kind = Kind::stream;
  return row;
}

/// Whether the event names a row or a line.
bool TensorflowRows::take_name(const ChromeEvent& event) {
  const std::string& own = event[EventField::own_name];
  if (event[EventField::name] == "process_name") {
    if (!is_row_of_tensorflow(own)) return true;
    const Row row = row_named(own);
    is_timeline_ = is_timeline_ || row.kind == Kind::stream || own.starts_with("/job:");
    rows_.insert_or_assign(event[EventField::pid], row);
    return true;
  }
  if (event[EventField::name] != "thread_name") return false;
  const auto row = rows_.find(event[EventField::pid]);
  if (row != rows_.end())
    lines_.insert_or_assign({event[EventField::pid], event[EventField::tid]}, own);
  return true;
}

void TensorflowRows::take(const ChromeEvent& event) {
  if (event[EventField::phase] == "M" && take_name(event)) return;
  if (rows_.empty() || event[EventField::phase] != "X") return;
  const auto known = rows_.find(event[EventField::pid]);
  if (known == rows_.end() || known->second.kind == Kind::other) return;
  const Row& row = known->second;
  has_events_ = true;
  ProfiledEvent own;
  own.name = event[EventField::name];
  const auto begin = nanoseconds_of_us(event[EventField::time]);
  const auto duration =
      nanoseconds_of_us(event[EventField::duration].empty() ? "0" : event[EventField::duration]);
  if (!begin || !duration || *duration < 0 ||
      __builtin_add_overflow(*begin, *duration, &own.end_ns)) {
    own.end_ns = -1;
  } else {
    own.begin_ns = *begin;
  }
  if (row.kind == Kind::threads || row.kind == Kind::lines) return take_of_line(row, event, own);
  if (own.begin_ns <= 0) return recording_.leave_out("events without a time that can be");
  Work work{op_of(event, own), row.gpu, row.stream, {}};
  if (row.kind == Kind::stream) {
    work.kind = event[EventField::name];
    work_.push_back(std::move(work));
  } else if (row.kind == Kind::copies) {
    copies_.insert(key_of(work));
  } else {
    if (scheduler_.empty()) scheduler_ = row.name;
    work.op.begins_run = work.op.begins_run && row.name == scheduler_;
    ops_.push_back(work.op);
  }
}

void TensorflowRows::take_of_line(const Row& row,
                                  const ChromeEvent& event,
                                  const ProfiledEvent& without_stats) {
  ProfiledEvent own = without_stats;
  for (const auto& [field, stat] :
       {std::pair(EventField::correlation, EventStat::correlation),
        std::pair(EventField::context, EventStat::context),
        std::pair(EventField::group, EventStat::group),
        std::pair(EventField::step, EventStat::step),
        std::pair(EventField::address, EventStat::address),
        std::pair(EventField::bytes, EventStat::bytes),
        std::pair(EventField::allocator, EventStat::allocator),
        std::pair(EventField::kernel_details, EventStat::kernel_details),
        std::pair(EventField::copy_details, EventStat::copy_details),
        std::pair(EventField::fill_details, EventStat::fill_details)}) {
    if (!event[field].empty()) own.set(stat, event[field]);
  }
  const auto line = lines_.find({event[EventField::pid], event[EventField::tid]});
  const std::string_view name = line == lines_.end() ? std::string_view() : line->second;
  if (row.kind == Kind::lines) {
    if (const auto stream = stream_of_line(name)) events_.take_of_gpu(row.gpu, *stream, own);
  } else {
    events_.take_of_host(fmt::format("{}/{}", name, event[EventField::tid]), own);
  }
}

TensorflowRows::Op TensorflowRows::op_of(const ChromeEvent& event, const ProfiledEvent& own) {
  const std::string& name = event[EventField::own_name];
  const auto [place, added] =
      op_names_.try_emplace(name, static_cast<std::uint32_t>(op_names_.size()));
  return {own.begin_ns, own.end_ns, place->second, name == kFirstOp};
}

void TensorflowRows::refuse_host_alone() const {
  if (process_.trace.size() > 0 || !process_.allocations.empty()) return;
  if (is_timeline_) {
    throw Error(
        "it is a timeline of TensorFlow's host alone, in which no time of a GPU can be told: "
        "TensorFlow 1 has rows \"/device:GPU:0/stream:13\" where it finds CUPTI "
        "(LD_LIBRARY_PATH) and traces by RunOptions.FULL_TRACE");
  }
  throw Error(
      "it is a trace of TensorFlow's or JAX's host alone, in which no time of a GPU can be told: "
      "import the *.xplane.pb beside it, which may have more");
}

void TensorflowRows::finish() {
  // What has rows of these names alone may be PyTorch's.
  if (has_events_ || (!rows_.empty() && process_.events() == 0)) {
    recording_.recorder = is_timeline_ ? "TensorFlow 1's timeline" : kProfiler;
    if (!is_timeline_) recording_.clock = "from when the profile began";
    take_work();
    events_.finish();
    make_steps();
    remark_on_ops();
    refuse_host_alone();
  }
}

/// A copy may bear the name of its op, and then only the row of copies tells.
void TensorflowRows::take_work() {
  for (const Work& work : work_) {
    ProfiledEvent event;
    event.name = work.kind;
    event.begin_ns = work.op.begin_ns;
    event.end_ns = work.op.end_ns;
    if (copies_.contains(key_of(work))) event.copy_details = work.kind;
    events_.take_of_gpu(work.gpu, work.stream, event);
  }
}

/// A file may have several runs of a graph, one after another. Each is a step.
void TensorflowRows::make_steps() {
  std::vector<std::int64_t> begins;
  for (const Op& op : ops_) {
    if (op.begins_run) begins.push_back(op.begin_ns);
  }
  std::ranges::sort(begins);
  std::vector<Op> all = ops_;
  for (const Work& work : work_) all.push_back(work.op);
  std::ranges::sort(all, {}, &Op::begin_ns);
  auto next = all.begin();
  for (std::size_t run = 0; run < begins.size(); ++run) {
    const std::int64_t until =
        run + 1 < begins.size() ? begins[run + 1] : std::numeric_limits<std::int64_t>::max();
    std::int64_t end = begins[run];
    for (; next != all.end() && next->begin_ns < until; ++next) end = std::max(end, next->end_ns);
    const std::string name = fmt::format("ProfilerStep#{}", run);
    process_.ranges.push_back(
        {begins[run], end, process_.thread(scheduler_), process_.trace.name_index(name.c_str())});
  }
}

/// Without launch calls, this is all that tells how soon work began: from where TensorFlow began
/// an op to the first that the GPU did for it.
void TensorflowRows::remark_on_ops() {
  const auto by_name = [](const Op& op) { return std::pair(op.name, op.begin_ns); };
  std::vector<Op> work;
  for (const Work& own : work_) work.push_back(own.op);
  std::ranges::sort(ops_, {}, by_name);
  std::ranges::sort(work, {}, by_name);
  std::vector<std::int64_t> times;
  auto next = work.begin();
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const Op& op = ops_[i];
    const bool repeats = i + 1 < ops_.size() && ops_[i + 1].name == op.name;
    while (next != work.end() && by_name(*next) < by_name(op)) ++next;
    if (next == work.end() || next->name != op.name) continue;
    if (repeats && next->begin_ns >= ops_[i + 1].begin_ns) continue;
    times.push_back(next->begin_ns - op.begin_ns);
  }
  const std::size_t n = times.size();
  if (n == 0) return;
  recording_.remarks.push_back(
      fmt::format("the first work of an op begins {} after the op (p50 of {} of its {})",
                  quantity(*stats::quantile_in_place(times, 0.5), "ns"),
                  n,
                  counted(ops_.size(), "op")));
}

}  // namespace launchgap::recording
