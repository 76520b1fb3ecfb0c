#include "harness/core/vocabulary.h"

namespace launchgap {
namespace {

constexpr Word kWords[] = {
    {"device",
     "what work is launched on: a GPU, a MIG instance, or `host`, the CPU. Identified by UUID "
     "(`GPU-…`, `MIG-…`, `host-…`), never by its index alone"},
    {"benchmark",
     "a named workload with axes: `launch/null`. Its first part, `launch`, is its *family*"},
    {"case", "one value per axis: `launch/null/api:driver/mode:idle`"},
    {"metric", "a named number with a unit and a direction, one per sample"},
    {"sample",
     "one timed repetition. All are kept but the first of each block, which warm up; none is "
     "clipped"},
    {"key",
     "of a sample: the number by which a profiler's report has it, as the payload of an NVTX "
     "range"},
    {"block",
     "one repetition of a case: a fixed number of samples, written as one record with its start "
     "and end"},
    {"run",
     "one replicate of one device, plain or traced, in one process configuration: one worker "
     "process, or more where one crashes"},
    {"plain run", "nothing traces the process: the headline numbers are its. Its `arm` is `plain`"},
    {"traced run",
     "the activity of the process is recorded, by CUPTI on a GPU, by launchgap itself on the host. "
     "`arm` is `traced`. What plain and traced runs measure is never mixed"},
    {"replicate", "the same plan again, in fresh processes: `r0`, `r1`, …"},
    {"attempt",
     "which process of a run: 0, and one more each time one crashed, hung or lost its device"},
    {"process configuration",
     "a family of benchmarks with one set of process-wide settings: `launch`, `matmul`, "
     "`convolution`, `allocation`; `launch+wait=block`. The column `process_config`. "
     "`launch+trace_level=none`, "
     "`…=launches`, `…=kernels` and `…=all` have the same few cases, and are compared with each "
     "other alone: they show the observer effect"},
    {"outlier device",
     "a GPU that differs from the others of its name by more than chance and 2 % "
     "(`outlier_devices.csv`)"},
    {"quarantine",
     "cases that a session does not try again, since they crashed or hung on that device in that "
     "arm and at that level of tracing"},
    {"recording",
     "what `launchgap record`, or somebody else's recorder, kept of a job, and a session was made "
     "of. "
     "`arm`, "
     "`process_config`, `source` and `trace_state` are `recorded`, and nothing of it is called "
     "measured"},
    {"trace",
     "what tracing kept of a traced run; an *allocation trace* is what a program allocated and "
     "gave back, in its order"},
    {"event",
     "of a run: what befell it, as its records say (`event`); of a GPU: a mark in a stream, by "
     "which the source `events` takes times. A *kept event* is a call, a kernel or a copy of a "
     "traced run, for `export --format chrome-trace`"},
    {"gate",
     "a kernel that holds a stream until the host opens it, so that work is enqueued before any of "
     "it runs"},
    {"canary",
     "empty launches at the start of a traced run, which must all be recorded and joined before "
     "anything is measured"},
    {"observer effect", "what tracing itself adds to a time"},
    {"sticky",
     "of an error: every later call of the process fails too, so the process ends and another "
     "does the rest"},
    {"session",
     "one `launchgap run` or `import`: its plan, its runs, its folder; of `merge` several that are "
     "read as one"},
    {"night",
     "what a session counts as in a history: those that begin within six hours of each other are "
     "one"},
    {"rank",
     "one of the processes that srun or mpirun started together, by its number; its *local rank* "
     "is its place on its node"},
    {"fingerprint",
     "what should be equal for two results to be comparable, with the values. Written when a run "
     "begins, and once more when it ends: libraries are loaded by the cases that need them, so "
     "only then are all their versions known"},
    {"own launch path",
     "`api:own` in a comparison: a GPU driver's launch call (`api:driver`), or the queue of the "
     "host device's worker thread (`api:queue`)"},
    {"unusable", "of a device: it was seen, but nothing can be launched on it"},
};

}  // namespace

std::span<const Word> all_words() {
  return kWords;
}

}  // namespace launchgap
