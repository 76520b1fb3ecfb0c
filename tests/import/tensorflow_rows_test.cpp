#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "harness/import/idleness.h"
#include "harness/import/readers.h"
#include "harness/import/steps.h"
#include "tests/error_of.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

using namespace testing;
using activity::Purpose;

std::string row(int pid, const std::string& name) {
  return fmt::format(
      R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"{}"}}}})", pid, name);
}
std::string line(int pid, int tid, const std::string& name) {
  return fmt::format(
      R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
      pid,
      tid,
      name);
}
std::string slice(int pid,
                  int tid,
                  const std::string& name,
                  const std::string& begin,
                  const std::string& duration,
                  const std::string& arguments = "") {
  return fmt::format(R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                     name,
                     pid,
                     tid,
                     begin,
                     duration,
                     arguments);
}
/// Of TensorFlow 1: what an op is called in its graph.
std::string op(int pid, const std::string& kind, const std::string& name, int begin, int duration) {
  return slice(pid,
               0,
               kind,
               std::to_string(begin),
               std::to_string(duration),
               fmt::format(R"("name":"{}","op":"{}")", name, kind));
}

struct TensorflowRowsOf : TextFile {
  Recording read(const std::vector<std::string>& events) const {
    return read_chrome_trace(file(fmt::format("{{\"traceEvents\":[{}]}}", fmt::join(events, ","))));
  }
  std::string refusal(const std::vector<std::string>& events) const {
    return error_of([&] { read(events); });
  }
};

// --- TensorBoard's traces ---

TEST_F(TensorflowRowsOf, ATraceHaveCallsAndKernels) {
  const Recording recording = read({
      row(1, "/device:GPU:3"),
      line(1, 13, "stream #13(Compute)"),
      line(1, 99, "TensorFlow Ops"),
      row(701, "/host:CPU"),
      line(701, 5, "tf_gpu_private_3"),
      slice(701, 5, "a_kernel", "1.5", "4.25", R"("correlation_id":"31","group_id":2)"),
      slice(701,
            5,
            "MemoryAllocation",
            "7",
            "0",
            R"("addr":"64","allocation_bytes":"256","allocator_name":"GPU_3_bfc")"),
      slice(1,
            13,
            "a_kernel",
            "11.5",
            "2",
            R"("correlation_id":31,"context_id":"$$2","kernel_details":"grid:8,1,1 block:32,1,1")"),
      slice(1, 13, "MemcpyD2H", "14", "1", R"("memcpy_details":"size:12 dest:0")"),
      slice(1, 99, "MatMul", "11.5", "2"),
      slice(1, 14, "nothing tells of which stream", "11.5", "2"),
  });
  EXPECT_EQ(recording.recorder, "the profiler of TensorFlow and JAX");
  EXPECT_EQ(recording.clock, "from when the profile began");
  const Process& process = recording.processes.front();
  ASSERT_EQ(process.trace.calls.size(), 1u);
  ASSERT_EQ(process.trace.kernels.size(), 1u);
  ASSERT_EQ(process.trace.transfers.size(), 1u);
  EXPECT_EQ(process.trace.calls[0].begin_ns, 1'500);
  EXPECT_EQ(process.trace.calls[0].end_ns, 5'750);
  EXPECT_EQ(process.trace.calls[0].purpose, Purpose::launch);
  EXPECT_EQ(process.trace.kernels[0].correlation, process.trace.calls[0].correlation);
  EXPECT_THAT(process.trace.kernels[0].grid, ElementsAre(8, 1, 1));
  EXPECT_THAT(process.streams, ElementsAre(Stream{3, 2, 13}, Stream{3, 0, 13}));
  EXPECT_EQ(process.trace.transfers[0].bytes, 12u);
  ASSERT_EQ(process.allocations.size(), 1u);
  EXPECT_EQ(process.allocations[0].gpu, 3u);
  EXPECT_EQ(process.allocations[0].bytes, 256u);
  ASSERT_EQ(steps_of(process, "ProfilerStep").size(), 1u);
  EXPECT_EQ(steps_of(process, "ProfilerStep")[0].number, 2u);
}

TEST_F(TensorflowRowsOf, ATraceWithoutAGpuSayWhereItMayBe) {
  EXPECT_THAT(
      refusal({row(701, "/host:CPU"), slice(701, 5, "an_op", "1", "2")}),
      AllOf(HasSubstr("TensorFlow's or JAX's host alone"), HasSubstr("*.xplane.pb beside")));
  EXPECT_THAT(refusal({row(1, "/device:GPU:0")}), HasSubstr("host alone"));
}

TEST_F(TensorflowRowsOf, CopiesAloneTellNoIdleTime) {
  const Recording recording = read({row(1, "/device:GPU:0"),
                                    line(1, 5, "Stream #5(MemcpyH2D)"),
                                    slice(1, 5, "MemcpyH2D", "1", "1"),
                                    slice(1, 5, "MemcpyH2D", "9", "1")});
  EXPECT_TRUE(GpuGaps(recording.processes[0], 0, true).empty());
  EXPECT_TRUE(recording.processes[0].lacks_calls());
  EXPECT_THAT(recording.remarks, ElementsAre(HasSubstr("copies and no kernels")));
}

TEST_F(TensorflowRowsOf, PytorchStayPytorchs) {
  const std::string kernel =
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2})";
  EXPECT_EQ(read({row(5, "/host:CPU"), kernel}).recorder, "PyTorch's profiler");
  EXPECT_FALSE(read({row(5, "/host:CPU"), kernel}).processes[0].may_be_partial);
}

// --- Timelines of TensorFlow 1 ---

const std::vector<std::string> kRows = {
    row(1, "/job:localhost/replica:0/task:0/cpu:0 Compute"),
    row(2, "/job:localhost/replica:0/task:0/device:GPU:0 Compute"),
    row(3, "/device:GPU:0/stream:all Compute"),
    row(4, "/device:GPU:0/stream:12 Compute"),
    row(5, "/device:GPU:0/memcpy Compute"),
    row(6, "/gpu:0/stream:13 Compute"),
    row(7, "/device:GPU:0/stream:12 Tensors"),
};
std::vector<std::string> timeline(std::vector<std::string> events) {
  events.insert(events.begin(), kRows.begin(), kRows.end());
  return events;
}

TEST_F(TensorflowRowsOf, ATimelineCountEachWorkOnce) {
  const Recording recording = read(timeline({
      op(3, "MatMul", "a/MatMul", 100, 5),
      op(4, "MatMul", "a/MatMul", 100, 5),
      op(5, "MEMCPYHtoD", "edge_1", 110, 2),
      op(6, "MEMCPYHtoD", "edge_1", 110, 2),
      op(5, "MatMul", "b/MatMul", 120, 3),
      op(6, "MatMul", "b/MatMul", 120, 3),
      op(7, "tensor", "t", 1, 1),
      op(1, "NoOp", "of the host", 1, 1),
  }));
  EXPECT_EQ(recording.recorder, "TensorFlow 1's timeline");
  EXPECT_EQ(recording.clock, "Unix time");
  const activity::Trace& trace = recording.processes[0].trace;
  ASSERT_EQ(trace.kernels.size(), 1u);
  EXPECT_EQ(trace.name(trace.kernels[0].name), "MatMul");
  EXPECT_EQ(trace.kernels[0].begin_ns, 100'000);
  EXPECT_EQ(trace.kernels[0].end_ns, 105'000);
  EXPECT_EQ(trace.transfers.size(), 2u) << "one of them is told by the row of copies alone";
  EXPECT_THAT(recording.processes[0].streams, ElementsAre(Stream{0, 0, 12}, Stream{0, 0, 13}));
  EXPECT_TRUE(trace.calls.empty());
  EXPECT_TRUE(recording.processes[0].lacks_calls());
  EXPECT_THAT(recording.remarks, IsEmpty()) << "no op has work";
}

TEST_F(TensorflowRowsOf, ATimelineTellWhenTheFirstWorkOfAnOpBegins) {
  const Recording recording = read(timeline({
      op(2, "NoOp", "_SOURCE", 1'000, 1),
      op(2, "MatMul", "a", 1'010, 3),
      op(2, "Add", "b", 1'020, 3),
      op(2, "Add", "never", 1'030, 3),
      op(4, "MatMul", "a", 1'050, 3),
      op(4, "MatMul", "a", 1'060, 3),
      op(4, "Add", "b", 1'090, 3),
      // Once more: each run has its own.
      op(1, "NoOp", "_SOURCE", 2'000, 1),
      op(2, "NoOp", "_SOURCE", 2'001, 1),
      op(2, "MatMul", "a", 2'010, 3),
      op(2, "Add", "b", 2'020, 3),
      op(4, "MatMul", "a", 2'030, 30),
  }));
  EXPECT_THAT(recording.remarks,
              ElementsAre("the first work of an op begins 40.0 µs after the op (p50 of 3 of its 7 "
                          "ops)"));
  const std::vector<Step> steps = steps_of(recording.processes[0], "ProfilerStep");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].begin_ns, 1'000'000);
  EXPECT_EQ(steps[0].end_ns, 1'093'000);
  EXPECT_EQ(steps[1].begin_ns, 2'001'000);
  EXPECT_EQ(steps[1].end_ns, 2'060'000);
}

TEST_F(TensorflowRowsOf, ATimelineWithoutCuptiTellNothingOfAGpu) {
  EXPECT_THAT(refusal({kRows[0], kRows[1], op(2, "MatMul", "a", 1, 1)}),
              AllOf(StartsWith("it is a timeline of TensorFlow's host alone"), HasSubstr("CUPTI")));
}

TEST_F(TensorflowRowsOf, TimesThatCannotBeAreLeftOut) {
  const Recording recording = read(timeline({op(4, "MatMul", "a", 1, 1),
                                             op(4, "MatMul", "a", 0, 1),
                                             op(4, "MatMul", "a", 5, -1),
                                             slice(4, 0, "MatMul", "9223372036854775807", "1")}));
  EXPECT_EQ(recording.processes[0].trace.kernels.size(), 1u);
  ASSERT_EQ(recording.left_out.size(), 1u);
  EXPECT_EQ(recording.left_out[0].what, "events without a time that can be");
  EXPECT_EQ(recording.left_out[0].count, 3u);
}

/// tests/recordings/README.md.
TEST(TimelineOfTensorflow1, HasItsFigures) {
  const Recording recording = read_recording(std::filesystem::path(LAUNCHGAP_SOURCE_FOLDER) /
                                             "tests/recordings/gpu-perceptron.tf1-timeline.json");
  const Process& process = recording.processes.front();
  EXPECT_EQ(process.trace.kernels.size(), 38u);
  EXPECT_EQ(process.trace.kernels.size() + process.trace.transfers.size(), 45u);
  EXPECT_THAT(recording.remarks,
              ElementsAre("the first work of an op begins 187 µs after the op (p50 of 32 of its 80 "
                          "ops)"));
  const GpuGaps gaps(process, 0, true);
  const Idleness idle = gaps.within(gaps.begin_ns(), gaps.end_ns());
  EXPECT_EQ(idle.span_ns, 114'064'000);
  EXPECT_NEAR(
      static_cast<double>(idle.idle()) / static_cast<double>(idle.span_ns), 0.9932, 0.00005);
}

}  // namespace
}  // namespace launchgap::recording
