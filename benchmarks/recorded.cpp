// What somebody else recorded of a job, read by `launchgap import`: its launches as cases, beside
// those that launchgap runs itself.
#include "harness/measure/benchmark.h"

namespace launchgap {
namespace {

constexpr Direction kLower = Direction::lower_is_better;

const Registration recorded_launch =
    benchmark("recorded/launch")
        .asks("How long do the launches of a recorded job take, and what is beside them?")
        .axis("stream",
              "what the stream was doing when the call began. `idle`: everything on it that began "
              "before the kernel had ended, so the launch is what is waited for; `busy`: it had "
              "not, so the device is; `unknown`: the kernel's record is lost, impossible or "
              "outside, or "
              "the device's clock disagrees with the host's",
              {"idle", "busy", "unknown"})
        .brings(traced_time(
            "since_last_ns",
            "From the end of the launch before, of the same thread, to the start of this one."))
        .brings(traced_time(
            "overlap_transfers_ns",
            "Of the time from the call to the kernel, what copies and fills on the GPU cover."))
        .brings(traced_time(
            "beside_waits_ns",
            "Of the time from the call to the kernel, what waits of other threads cover."))
        .brings(traced_time("beside_allocations_ns",
                            "Of the time from the call to the kernel, what calls that allocate or "
                            "give back cover, of any thread."))
        .brings(traced_time("beside_calls_ns",
                            "Of the launch call, what calls of other threads cover."))
        .metrics({"api_record_ns",
                  "launch_ns",
                  "queue_ns",
                  "kernel_ns",
                  "overhead_ns",
                  "since_last_ns",
                  "overlap_transfers_ns",
                  "beside_waits_ns",
                  "beside_allocations_ns",
                  "beside_calls_ns"})
        .is_recorded();

const Registration recorded_graph =
    benchmark("recorded/graph")
        .asks("How long do the graph launches of a recorded job take?")
        .axis("stream",
              "as of `recorded/launch`, of the graph's first kernel",
              {"idle", "busy", "unknown"})
        .brings(traced_time("graph_ns",
                            "From the start of a graph's first kernel to the end of its last."))
        .metrics({"api_record_ns", "launch_ns", "queue_ns", "graph_ns", "kernels", "since_last_ns"})
        .is_recorded();

const std::vector<std::string_view> kStepMetrics = {"step_ns",
                                                    "launches",
                                                    "launch_calls_ns",
                                                    "collectives_ns",
                                                    "gpu_idle_share",
                                                    "idle_queued_ns",
                                                    "idle_launch_ns",
                                                    "idle_waiting_ns",
                                                    "idle_allocating_ns",
                                                    "idle_calling_ns",
                                                    "idle_program_ns",
                                                    "idle_unknown_ns"};

const Registration recorded_step =
    benchmark("recorded/step")
        .asks("How do the steps of a recorded job vary, and what does the GPU wait for in them?")
        .metrics(kStepMetrics)
        .is_recorded();

const Registration recorded_job =
    benchmark("recorded/job")
        .asks("Of the whole recording, how long is the GPU idle, and what does it wait for?")
        .metrics(kStepMetrics)
        .is_recorded();

}  // namespace
}  // namespace launchgap
