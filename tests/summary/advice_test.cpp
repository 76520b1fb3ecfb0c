#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <ostream>
#include <sstream>

#include <gmock/gmock.h>

#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "tests/device/a_device.h"
#include "tests/sentences/said.h"
#include "tests/summary/made.h"

namespace launchgap {

void PrintTo(const Finding& finding, std::ostream* out) {
  *out << finding.code << " " << name_of(finding.severity) << ": " << finding.sentence;
}

namespace {

using namespace testing;

/// A case's metric and what its runs came to, around `level`: ten runs within 1 % unless told.
struct Made {
  std::string name;
  std::string metric;
  double level;
  std::size_t runs = 10;
  double spread = 0.01;
  const char* arm = "plain";
  const char* process_config = "launch";
  Status status = Status::ok;
};

std::vector<double> around(double level, std::size_t runs, double spread) {
  std::vector<double> medians;
  for (std::size_t i = 0; i < runs; ++i) {
    const double side = i % 2 == 0 ? 1 : -1;
    const std::size_t step = i / 2 + 1, steps = runs / 2 + 1;
    const double size = static_cast<double>(step) / static_cast<double>(steps);
    medians.push_back(level * (1 + spread * side * size));
  }
  return medians;
}

SummaryRow row_of(const Made& made) {
  SummaryRow row =
      a_row("GPU-1", made.name, made.metric, {made.level}, made.arm, made.process_config);
  row.status = made.status;
  row.run_medians = around(made.level, made.runs, made.spread);
  row.runs = made.runs;
  return row;
}

std::vector<SummaryRow> rows_of(const std::vector<Made>& made) {
  std::vector<SummaryRow> rows;
  for (const Made& one : made) rows.push_back(row_of(one));
  return rows;
}

SessionData one_gpu() {
  SessionData session;
  session.devices = {a_device("GPU-1", "NVIDIA H200")};
  return session;
}

std::vector<Finding> advice_on(const std::vector<Made>& made) {
  return said(advice(one_gpu(), rows_of(made)));
}

/// "launch-graph" of "launch/graph".
std::string code_of(std::string benchmark) {
  std::ranges::replace(benchmark, '/', '-');
  return benchmark;
}

auto says(Severity severity, const std::string& benchmark, const std::string& text) {
  return Contains(AllOf(Field(&Finding::code, code_of(benchmark)),
                        Field(&Finding::severity, severity),
                        Field(&Finding::sentence, HasSubstr(text))));
}

std::string args(int bytes) {
  return "launch/args/bytes:" + std::to_string(bytes) + "/mode:idle";
}
std::string graph(const char* mode, int nodes) {
  return "launch/graph/shape:line/nodes:" + std::to_string(nodes) + "/mode:" + mode;
}
std::string chain(const char* mode, const char* gap = "0") {
  return std::string("launch/chain/mode:") + mode + "/ops:512/gap_us:" + gap;
}
std::string streams(int count, const char* kernel, const char* with) {
  return "launch/streams/streams:" + std::to_string(count) + "/kernel:" + kernel + "/with:" + with;
}
std::string threads(int count, const char* which) {
  return "launch/threads/threads:" + std::to_string(count) + "/streams:" + which;
}
std::string first(const char* loading) {
  return std::string("launch/first/loading:") + loading;
}

std::string beside(const char* what) {
  return fmt::format("launch/interference/beside:{}/mode:idle", what);
}

struct OfCase {
  std::string params;
  double level;
  std::size_t runs = 10;
  double spread = 0.01;
};
/// One metric of several cases of a benchmark.
std::vector<Made> of(const std::string& benchmark,
                     const std::string& metric,
                     const std::vector<OfCase>& cases) {
  std::vector<Made> made;
  for (const OfCase& one : cases)
    made.push_back({benchmark + "/" + one.params, metric, one.level, one.runs, one.spread});
  return made;
}

/// Rows as they were measured, and the sentence that they must lead to.
struct Expected {
  std::vector<Made> made;
  Severity severity;
  std::string text;

  std::string benchmark() const { return CaseName::parse(made.front().name).benchmark; }
};
Expected act(std::vector<Made> made, const char* text) {
  return {std::move(made), Severity::act, text};
}
Expected note(std::vector<Made> made, const char* text) {
  return {std::move(made), Severity::note, text};
}
Expected open(std::vector<Made> made, const char* text) {
  return {std::move(made), Severity::open, text};
}
Expected fine(std::vector<Made> made, const char* text) {
  return {std::move(made), Severity::fine, text};
}

const std::vector<Expected>& table() {
  static const std::string block = "launch/wait/wait:block/by:stream";
  static const std::vector<Expected> rows = {
      act({{"launch/api/api:driver/mode:idle", "api_ns", 2000},
           {"launch/api/api:chevron/mode:idle", "api_ns", 2600},
           {"launch/api/api:driver/mode:burst", "per_launch_ns", 2000},
           {"launch/api/api:chevron/mode:burst", "per_launch_ns", 2010}},
          "Launch through the driver API where launches count: the time in the call is 1.30 times "
          "as long with <<<>>> as with the driver API."),
      act(of("launch/api",
             "api_ns",
             {{"api:driver/mode:idle", 2000}, {"api:runtime/mode:idle", 1500}}),
          "Launch with cudaLaunchKernelExC where launches count"),
      note({{args(0), "api_ns", 2000}, {args(256), "api_ns", 1500}},
           "Arguments make launches no slower"),
      note(of("launch/after_idle", "roundtrip_ns", {{"idle_ms:0", 8000}, {"idle_ms:1000", 6000}}),
           "Launches are faster after an idle time"),
      act({{graph("make", 64), "instantiate_ns", 80000},
           {graph("update", 64), "update_ns", 160000}},
          "Make a graph anew rather than update it"),
      note(of("launch/grid", "roundtrip_ns", {{"blocks:1", 8000}, {"blocks:4224", 6000}}),
           "A large grid makes the round trip no longer"),
      note(of("launch/cooperative",
              "roundtrip_ns",
              {{"launch:plain", 6000}, {"launch:cooperative", 4000}}),
           "A cooperative launch is no dearer than a plain one"),
      act(of("launch/dependent",
             "per_kernel_ns",
             {{"launch:plain", 3000}, {"launch:dependent", 5000}}),
          "Leave programmatic dependent launches alone"),
      note(of("launch/priority",
              "roundtrip_ns",
              {{"priority:same", 10000}, {"priority:higher", 50000}}),
           "A higher priority makes it no faster"),
      note(of("launch/cscs", "wall_per_launch_ns", {{"wait:end", 2000}, {"wait:each", 1500}}),
           "Waiting after each launch does no harm"),
      act(of("launch/small_kernels",
             "per_kernel_ns",
             {{"method:stream/kib:64", 1300}, {"method:graph/kib:64", 2500}}),
          "Launch small kernels one by one rather than"),
      act({{streams(1, "null", "nothing"), "per_launch_ns", 1000},
           {streams(8, "null", "nothing"), "per_launch_ns", 2000}},
          "Keep kernels that do next to nothing in one stream"),
      note({{streams(1, "null", "nothing"), "per_launch_ns", 1000},
            {streams(8, "null", "nothing"), "per_launch_ns", 500}},
           "Several streams get even empty kernels out faster"),
      fine({{streams(1, "null", "nothing"), "per_launch_ns", 1000},
            {streams(8, "null", "nothing"), "per_launch_ns", 1000}},
           "Changing between streams costs nothing"),
      note({{streams(8, "10us", "nothing"), "per_launch_ns", 2500},
            {streams(8, "10us", "default"), "per_launch_ns", 2000}},
           "The legacy default stream does no harm here"),
      act({{threads(8, "own"), "threads_per_launch_ns", 2000},
           {threads(8, "shared"), "threads_per_launch_ns", 500}},
          "Let launching threads share a stream"),
      fine(of("launch/api",
              "api_ns",
              {{"api:driver/mode:idle", 2000}, {"api:runtime/mode:idle", 2000}}),
           "Launching with cudaLaunchKernelExC costs nothing beyond noise here"),
      fine(of("launch/api",
              "api_ns",
              {{"api:driver/mode:idle", 2000}, {"api:runtime/mode:idle", 2060}}),
           "costs nothing that matters here"),
      open(of("launch/api",
              "api_ns",
              {{"api:driver/mode:idle", 2000, 5, 0.5}, {"api:runtime/mode:idle", 2100, 5, 0.5}}),
           "These runs are too noisy to tell"),
      open(of("launch/api",
              "api_ns",
              {{"api:driver/mode:idle", 2000, 2}, {"api:chevron/mode:idle", 9000}}),
           "Needs at least 3 runs of each to compare: the time in the call, with <<<>>>"),
      open(of("launch/api",
              "api_ns",
              {{"api:driver/mode:idle", 0}, {"api:chevron/mode:idle", 9000}}),
           "cannot be compared with that with the driver API: a median is zero."),
      act({{args(0), "api_ns", 2000},
           {args(256), "api_ns", 2010},
           {args(4096), "api_ns", 2400},
           {args(32760), "api_ns", 5000}},
          "Keep arguments small where launches count: from 4096 bytes on, of the sizes measured, "
          "the time in the call is 1.20 times that with none, and each KiB costs about 93.8 ns."),
      fine({{args(0), "api_ns", 2000}, {args(256), "api_ns", 2400}, {args(4096), "api_ns", 2000}},
           "The size of arguments costs nothing beyond noise here"),
      note({{"launch/grid/blocks:1", "roundtrip_ns", 8000},
            {"launch/grid/blocks:132", "roundtrip_ns", 8050},
            {"launch/grid/blocks:4224", "roundtrip_ns", 9600},
            {"launch/grid/blocks:4224", "kernel_ns", 3100, 3, 0.01, "traced"}},
           "From 4224 blocks on the grid of an empty kernel costs time: its round trip is 1.20 "
           "times"),
      act({{streams(1, "10us", "nothing"), "per_launch_ns", 10000},
           {streams(4, "10us", "nothing"), "per_launch_ns", 2600},
           {streams(8, "10us", "nothing"), "per_launch_ns", 2520},
           {streams(32, "10us", "nothing"), "per_launch_ns", 2500}},
          "Spread independent kernels of 10 µs over 4 streams: the time per launch is 3.8 times "
          "shorter than "
          "that with one; more streams help no further."),
      act({{streams(8, "10us", "nothing"), "per_launch_ns", 2500},
           {streams(8, "10us", "default"), "per_launch_ns", 7500}},
          "Keep out of the legacy default stream, or make the others non-blocking: the time per "
          "launch is 3.0 times as long with every 16th launch in the legacy default stream as with "
          "none."),
      act({{streams(1, "10us", "nothing"), "per_launch_ns", 10000},
           {streams(4, "10us", "nothing"), "per_launch_ns", 2600}},
          "is 3.8 times shorter than that with one."),
      fine({{chain("eager"), "per_op_ns", 2500}, {chain("eager"), "idle_share", -0.1}},
           "is not bound by launches: the device is not seen to idle."),
      act({{threads(1, "own"), "threads_per_launch_ns", 2000},
           {threads(8, "own"), "threads_per_launch_ns", 500}},
          "Launching from several threads pays: from 8 threads, each with a stream of its own, the "
          "time per launch is 4.0 times shorter than that of one."),
      act({{threads(1, "own"), "threads_per_launch_ns", 2000},
           {threads(8, "own"), "threads_per_launch_ns", 4000}},
          "Launch from one thread: the time per launch of 8 threads is 2.0 times that of one."),
      act({{threads(8, "own"), "threads_per_launch_ns", 500},
           {threads(8, "shared"), "threads_per_launch_ns", 2000}},
          "Give each launching thread a stream of its own"),
      act({{graph("single", 1), "per_node_ns", 2000},
           {graph("replay", 1), "per_node_ns", 4000},
           {graph("single", 4), "per_node_ns", 2000},
           {graph("replay", 4), "per_node_ns", 1500},
           {graph("single", 64), "per_node_ns", 2000},
           {graph("replay", 64), "per_node_ns", 820}},
          "Use a graph from 4 kernels on (one after another): at 64 kernels the time per kernel is "
          "2.4 times shorter than that of launching them one by one."),
      act({{graph("single", 1), "per_node_ns", 2000}, {graph("replay", 1), "per_node_ns", 1000}},
          "Use a graph from 1 kernel on (one after another): at 1 kernel the time per kernel is"),
      act({{graph("single", 64), "per_node_ns", 2000}, {graph("replay", 64), "per_node_ns", 820}},
          "Use a graph from 64 kernels on, the fewest measured (one after another)"),
      note({{graph("single", 64), "per_node_ns", 2000},
            {graph("replay", 64), "per_node_ns", 1000},
            {graph("make", 64), "capture_ns", 100'000},
            {graph("make", 64), "instantiate_ns", 80'000},
            {graph("make", 64), "upload_ns", 20'000}},
           "pays for itself after 4 replays: capture, instantiation and upload take 200 µs, and "
           "each replay saves 64.0 µs."),
      act({{graph("make", 64), "instantiate_ns", 80'000},
           {graph("update", 64), "update_ns", 8'000}},
          "Update a graph whose parameters change, rather than make it anew: with 64 kernels (one "
          "after another) an update takes 0.10 times as long as instantiating."),
      act({{graph("single", 1), "per_node_ns", 2000}, {graph("replay", 1), "per_node_ns", 4000}},
          "Launch kernels one by one"),
      act(of("launch/cooperative",
             "roundtrip_ns",
             {{"launch:plain", 6000}, {"launch:cooperative", 9000}}),
          "Launch cooperatively only where blocks must wait for each other: the round trip of a "
          "cooperative launch is 1.50 times that of a plain one."),
      act(of("launch/dependent",
             "per_kernel_ns",
             {{"launch:plain", 5000}, {"launch:dependent", 3000}}),
          "Launch kernels that follow one another as programmatic dependents: the time per kernel "
          "of "
          "programmatic dependents is 1.67 times shorter than that of plain launches."),
      act(of("launch/priority",
             "roundtrip_ns",
             {{"priority:same", 50'000}, {"priority:higher", 10'000}}),
          "Put urgent work into a stream of higher priority: beside other work a round trip takes "
          "10.0 µs, and with the same priority it waits for that work, 50.0 µs here."),
      note({{"launch/wait/wait:spin/by:stream", "roundtrip_ns", 8000},
            {"launch/wait/wait:spin/by:stream", "cpu_ns", 8000},
            {block, "roundtrip_ns", 20'000, 10, 0.01, "plain", "launch+wait=block"},
            {block, "cpu_ns", 4000, 10, 0.01, "plain", "launch+wait=block"}},
           "A thread that blocks while it waits for the stream needs 0.50 times the CPU time of "
           "one that spins; its round trip is 2.5 times as long (12.0 µs more)."),
      act({{"launch/wait/wait:spin/by:stream", "roundtrip_ns", 8000},
           {"launch/wait/wait:spin/by:stream", "cpu_ns", 8000},
           {"launch/wait/wait:block/by:stream", "roundtrip_ns", 20'000},
           {"launch/wait/wait:block/by:stream", "cpu_ns", 24'000}},
          "Spin where waits are this short and a CPU is free: the round trip of a thread that "
          "blocks while it waits for the stream is 2.5 times that of one that spins."),
      act({{"launch/wait/wait:spin/by:event", "roundtrip_ns", 8000},
           {"launch/wait/wait:spin/by:event", "cpu_ns", 8000},
           {"launch/wait/wait:yield/by:event", "roundtrip_ns", 8000},
           {"launch/wait/wait:yield/by:event", "cpu_ns", 4000}},
          "Let the thread that waits for the event yield"),
      note({{first("lazy"), "initialise_ns", 50e6},
            {first("lazy"), "context_ns", 100e6},
            {first("lazy"), "module_ns", 10e6},
            {first("lazy"), "first_roundtrip_ns", 1e6},
            {first("lazy"), "second_roundtrip_ns", 1e4}},
           "A fresh process takes 161 ms until its first kernel is done; its first round trip "
           "takes 1.00 ms, the second 10.0 µs."),
      note({{first("lazy"), "initialise_ns", 50e6},
            {first("lazy"), "first_roundtrip_ns", 1e6},
            {first("lazy"), "second_roundtrip_ns", 1e4}},
           "A fresh process's first round trip takes 1.00 ms, the second 10.0 µs."),
      act({{first("jit_cached"), "module_ns", 10e6},
           {first("jit_cached"), "first_roundtrip_ns", 1e6},
           {first("jit_uncached"), "module_ns", 210e6},
           {first("jit_uncached"), "first_roundtrip_ns", 1e6}},
          "the time to load and run the first kernel is 19 times as long with an empty cache as "
          "with a full one (200 ms more)."),
      act({{first("jit_cached"), "context_ns", 400e6, 10, 0.5},
           {first("jit_cached"), "module_ns", 1e6},
           {first("jit_cached"), "first_roundtrip_ns", 1e4},
           {first("jit_uncached"), "context_ns", 400e6, 10, 0.5},
           {first("jit_uncached"), "module_ns", 14e6},
           {first("jit_uncached"), "first_roundtrip_ns", 1e4}},
          "the time to load and run the first kernel is 14 times as long"),
      fine({{first("lazy"), "context_ns", 200e6},
            {first("lazy"), "module_ns", 4e6},
            {first("eager"), "context_ns", 200e6},
            {first("eager"), "module_ns", 8e6}},
           "Loading eagerly costs nothing"),
      note(of("launch/after_idle",
              "roundtrip_ns",
              {{"idle_ms:0", 8000},
               {"idle_ms:1", 8050},
               {"idle_ms:10", 16'000},
               {"idle_ms:1000", 32'000}}),
           "A launch after 10 ms or more of idleness is slower: round trips take 2.0 times as "
           "long after 10 ms, 4.0 times after 1000 ms. Where that counts, keep the device busy: "
           "launch "
           "an empty kernel at least every 1 ms."),
      note({{beside("sleep"), "quiet_roundtrip_ns", 200, 6, 0.1},
            {beside("sleep"), "disturbed_roundtrip_ns", 200'000, 6, 1.3}},
           "Launches are slower after the thread slept (at least 1"),
      note({{beside("sleep"), "quiet_roundtrip_ns", 8000},
            {beside("sleep"), "disturbed_roundtrip_ns", 24000},
            {beside("event"), "quiet_roundtrip_ns", 8000},
            {beside("event"), "disturbed_roundtrip_ns", 8000}},
           "Launches are slower after the thread slept (3.0 times the round trip)."),
      note({{beside("sleep"), "quiet_roundtrip_ns", 8000},
            {beside("sleep"), "disturbed_roundtrip_ns", 24000},
            {beside("stream"), "quiet_roundtrip_ns", 8000},
            {beside("stream"), "disturbed_roundtrip_ns", 16000},
            {beside("event"), "quiet_roundtrip_ns", 8000},
            {beside("event"), "disturbed_roundtrip_ns", 12000},
            {beside("product"), "quiet_roundtrip_ns", 8000},
            {beside("product"), "disturbed_roundtrip_ns", 10000}},
           "Launches are slower after the thread slept (3.0 times the round trip), after a stream "
           "was made (2.0 times the round trip), after an event was made (1.50 times the round "
           "trip), and 1 more."),
      fine({{beside("event"), "quiet_roundtrip_ns", 8000},
            {beside("event"), "disturbed_roundtrip_ns", 8000},
            {beside("stream"), "quiet_roundtrip_ns", 8000},
            {beside("stream"), "disturbed_roundtrip_ns", 8000}},
           "No interference that can be told (2) makes launches slower (p50)."),
      note({{"launch/queue", "queue_depth", 1022, 1, 0},
            {"launch/queue", "full_launch_ns", 20'800, 1, 0}},
           "Keep fewer than 1022 launches in flight where a call must not wait: the next one waits "
           "for room, 20.8 µs behind kernels of 20 µs."),
      note(of("launch/library", "api_ns", {{"call:kernel", 2000}, {"call:matmul", 6000}}),
           "the time in the call of the library's small matrix product is 3.0 times that of a "
           "launch of one's own."),
      act({{"matmul/choice/shape:16x4096x4096-nt/type:bf16", "default_ns", 39'000},
           {"matmul/choice/shape:16x4096x4096-nt/type:bf16", "best_ns", 30'000}},
          "the time of a product by the library's default choice is 1.30 times that of one by the "
          "best of what cuBLASLt offers"),
      fine({{"matmul/choice/shape:16x4096x4096-nt/type:bf16", "default_ns", 30'000},
            {"matmul/choice/shape:16x4096x4096-nt/type:bf16", "best_ns", 30'000}},
           "The library's own choice costs nothing beyond noise here"),
      act({{"convolution/selection/shape:32x64x56x56-64x3x3-p1/direction:forward/type:fp16",
            "selected_ns",
            39'000},
           {"convolution/selection/shape:32x64x56x56-64x3x3-p1/direction:forward/type:fp16",
            "best_ns",
            30'000}},
          "the time of a convolution by the algorithm that the library selects is 1.30 times that "
          "of one by the best that it offers"),
      fine({{"convolution/selection/shape:32x64x56x56-64x3x3-p1/direction:data/type:fp16",
             "selected_ns",
             30'000},
            {"convolution/selection/shape:32x64x56x56-64x3x3-p1/direction:data/type:fp16",
             "best_ns",
             30'000}},
           "The library's own selection costs nothing beyond noise here"),
      note(of("matmul/data",
              "tflops",
              {{"data:zeros/size:8192/type:fp16", 295}, {"data:normal/size:8192/type:fp16", 257}}),
           "Compare speeds of products on equal data: zeros flatter"),
      note({{"matmul/sustained/size:4096/type:bf16", "last_tflops", 640},
            {"matmul/sustained/size:4096/type:bf16", "first_tflops", 790}},
           "Reckon with what the device keeps up, and not with its first moments"),
      act({{chain("eager"), "per_op_ns", 2500},
           {chain("eager"), "starved_share", 0.9, 3, 0.01, "traced"},
           {chain("eager"), "idle_share", 0.2}},
          "A chain of 512 small operations is bound by launches: 90 % of its kernels found nothing "
          "queued."),
      act({{chain("eager"), "per_op_ns", 2500},
           {chain("eager"), "idle_share", 0.1},
           {chain("eager", "10"), "per_op_ns", 12'500},
           {chain("eager", "10"), "idle_share", 0.8}},
          "bound by launches when the host works 10 µs between two: the device idles 80 % of the "
          "time."),
      fine({{chain("eager"), "per_op_ns", 2500}, {chain("eager"), "idle_share", 0.1}},
           "is not bound by launches: the device idles 10 % of the time."),
      open({{chain("eager"), "per_op_ns", 2500}, {chain("eager"), "idle_share", 0.5, 5, 0.2}},
           "is bound by launches: in 3 of 5 runs the device idles most of the time."),
      open({{chain("eager"), "per_op_ns", 2500},
            {chain("eager"), "starved_share", 0.5, 5, 0.2, "traced"}},
           "is bound by launches: in 3 of 5 runs most of its kernels found nothing queued."),
      open({{chain("eager"), "per_op_ns", 2500},
            {chain("eager"), "starved_share", 0.02, 5, 0, "traced"},
            {chain("eager"), "idle_share", 0.6, 5, 0}},
           "is bound by launches: 2 % of its kernels found nothing queued, but the device idles 60 "
           "% of the time"),
      act({{chain("eager"), "per_op_ns", 2500}, {chain("graph"), "per_op_ns", 1000}},
          "Put a chain of small operations into a graph: the time per operation is 2.5 times "
          "shorter in a graph than one by one."),
      act({{chain("eager"), "per_op_ns", 2500},
           {chain("eager_alloc"), "per_op_ns", 90'000},
           {chain("eager_pool"), "per_op_ns", 3000}},
          "Do not allocate between launches: the time per operation is 36 times as long allocating "
          "directly as without allocations."),
      act({{chain("eager_alloc"), "per_op_ns", 90'000}, {chain("eager_pool"), "per_op_ns", 3000}},
          "Allocate from a pool"),
      act(of("launch/cscs", "wall_per_launch_ns", {{"wait:end", 2000}, {"wait:each", 8000}}),
          "Do not wait after each launch"),
      act(of("launch/small_kernels",
             "per_kernel_ns",
             {{"method:stream/kib:64", 2500}, {"method:graph/kib:64", 1300}}),
          "Run small dependent kernels in a graph: the time per kernel of 64 KiB in a graph is "
          "1.92 times shorter than that launched one by one."),
  };
  return rows;
}

TEST(Advice, TurnsNumbersIntoASentence) {
  for (const Expected& expected : table()) {
    SCOPED_TRACE(expected.text);
    const auto lines = advice_on(expected.made);
    EXPECT_THAT(lines, says(expected.severity, expected.benchmark(), expected.text));
    for (const Finding& line : lines) {
      EXPECT_TRUE(line.sentence.ends_with(".")) << line.sentence;
      EXPECT_TRUE(line.sentence[0] < 'a' || line.sentence[0] > 'z') << line.sentence;
      EXPECT_FALSE(line.evidence.empty()) << line.sentence;
      EXPECT_EQ(code_of(line.cases.substr(0, line.code.size())), line.code);
    }
  }
}

TEST(Advice, ShowsMediansRatioIntervalAndRunsAsEvidence) {
  const auto lines =
      advice_on({{"launch/cooperative/launch:plain", "roundtrip_ns", 6000},
                 {"launch/cooperative/launch:cooperative", "roundtrip_ns", 9000, 5}});
  ASSERT_THAT(lines, SizeIs(1));
  ASSERT_THAT(lines[0].evidence, SizeIs(1));
  EXPECT_EQ(text_of(lines[0].evidence[0]),
            "roundtrip_ns, 9.02 µs (launch:cooperative) against 6.00 µs (launch:plain), 5 and 10 "
            "runs: 1.50 times (95 % 1.49 to 1.52)");
  EXPECT_NEAR(*lines[0].share, 1 - 1 / 1.5, 0.01) << "of the time of a cooperative launch";
  EXPECT_EQ(lines[0].cases,
            "launch/cooperative/launch:cooperative launch/cooperative/launch:plain");
}

/// With fewer than three runs on either side, no row of the table above leads to a claim.
TEST(Advice, ClaimsNothingFromTwoRuns) {
  for (const Expected& expected : table()) {
    std::vector<Made> made = expected.made;
    for (Made& one : made) one.runs = std::min<std::size_t>(one.runs, 2);
    EXPECT_THAT(advice_on(made),
                Each(Field(&Finding::severity, AnyOf(Severity::note, Severity::open))))
        << expected.text;
  }
}

/// Nor where all cases of an axis are alike.
TEST(Advice, ClaimsNothingWithoutADifference) {
  for (const Expected& expected : table()) {
    std::vector<Made> made = expected.made;
    for (Made& one : made) {
      one.level = one.metric.ends_with("_share") ? 0.1 : 2000;
      one.runs = std::max<std::size_t>(one.runs, 3);
      one.spread = 0.01;
    }
    EXPECT_THAT(advice_on(made), Each(Field(&Finding::severity, Not(Severity::act))))
        << expected.text;
  }
}

TEST(Advice, HasALineWhereNothingCanBeCompared) {
  for (const Expected& expected : table()) {
    const std::vector<Made> alone = {expected.made.front()};
    const auto lines = advice_on(alone);
    EXPECT_THAT(lines, Contains(Field(&Finding::code, code_of(expected.benchmark()))))
        << expected.text;
    EXPECT_THAT(lines, Each(Field(&Finding::severity, Not(Severity::act)))) << expected.text;
  }
}

/// Start-up with the time for its module, and without.
TEST(Advice, ComparesNoUnlikeSums) {
  EXPECT_THAT(advice_on({{first("lazy"), "initialise_ns", 50e6},
                         {first("lazy"), "first_roundtrip_ns", 1e6},
                         {first("jit_cached"), "initialise_ns", 50e6},
                         {first("jit_cached"), "module_ns", 100e6},
                         {first("jit_cached"), "first_roundtrip_ns", 1e6}}),
              Each(Field(&Finding::sentence, HasSubstr("Nothing to compare"))));
}

TEST(Advice, IgnoresWhatIsNotMeasuredPlainAndOk) {
  const Made plain = {"launch/cooperative/launch:plain", "roundtrip_ns", 6000};
  Made traced = {"launch/cooperative/launch:cooperative", "roundtrip_ns", 9000};
  Made while_traced = traced, failed = traced, never_run = traced;
  traced.arm = "traced";
  while_traced.process_config = "launch+trace_level=kernels";
  failed.status = Status::failed;
  never_run.runs = 0;
  for (const Made& other : {traced, while_traced, failed, never_run}) {
    EXPECT_THAT(advice_on({plain, other}),
                Each(Field(&Finding::sentence, HasSubstr("Nothing to compare"))));
  }
}

TEST(Advice, SaysNothingOfWhatWasNotMeasured) {
  EXPECT_THAT(advice_on({}), IsEmpty());
  EXPECT_THAT(advice_on({{"launch/null/api:driver/mode:idle", "api_ns", 2000}}), IsEmpty());
}

TEST(Advice, OnSteadinessComparesIntervals) {
  const auto lines_of = [](stats::Estimate eager, stats::Estimate graph) {
    auto rows = rows_of({{chain("eager"), "per_op_ns", 2500}, {chain("graph"), "per_op_ns", 1000}});
    rows[0].between_run_cv = eager;
    rows[1].between_run_cv = graph;
    return advice(one_gpu(), rows);
  };
  EXPECT_THAT(lines_of({0.02, {0.014, 0.03}}, {0.004, {0.003, 0.007}}),
              says(Severity::note,
                   "launch/chain",
                   "A graph's replay is steadier between runs: its time per operation varies by "
                   "0.4 % (95 % 0.3 to 0.7), that of launches one by one by 2 % (95 % 1.4 to 3)."));
  EXPECT_THAT(lines_of({0.004, {0.003, 0.007}}, {0.02, {0.014, 0.03}}),
              says(Severity::note, "launch/chain", "A graph's replay is less steady between runs"));
  EXPECT_THAT(lines_of({0.02, {0.005, 0.03}}, {0.004, {0.003, 0.007}}),
              says(Severity::open,
                   "launch/chain",
                   "These runs do not tell whether a graph's replay is steadier between runs"));
}

// What claims are made of

TEST(Ratio, IsOfGeometricMeansWithWelchsInterval) {
  // numpy and scipy: exp of the difference of mean logarithms, and of its Welch interval.
  const std::vector<double> a = {110, 121, 133.1}, b = {100, 100, 100};
  const Ratio ratio = ratio_of(a, b);
  EXPECT_NEAR(*ratio.value, 1.21, 1e-12);
  EXPECT_NEAR(
      ratio.interval->low, 1.21 * std::exp(-4.302652729696 * std::log(1.1) / std::sqrt(3)), 1e-9);
  EXPECT_EQ(ratio.verdict, RatioVerdict::unclear) << "the interval includes 1";
}

TEST(Ratio, IsRoundedToWhatASentenceCanUse) {
  EXPECT_EQ(times_text(0.0004), "under 0.001");
  EXPECT_EQ(times_text(126810), "over 1000");
  // Also so that it still says on which side of a limit it lies.
  std::istringstream texts(
      "0.054 0.41 2.6 31 1.0004 0.998 1.00 1.06 1.0503 1.0498 1.05 0.951 1.252");
  for (std::string text; texts >> text;) EXPECT_EQ(times_text(std::stod(text)), text);
  EXPECT_EQ(times_text(2.63), "2.6");
  EXPECT_EQ(times_text(31.4), "31");
}

TEST(Ratio, OfATimeThatIsMuchShorterSaysHowMuch) {
  EXPECT_EQ(multiple(1.3), "1.30 times that");
  EXPECT_EQ(multiple(0.9), "0.90 times that");
  EXPECT_EQ(multiple(0.18), "5.6 times shorter than that");
}

// "Times is the first time divided by the second": of the times that stand there.
TEST(Evidence, IsTheQuotientOfItsTimes) {
  SummaryRow first = row_of({"launch/null/mode:idle", "api_ns", 100});
  SummaryRow second = row_of({"launch/null/mode:burst", "api_ns", 50});
  first.run_medians = {1000, 4000, 16000};  // their geometric mean is 4000
  second.run_medians = {1000, 2000, 4000};  // 2000
  first.p50 = 9570;
  second.p50 = 3240;
  EXPECT_THAT(
      text_of(evidence_of(*compare(&first, &second))),
      HasSubstr(
          "api_ns, 4.00 µs (mode:idle) against 2.00 µs (mode:burst), 3 runs of each: 2.0 times"));
}

// Rows of many devices are looked at once, not once for each device: the CPU time of eight times as
// many is eight times as much, and would be 64 times.
TEST(Advice, TakesTimeAsTheNumberOfDevices) {
  const auto cpu_s = [](int devices) {
    SessionData session;
    std::vector<SummaryRow> rows;
    for (int i = 0; i < devices; ++i) {
      DeviceFacts& device = session.devices.emplace_back();
      device.uuid = "GPU-0000000000000000-" + std::to_string(100'000 + i);
      for (int k = 0; k < 20; ++k) {
        rows.push_back(row_of({"launch/null/mode:idle", "api_ns", 100.0 + k}));
        rows.back().key.device = device.uuid;
      }
    }
    double least = std::numeric_limits<double>::infinity();
    for (int tries = 0; tries < 3; ++tries) {
      const std::clock_t begin = std::clock();
      static_cast<void>(advice(session, rows));
      for (const SummaryRow& row : rows) static_cast<void>(session.device(row.key.device));
      least = std::min(least, static_cast<double>(std::clock() - begin));
    }
    return least;
  };
  EXPECT_LT(cpu_s(1600), 32 * cpu_s(200));
}

struct VerdictCase {
  std::vector<double> a, b;
  RatioVerdict verdict;
};

TEST(Ratio, ClaimsOnlyWhatIsCertainAndLargeEnough) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& [a, b, verdict] :
       std::vector<VerdictCase>{{{120, 120, 121}, {100, 101, 100}, RatioVerdict::more},
                                {{100, 101, 100}, {120, 120, 121}, RatioVerdict::less},
                                {{103, 103, 103}, {100, 100, 100}, RatioVerdict::same},
                                {{100, 101, 102}, {100, 101, 102}, RatioVerdict::same},
                                {{50, 100, 200}, {60, 100, 180}, RatioVerdict::unclear},
                                {{200, 200}, {100, 100, 100}, RatioVerdict::few_runs},
                                {{200}, {100}, RatioVerdict::few_runs},
                                {{}, {}, RatioVerdict::few_runs},
                                {{0, 0, 0}, {100, 100, 100}, RatioVerdict::no_ratio},
                                {{-1, 2, 3}, {100, 100, 100}, RatioVerdict::no_ratio},
                                {{inf, 2, 3}, {100, 100, 100}, RatioVerdict::no_ratio}}) {
    EXPECT_EQ(ratio_of(a, b).verdict, verdict) << PrintToString(a);
  }
}

}  // namespace
}  // namespace launchgap
