#include "harness/core/environment_variables.h"

namespace launchgap {
namespace {

using enum VariableUse;

constexpr EnvironmentVariable kVariables[] = {
    {"LAUNCHGAP_LIBCUDA", library, "CUDA driver"},
    {"LAUNCHGAP_CUBLAS", library, "cuBLAS"},
    {"LAUNCHGAP_CUBLASLT", library, "cuBLASLt"},
    {"LAUNCHGAP_CUDNN", library, "cuDNN"},
    {"LAUNCHGAP_NCCL", library, "NCCL"},
    {"LAUNCHGAP_LIBCUPTI", library, "CUPTI"},
    {"LAUNCHGAP_LIBNVML", library, "NVML"},
    {"LAUNCHGAP_OPENBLAS", library, "OpenBLAS"},
    {"LAUNCHGAP_ONEDNN", library, "oneDNN"},
    {"LAUNCHGAP_RUNTIME_PLUGIN",
     library,
     "launchgap's own library that launches through the CUDA runtime; default: beside the binary"},
    {"LAUNCHGAP_KERNELS",
     setting,
     "form of the kernels: `auto` (default: native, else portable), `native`, `portable`"},
    {"LAUNCHGAP_WARM_UP",
     setting,
     "`on` (default), or `off`: processes measure at once. For tests of everything but times; part "
     "of the fingerprint"},
    {"LAUNCHGAP_PYTHON",
     setting,
     "the Python that draws the page; default `.venv/bin/python3` beside `reports/`, else "
     "`python3`"},
    {"LAUNCHGAP_PAGE_TIMEOUT", setting, "seconds that drawing a page may take; default 1800"},
    {"LAUNCHGAP_DEBUG",
     setting,
     "if set, an internal error of the page's Python shows where it arose"},
    {"LAUNCHGAP_LOCK_DIR", setting, "folder of the locks; default `/tmp`"},
    {"TMPDIR", setting, "folder of temporary files; default `/tmp`"},
    {"COLUMNS", setting, "how wide text and tables may be; default: as the terminal is"},
    {"NO_COLOR", setting, "if set, nothing on a terminal is coloured"},
    {"TERM", setting, "`dumb`: nothing on a terminal is coloured"},
    {"CUDA_VISIBLE_DEVICES",
     search,
     "which GPUs are found; the parent sets it for its workers, to one GPU each"},
    {"LD_LIBRARY_PATH", search, "the loader's search for libraries"},
    {"CUDA_HOME", search, "a CUDA Toolkit"},
    {"CUDA_PATH", search, "a CUDA Toolkit, where CUDA_HOME has nothing"},
    {"VIRTUAL_ENV", search, "a Python environment with wheels of libraries"},
    {"CONDA_PREFIX", search, "a conda environment"},
    {"PATH", search, "the first `python3` of it, where neither is set; `nsys` and `ncu`"},
    {"HOME", search, "the user's own Python packages"},
    {"PYTHONPATH", search, "further folders of Python packages"},
    {"PYTHONUSERBASE", search, "in place of `~/.local`"},
    {"PYTHONNOUSERSITE", search, "the user's own Python packages are left out"},
    {"CUDA_LAUNCH_BLOCKING",
     falsifies,
     "each launch waits for its kernel, and every gate would time out"},
    {"CUDA_FORCE_PTX_JIT",
     falsifies,
     "native kernels are not used, whatever kernel_form says; LAUNCHGAP_KERNELS chooses the form"},
    {"CUDA_FORCE_JIT",
     falsifies,
     "native kernels are not used, whatever kernel_form says; LAUNCHGAP_KERNELS chooses the form"},
    {"CUDA_DEVICE_WAITS_ON_EXCEPTION", falsifies, "a kernel that fails waits for a debugger"},
    {"NVIDIA_TF32_OVERRIDE", falsifies, "FP32 and TF32 are no longer different types"},
    {"CUBLAS_EMULATE_SINGLE_PRECISION", falsifies, "FP32 products are put together from BF16 ones"},
    {"CUBLAS_EMULATE_DOUBLE_PRECISION",
     falsifies,
     "FP64 products are put together from integer ones"},
    {"CUBLAS_EMULATION_STRATEGY", falsifies, "decides where products are emulated"},
    {"CUBLAS_LOGINFO_DBG", falsifies, "each call of cuBLAS writes a log"},
    {"CUBLASLT_LOG_LEVEL", falsifies, "each call of cuBLASLt writes a log"},
    {"CUBLASLT_LOG_MASK", falsifies, "each call of cuBLASLt writes a log"},
    {"CUDNN_LOGINFO_DBG", falsifies, "each call of cuDNN writes a log"},
    {"CUDNN_LOGLEVEL_DBG", falsifies, "each call of cuDNN writes a log"},
    {"CUDA_MODULE_LOADING",
     set,
     "`LAZY` or `EAGER`, in the processes of `launch/first` that load so; elsewhere the user's own "
     "choice stays"},
    {"CUDA_CACHE_PATH", set, "a folder of the session's own, for `loading:jit_cached`"},
    {"CUDA_CACHE_DISABLE", set, "for `loading:jit_uncached`; removed for `loading:jit_cached`"},
    {"OPENBLAS_CORETYPE",
     set,
     "the code that OpenBLAS runs, in the processes of `matmul/code` that ask for one; elsewhere "
     "the user's own choice stays"},
    {"ONEDNN_MAX_CPU_ISA",
     set,
     "the newest instructions that oneDNN uses, in the processes of `convolution/code` that ask "
     "for them; elsewhere the user's own choice stays"},
    {"DNNL_MAX_CPU_ISA", outside, "what oneDNN heeds where ONEDNN_MAX_CPU_ISA is not set"},
    {"OMP_NUM_THREADS", set, "in the host's processes, for oneDNN, to the CPUs that they may use"},
    {"LAUNCHGAP_DELAY_NS",
     set,
     "nanoseconds that each call which launches or allocates takes longer, on purpose: `selftest` "
     "sets it to see whether `compare` finds it. Part of the fingerprint; `check` has such "
     "sessions "
     "as invalid"},
    {"LD_DEBUG", set, "in probes of the doctor, and in a program that it watches"},
    {"LD_DEBUG_OUTPUT", set, "beside LD_DEBUG: a file in a folder that is removed afterwards"},
    {"CUDA_MPS_PIPE_DIRECTORY",
     outside,
     "where MPS has its control pipe: `launch/interference` tells by it whether MPS runs"},
    {"NSYS_PROFILING_SESSION_ID", outside, "nsys profiles the process: it is not traced"},
    {"NSYS_TARGET_STD_REDIRECT_ACTION", outside, "the same"},
    {"NV_NSIGHT_", outside, "any that begins so: ncu profiles the process, which is not traced"},
    {"CUDA_INJECTION64_PATH",
     outside,
     "a tool injects itself: the process is not traced, and not recorded; `record` sets it for the "
     "program that it starts"},
    {"NVTX_INJECTION64_PATH", outside, "a tool takes NVTX's ranges: `record` has none then"},
    {"LAUNCHGAP_RECORD",
     set,
     "in a program that `record` starts: the folder of its raw recordings"},
    {"GITHUB_ACTIONS",
     outside,
     "`true`: a job of GitHub runs `check` or `compare`, which then answer with annotations too"},
    {"RANK", outside, "of a program that is recorded: its rank in a distributed job"},
    {"OMPI_COMM_WORLD_RANK", outside, "the same, where RANK is not set"},
    {"PMIX_RANK", outside, "the same, next"},
    {"PMI_RANK", outside, "the same, next"},
    {"MV2_COMM_WORLD_RANK", outside, "the same, next"},
    {"SLURM_PROCID", outside, "the same, last"},
    {"SLURM_…, OMPI_COMM_WORLD_…, PMI_…, MPI_…, JOB_COMPLETION_INDEX",
     outside,
     "which of several processes this is, and which GPUs are its own (`guide-fleet.md`)"},
    {"SLURMD_NODENAME", outside, "what the scheduler calls the machine, in place of its host name"},
    {"container", outside, "the doctor looks for what a container may see"},
    {"LAUNCHGAP_SYSTEM_ROOT",
     test,
     "the doctor looks for /proc, /sys, /dev and the like below this folder, and says that it is "
     "simulated; the folders of libraries are below it too"},
    {"LAUNCHGAP_FAKE_NODE", test, "the node that the fake libraries imitate (`fake-node.md`)"},
    {"LAUNCHGAP_FAKE_SEED", test, "seed of the fake node's noise"},
};

}  // namespace

std::string_view name_of(VariableUse use) {
  constexpr std::string_view kNames[] = {
      "library", "setting", "search", "falsifies", "set", "outside", "test"};
  return kNames[static_cast<std::size_t>(use)];
}

std::span<const EnvironmentVariable> environment_variables() {
  return kVariables;
}

}  // namespace launchgap
