#include "harness/summary/advice.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/summary/adviser.h"
#include "tests/sentences/said.h"

namespace launchgap {

void PrintTo(const Finding& finding, std::ostream* out) {
  *out << finding.code << " " << name_of(finding.severity) << ": " << finding.sentence;
}

namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

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
  SummaryRow row;
  row.key = {"GPU-1", made.arm, made.process_config, CaseName::parse(made.name)};
  row.metric = made.metric;
  row.status = made.status;
  row.p50 = made.level;
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
  DeviceFacts device;
  device.uuid = "GPU-1";
  device.name = "NVIDIA H200";
  device.backend = "cuda";
  session.devices = {device};
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

/// Rows as they were measured, and the sentence that they must lead to.
struct Expected {
  const char* name;
  std::vector<Made> made;
  Severity severity;
  const char* axis;
  const char* text;
};

void PrintTo(const Expected& expected, std::ostream* out) {
  *out << expected.name;
}

class AdviceTable : public ::testing::TestWithParam<Expected> {};

TEST_P(AdviceTable, TurnsNumbersIntoASentence) {
  const Expected& expected = GetParam();
  const auto lines = advice_on(expected.made);
  EXPECT_THAT(lines, says(expected.severity, expected.axis, expected.text));
  for (const Finding& line : lines) {
    EXPECT_TRUE(line.sentence.ends_with(".")) << line.sentence;
    EXPECT_TRUE(line.sentence[0] < 'a' || line.sentence[0] > 'z') << line.sentence;
    EXPECT_FALSE(line.evidence.empty()) << line.sentence;
    EXPECT_EQ(code_of(line.cases.substr(0, line.code.size())), line.code);
  }
}

const std::vector<Expected>& table() {
  constexpr auto act = Severity::act;
  constexpr auto note = Severity::note;
  constexpr auto open = Severity::open;
  constexpr auto fine = Severity::fine;
  static const std::vector<Expected> rows = {
      {"ApiDearer",
       {{"launch/api/api:driver/mode:idle", "api_ns", 2000},
        {"launch/api/api:chevron/mode:idle", "api_ns", 2600},
        {"launch/api/api:driver/mode:burst", "per_launch_ns", 2000},
        {"launch/api/api:chevron/mode:burst", "per_launch_ns", 2010}},
       act,
       "launch/api",
       "Launch through the driver API where launches count: the time in the call is 1.30 times as "
       "long with <<<>>> as with the driver API."},
      {"ApiCheaper",
       {{"launch/api/api:driver/mode:idle", "api_ns", 2000},
        {"launch/api/api:runtime/mode:idle", "api_ns", 1500}},
       act,
       "launch/api",
       "Launch with cudaLaunchKernelExC where launches count"},
      {"ArgumentsAreFree",
       {{args(0), "api_ns", 2000}, {args(256), "api_ns", 1500}},
       note,
       "launch/args",
       "Arguments make launches no slower"},
      {"AfterIdleFaster",
       {{"launch/after_idle/idle_ms:0", "roundtrip_ns", 8000},
        {"launch/after_idle/idle_ms:1000", "roundtrip_ns", 6000}},
       note,
       "launch/after_idle",
       "Launches are faster after an idle time"},
      {"GraphAnew",
       {{graph("make", 64), "instantiate_ns", 80000}, {graph("update", 64), "update_ns", 160000}},
       act,
       "launch/graph",
       "Make a graph anew rather than update it"},
      {"GridShorter",
       {{"launch/grid/blocks:1", "roundtrip_ns", 8000},
        {"launch/grid/blocks:4224", "roundtrip_ns", 6000}},
       note,
       "launch/grid",
       "A large grid makes the round trip no longer"},
      {"CooperativeCheaper",
       {{"launch/cooperative/launch:plain", "roundtrip_ns", 6000},
        {"launch/cooperative/launch:cooperative", "roundtrip_ns", 4000}},
       note,
       "launch/cooperative",
       "A cooperative launch is no dearer than a plain one"},
      {"DependentSlower",
       {{"launch/dependent/launch:plain", "per_kernel_ns", 3000},
        {"launch/dependent/launch:dependent", "per_kernel_ns", 5000}},
       act,
       "launch/dependent",
       "Leave programmatic dependent launches alone"},
      {"PrioritySlower",
       {{"launch/priority/priority:same", "roundtrip_ns", 10000},
        {"launch/priority/priority:higher", "roundtrip_ns", 50000}},
       note,
       "launch/priority",
       "A higher priority makes it no faster"},
      {"WaitAfterEachFaster",
       {{"launch/cscs/wait:end", "wall_per_launch_ns", 2000},
        {"launch/cscs/wait:each", "wall_per_launch_ns", 1500}},
       note,
       "launch/cscs",
       "Waiting after each launch does no harm"},
      {"SmallKernelsOneByOne",
       {{"launch/small_kernels/method:stream/kib:64", "per_kernel_ns", 1300},
        {"launch/small_kernels/method:graph/kib:64", "per_kernel_ns", 2500}},
       act,
       "launch/small_kernels",
       "Launch small kernels one by one rather than"},
      {"EmptyKernelsInOneStream",
       {{streams(1, "null", "nothing"), "per_launch_ns", 1000},
        {streams(8, "null", "nothing"), "per_launch_ns", 2000}},
       act,
       "launch/streams",
       "Keep kernels that do next to nothing in one stream"},
      {"EmptyKernelsOverStreams",
       {{streams(1, "null", "nothing"), "per_launch_ns", 1000},
        {streams(8, "null", "nothing"), "per_launch_ns", 500}},
       note,
       "launch/streams",
       "Several streams get even empty kernels out faster"},
      {"EmptyKernelsAnywhere",
       {{streams(1, "null", "nothing"), "per_launch_ns", 1000},
        {streams(8, "null", "nothing"), "per_launch_ns", 1000}},
       fine,
       "launch/streams",
       "Changing between streams costs nothing"},
      {"LegacyDefaultStreamFaster",
       {{streams(8, "10us", "nothing"), "per_launch_ns", 2500},
        {streams(8, "10us", "default"), "per_launch_ns", 2000}},
       note,
       "launch/streams",
       "The legacy default stream does no harm here"},
      {"ThreadsBetterShare",
       {{threads(8, "own"), "threads_per_launch_ns", 2000},
        {threads(8, "shared"), "threads_per_launch_ns", 500}},
       act,
       "launch/threads",
       "Let launching threads share a stream"},
      {"ApiSame",
       {{"launch/api/api:driver/mode:idle", "api_ns", 2000},
        {"launch/api/api:runtime/mode:idle", "api_ns", 2000}},
       fine,
       "launch/api",
       "Launching with cudaLaunchKernelExC costs nothing beyond noise here"},
      {"ApiLittleDearer",
       {{"launch/api/api:driver/mode:idle", "api_ns", 2000},
        {"launch/api/api:runtime/mode:idle", "api_ns", 2060}},
       fine,
       "launch/api",
       "costs nothing that matters here"},
      {"ApiNoisy",
       {{"launch/api/api:driver/mode:idle", "api_ns", 2000, 5, 0.5},
        {"launch/api/api:runtime/mode:idle", "api_ns", 2100, 5, 0.5}},
       open,
       "launch/api",
       "These runs are too noisy to tell"},
      {"TwoRuns",
       {{"launch/api/api:driver/mode:idle", "api_ns", 2000, 2},
        {"launch/api/api:chevron/mode:idle", "api_ns", 9000}},
       open,
       "launch/api",
       "Needs at least 3 runs of each to compare: the time in the call, with <<<>>>"},
      {"AZero",
       {{"launch/api/api:driver/mode:idle", "api_ns", 0},
        {"launch/api/api:chevron/mode:idle", "api_ns", 9000}},
       open,
       "launch/api",
       "cannot be compared with that with the driver API: a median is zero."},
      {"Arguments",
       {{args(0), "api_ns", 2000},
        {args(256), "api_ns", 2010},
        {args(4096), "api_ns", 2400},
        {args(32760), "api_ns", 5000}},
       act,
       "launch/args",
       "Keep arguments small where launches count: from 4096 bytes on, of the sizes measured, the "
       "time in the call is 1.20 times that with none, and each KiB costs about 93.8 ns."},
      {"ArgumentsInTheMiddleAlone",
       {{args(0), "api_ns", 2000}, {args(256), "api_ns", 2400}, {args(4096), "api_ns", 2000}},
       fine,
       "launch/args",
       "The size of arguments costs nothing beyond noise here"},
      {"Grid",
       {{"launch/grid/blocks:1", "roundtrip_ns", 8000},
        {"launch/grid/blocks:132", "roundtrip_ns", 8050},
        {"launch/grid/blocks:4224", "roundtrip_ns", 9600},
        {"launch/grid/blocks:4224", "kernel_ns", 3100, 3, 0.01, "traced"}},
       note,
       "launch/grid",
       "From 4224 blocks on the grid of an empty kernel costs time: its round trip is 1.20 times"},
      {"Streams",
       {{streams(1, "10us", "nothing"), "per_launch_ns", 10000},
        {streams(4, "10us", "nothing"), "per_launch_ns", 2600},
        {streams(8, "10us", "nothing"), "per_launch_ns", 2520},
        {streams(32, "10us", "nothing"), "per_launch_ns", 2500}},
       act,
       "launch/streams",
       "Spread independent kernels that leave most of the device free over 4 streams: the time per "
       "launch is 3.8 times shorter than that with one; more streams help no further."},
      {"LegacyDefaultStream",
       {{streams(8, "10us", "nothing"), "per_launch_ns", 2500},
        {streams(8, "10us", "default"), "per_launch_ns", 7500}},
       act,
       "launch/streams",
       "Keep out of the legacy default stream, or make the others non-blocking: the time per "
       "launch is 3.0 times as long with every 16th launch in the legacy default stream as with "
       "none."},
      {"StreamsOfWhichTheMostAreBest",
       {{streams(1, "10us", "nothing"), "per_launch_ns", 10000},
        {streams(4, "10us", "nothing"), "per_launch_ns", 2600}},
       act,
       "launch/streams",
       "is 3.8 times shorter than that with one."},
      {"AShareBelowZero",
       {{chain("eager"), "per_op_ns", 2500}, {chain("eager"), "idle_share", -0.1}},
       fine,
       "launch/chain",
       "is not bound by launches: the device is not seen to idle."},
      {"ThreadsPay",
       {{threads(1, "own"), "threads_per_launch_ns", 2000},
        {threads(8, "own"), "threads_per_launch_ns", 500}},
       act,
       "launch/threads",
       "Launching from several threads pays: from 8 threads, each with a stream of its own, the "
       "time per launch is 4.0 times shorter than that of one."},
      {"ThreadsHinder",
       {{threads(1, "own"), "threads_per_launch_ns", 2000},
        {threads(8, "own"), "threads_per_launch_ns", 4000}},
       act,
       "launch/threads",
       "Launch from one thread: the time per launch of 8 threads is 2.0 times that of one."},
      {"ThreadsThatShare",
       {{threads(8, "own"), "threads_per_launch_ns", 500},
        {threads(8, "shared"), "threads_per_launch_ns", 2000}},
       act,
       "launch/threads",
       "Give each launching thread a stream of its own"},
      {"Graph",
       {{graph("single", 1), "per_node_ns", 2000},
        {graph("replay", 1), "per_node_ns", 4000},
        {graph("single", 4), "per_node_ns", 2000},
        {graph("replay", 4), "per_node_ns", 1500},
        {graph("single", 64), "per_node_ns", 2000},
        {graph("replay", 64), "per_node_ns", 820}},
       act,
       "launch/graph",
       "Use a graph from 4 kernels on (one after another): at 64 kernels the time per kernel is "
       "2.4 times shorter than that of launching them one by one."},
      {"GraphOfTheFewestMeasured",
       {{graph("single", 64), "per_node_ns", 2000}, {graph("replay", 64), "per_node_ns", 820}},
       act,
       "launch/graph",
       "Use a graph from 64 kernels on, the fewest measured (one after another)"},
      {"GraphPayback",
       {{graph("single", 64), "per_node_ns", 2000},
        {graph("replay", 64), "per_node_ns", 1000},
        {graph("make", 64), "capture_ns", 100'000},
        {graph("make", 64), "instantiate_ns", 80'000},
        {graph("make", 64), "upload_ns", 20'000}},
       note,
       "launch/graph",
       "pays for itself after 4 replays: capture, instantiation and upload take 200 µs, and "
       "each replay saves 64.0 µs."},
      {"GraphUpdate",
       {{graph("make", 64), "instantiate_ns", 80'000}, {graph("update", 64), "update_ns", 8'000}},
       act,
       "launch/graph",
       "Update a graph whose parameters change, rather than make it anew: with 64 kernels (one "
       "after another) an update takes 0.10 times as long as instantiating."},
      {"GraphUseless",
       {{graph("single", 1), "per_node_ns", 2000}, {graph("replay", 1), "per_node_ns", 4000}},
       act,
       "launch/graph",
       "Launch kernels one by one"},
      {"Cooperative",
       {{"launch/cooperative/launch:plain", "roundtrip_ns", 6000},
        {"launch/cooperative/launch:cooperative", "roundtrip_ns", 9000}},
       act,
       "launch/cooperative",
       "Launch cooperatively only where blocks must wait for each other: the round trip of a "
       "cooperative launch is 1.50 times that of a plain one."},
      {"Dependent",
       {{"launch/dependent/launch:plain", "per_kernel_ns", 5000},
        {"launch/dependent/launch:dependent", "per_kernel_ns", 3000}},
       act,
       "launch/dependent",
       "Launch kernels that follow one another as programmatic dependents"},
      {"Priority",
       {{"launch/priority/priority:same", "roundtrip_ns", 50'000},
        {"launch/priority/priority:higher", "roundtrip_ns", 10'000}},
       act,
       "launch/priority",
       "Put urgent work into a stream of higher priority"},
      {"WaitBlock",
       {{"launch/wait/wait:spin/by:stream", "roundtrip_ns", 8000},
        {"launch/wait/wait:spin/by:stream", "cpu_ns", 8000},
        {"launch/wait/wait:block/by:stream",
         "roundtrip_ns",
         20'000,
         10,
         0.01,
         "plain",
         "launch+wait=block"},
        {"launch/wait/wait:block/by:stream",
         "cpu_ns",
         4000,
         10,
         0.01,
         "plain",
         "launch+wait=block"}},
       note,
       "launch/wait",
       "A thread that blocks while it waits for the stream needs 0.50 times the CPU time of one "
       "that spins; its round trip is 2.5 times as long (12.0 µs more)."},
      {"WaitSpin",
       {{"launch/wait/wait:spin/by:stream", "roundtrip_ns", 8000},
        {"launch/wait/wait:spin/by:stream", "cpu_ns", 8000},
        {"launch/wait/wait:block/by:stream", "roundtrip_ns", 20'000},
        {"launch/wait/wait:block/by:stream", "cpu_ns", 24'000}},
       act,
       "launch/wait",
       "Spin where waits are this short and a CPU is free: the round trip of a thread that "
       "blocks while it waits for the stream is 2.5 times that of one that spins."},
      {"WaitYieldForNothing",
       {{"launch/wait/wait:spin/by:event", "roundtrip_ns", 8000},
        {"launch/wait/wait:spin/by:event", "cpu_ns", 8000},
        {"launch/wait/wait:yield/by:event", "roundtrip_ns", 8000},
        {"launch/wait/wait:yield/by:event", "cpu_ns", 4000}},
       act,
       "launch/wait",
       "Let the thread that waits for the event yield"},
      {"FirstLaunch",
       {{first("lazy"), "initialise_ns", 50e6},
        {first("lazy"), "context_ns", 100e6},
        {first("lazy"), "module_ns", 10e6},
        {first("lazy"), "first_roundtrip_ns", 1e6},
        {first("lazy"), "second_roundtrip_ns", 1e4}},
       note,
       "launch/first",
       "A fresh process takes 161 ms until its first kernel is done; its first round trip takes "
       "1.00 ms, the second 10.0 µs."},
      {"FirstLaunchWhoseModuleWasNotTimed",
       {{first("lazy"), "initialise_ns", 50e6},
        {first("lazy"), "first_roundtrip_ns", 1e6},
        {first("lazy"), "second_roundtrip_ns", 1e4}},
       note,
       "launch/first",
       "A fresh process's first round trip takes 1.00 ms, the second 10.0 µs."},
      {"UncachedJit",
       {{first("jit_cached"), "module_ns", 10e6},
        {first("jit_cached"), "first_roundtrip_ns", 1e6},
        {first("jit_uncached"), "module_ns", 210e6},
        {first("jit_uncached"), "first_roundtrip_ns", 1e6}},
       act,
       "launch/first",
       "the time until the first kernel is done is 19 times as long with an empty cache as with a "
       "full one (200 ms more)."},
      {"EagerLoadingThatIsSmallBesideTheContext",
       {{first("lazy"), "context_ns", 200e6},
        {first("lazy"), "module_ns", 4e6},
        {first("eager"), "context_ns", 200e6},
        {first("eager"), "module_ns", 8e6}},
       fine,
       "launch/first",
       "Loading eagerly costs nothing"},
      {"AfterIdle",
       {{"launch/after_idle/idle_ms:0", "roundtrip_ns", 8000},
        {"launch/after_idle/idle_ms:1", "roundtrip_ns", 8050},
        {"launch/after_idle/idle_ms:10", "roundtrip_ns", 16'000},
        {"launch/after_idle/idle_ms:1000", "roundtrip_ns", 32'000}},
       note,
       "launch/after_idle",
       "A launch after 10 ms or more of idleness is slower: round trips take 2.0 times longer "
       "after 10 ms, 4.0 times after 1000 ms. Where that counts, keep the device busy: launch an "
       "empty kernel at least every 1 ms."},
      {"Queue",
       {{"launch/queue", "queue_depth", 1022, 1, 0},
        {"launch/queue", "full_launch_ns", 20'800, 1, 0}},
       note,
       "launch/queue",
       "Keep fewer than 1022 launches in flight where a call must not wait: the next one waits for "
       "room, 20.8 µs behind kernels of 20 µs."},
      {"Library",
       {{"launch/library/call:kernel", "api_ns", 2000},
        {"launch/library/call:matmul", "api_ns", 6000}},
       note,
       "launch/library",
       "the time in the call of the library's small matrix product is 3.0 times that of a launch "
       "of "
       "one's own."},
      {"DefaultChoice",
       {{"matmul/choice/shape:16x4096x4096-nt/type:bf16", "default_ns", 39'000},
        {"matmul/choice/shape:16x4096x4096-nt/type:bf16", "best_ns", 30'000}},
       act,
       "matmul/choice",
       "the time of a product by the library's default choice is 1.30 times that of one by the "
       "best "
       "of what cuBLASLt offers"},
      {"DefaultChoiceIsGood",
       {{"matmul/choice/shape:16x4096x4096-nt/type:bf16", "default_ns", 30'000},
        {"matmul/choice/shape:16x4096x4096-nt/type:bf16", "best_ns", 30'000}},
       fine,
       "matmul/choice",
       "The library's own choice costs nothing beyond noise here"},
      {"SelectedAlgorithm",
       {{"convolution/selection/shape:32x64x56x56-64x3x3-p1/direction:forward/type:fp16",
         "selected_ns",
         39'000},
        {"convolution/selection/shape:32x64x56x56-64x3x3-p1/direction:forward/type:fp16",
         "best_ns",
         30'000}},
       act,
       "convolution/selection",
       "the time of a convolution by the algorithm that the library selects is 1.30 times that of "
       "one by the best that it offers"},
      {"SelectedAlgorithmIsGood",
       {{"convolution/selection/shape:32x64x56x56-64x3x3-p1/direction:data/type:fp16",
         "selected_ns",
         30'000},
        {"convolution/selection/shape:32x64x56x56-64x3x3-p1/direction:data/type:fp16",
         "best_ns",
         30'000}},
       fine,
       "convolution/selection",
       "The library's own selection costs nothing beyond noise here"},
      {"ZerosFlatter",
       {{"matmul/data/data:zeros/size:8192/type:fp16", "tflops", 295},
        {"matmul/data/data:normal/size:8192/type:fp16", "tflops", 257}},
       note,
       "matmul/data",
       "Compare speeds of products on equal data: zeros flatter"},
      {"NotKeptUp",
       {{"matmul/sustained/size:4096/type:bf16", "last_tflops", 640},
        {"matmul/sustained/size:4096/type:bf16", "first_tflops", 790}},
       note,
       "matmul/sustained",
       "Reckon with what the device keeps up, and not with its first moments"},
      {"ChainBound",
       {{chain("eager"), "per_op_ns", 2500},
        {chain("eager"), "starved_share", 0.9, 3, 0.01, "traced"},
        {chain("eager"), "idle_share", 0.2}},
       act,
       "launch/chain",
       "A chain of 512 small operations is bound by launches: 90 % of its kernels found nothing "
       "queued."},
      {"ChainBoundWithGaps",
       {{chain("eager"), "per_op_ns", 2500},
        {chain("eager"), "idle_share", 0.1},
        {chain("eager", "10"), "per_op_ns", 12'500},
        {chain("eager", "10"), "idle_share", 0.8}},
       act,
       "launch/chain",
       "bound by launches when the host works 10 µs between two: the device idles 80 % of the "
       "time."},
      {"ChainNotBound",
       {{chain("eager"), "per_op_ns", 2500}, {chain("eager"), "idle_share", 0.1}},
       fine,
       "launch/chain",
       "is not bound by launches: the device idles 10 % of the time."},
      {"ChainHalfWay",
       {{chain("eager"), "per_op_ns", 2500}, {chain("eager"), "idle_share", 0.5, 5, 0.2}},
       open,
       "launch/chain",
       "is bound by launches: the device idles 50 % of the time"},
      {"ChainWhereTraceAndClockDisagree",
       {{chain("eager"), "per_op_ns", 2500},
        {chain("eager"), "starved_share", 0.02, 5, 0, "traced"},
        {chain("eager"), "idle_share", 0.6, 5, 0}},
       open,
       "launch/chain",
       "is bound by launches: 2 % of its kernels found nothing queued, but "
       "the device idles 60 % of the time"},
      {"ChainGraph",
       {{chain("eager"), "per_op_ns", 2500}, {chain("graph"), "per_op_ns", 1000}},
       act,
       "launch/chain",
       "Put a chain of small operations into a graph: the time per operation is 2.5 times "
       "shorter in a graph than one by one."},
      {"ChainAllocation",
       {{chain("eager"), "per_op_ns", 2500},
        {chain("eager_alloc"), "per_op_ns", 90'000},
        {chain("eager_pool"), "per_op_ns", 3000}},
       act,
       "launch/chain",
       "Do not allocate between launches: the time per operation is 36 times as long "
       "allocating directly as without allocations."},
      {"ChainPool",
       {{chain("eager_alloc"), "per_op_ns", 90'000}, {chain("eager_pool"), "per_op_ns", 3000}},
       act,
       "launch/chain",
       "Allocate from a pool"},
      {"WaitAfterEach",
       {{"launch/cscs/wait:end", "wall_per_launch_ns", 2000},
        {"launch/cscs/wait:each", "wall_per_launch_ns", 8000}},
       act,
       "launch/cscs",
       "Do not wait after each launch"},
      {"SmallKernels",
       {{"launch/small_kernels/method:stream/kib:64", "per_kernel_ns", 2500},
        {"launch/small_kernels/method:graph/kib:64", "per_kernel_ns", 1300}},
       act,
       "launch/small_kernels",
       "Run small dependent kernels in a graph: the time per kernel of 64 KiB in a graph is 1.92 "
       "times shorter than that launched one by one."},
  };
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Of, AdviceTable, ::testing::ValuesIn(table()), [](const auto& row) {
  return std::string(row.param.name);
});

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
        << expected.name;
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
        << expected.name;
  }
}

TEST(Advice, HasALineWhereNothingCanBeCompared) {
  for (const Expected& expected : table()) {
    const std::vector<Made> alone = {expected.made.front()};
    const auto lines = advice_on(alone);
    EXPECT_THAT(lines, Contains(Field(&Finding::code, code_of(expected.axis)))) << expected.name;
    EXPECT_THAT(lines, Each(Field(&Finding::severity, Not(Severity::act)))) << expected.name;
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
  for (const Made& other : std::vector<Made>{
           {"launch/cooperative/launch:cooperative", "roundtrip_ns", 9000, 10, 0.01, "traced"},
           {"launch/cooperative/launch:cooperative",
            "roundtrip_ns",
            9000,
            10,
            0.01,
            "plain",
            "launch+trace_level=kernels"},
           {"launch/cooperative/launch:cooperative",
            "roundtrip_ns",
            9000,
            10,
            0.01,
            "plain",
            "launch",
            Status::failed},
           {"launch/cooperative/launch:cooperative", "roundtrip_ns", 9000, 0}}) {
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
  for (const auto& [ratio, text] :
       std::vector<std::pair<double, const char*>>{{0.0004, "under 0.001"},
                                                   {0.054, "0.054"},
                                                   {0.41, "0.41"},
                                                   {2.63, "2.6"},
                                                   {31.4, "31"},
                                                   {126810, "over 1000"}})
    EXPECT_EQ(times_text(ratio), text);
}

TEST(Ratio, RoundedStillSaysOnWhichSideOfALimitItLies) {
  for (const auto& [ratio, text] : std::vector<std::pair<double, const char*>>{{1.0004, "1.0004"},
                                                                               {0.998, "0.998"},
                                                                               {1.0, "1.00"},
                                                                               {1.06, "1.06"},
                                                                               {1.0503, "1.0503"},
                                                                               {1.0498, "1.0498"},
                                                                               {1.05, "1.05"},
                                                                               {0.951, "0.951"},
                                                                               {1.252, "1.252"}})
    EXPECT_EQ(times_text(ratio), text);
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
    EXPECT_EQ(ratio_of(a, b).verdict, verdict) << ::testing::PrintToString(a);
  }
}

}  // namespace
}  // namespace launchgap
