#include "harness/core/errors.h"

#include <cerrno>
#include <cstring>

namespace launchgap {
namespace {

constexpr ExitCodeInfo kExitCodes[] = {
    {ExitCode::done, "done", "slowness is never an error of `run`"},
    {ExitCode::wrong_usage,
     "wrong usage",
     "an unknown option, device or profile; a filter that is no expression or matches nothing; an "
     "output folder that is not empty; a folder that is no session; a file that `import` cannot "
     "open "
     "or that is empty; a `--filter` that is longer "
     "than 1,000 bytes, refers back (`\\1`) or would take longer than 10 s"},
    {ExitCode::failed,
     "something failed or is invalid",
     "a case failed or was invalid, a device was not usable, could not be listed or is being "
     "measured by another session, the disk was full, `report` or `export` met a record that "
     "cannot be read or is there twice, `report` could not draw, the tool of `investigate` is not "
     "there, failed or wrote no report, `join` found nothing to join, `compare` or `selftest` "
     "could measure nothing, or the answer on standard "
     "output "
     "was lost (a reader that has seen enough, such as `head`, is no loss)"},
    {ExitCode::regression,
     "a confirmed regression",
     "`compare` found a metric slower, or with `--gate-spread` erratic"},
    {ExitCode::stopped_early,
     "stopped early",
     "`run`, `investigate`, `compare` or `selftest` got SIGINT, SIGTERM or SIGHUP; what was "
     "measured is kept. Other "
     "commands end by the signal itself and leave nothing half written"},
    {ExitCode::no_gpu,
     "a GPU was asked for and there is none",
     "`--devices gpu` where the driver cannot be loaded or started, or shows no GPU. A GPU that is "
     "there and cannot be opened is a failure: 3"},
};

}  // namespace

std::span<const ExitCodeInfo> exit_codes() {
  return kExitCodes;
}

LibraryError::LibraryError(std::string library,
                           std::string call,
                           int code,
                           std::string text,
                           bool sticky,
                           const std::string& where)
    : Error(fmt::format("{}: {} failed with {} ({}){}{}",
                        library,
                        call,
                        text.empty() ? "an unknown error" : text,
                        code,
                        where.empty() ? "" : " at ",
                        where)),
      library_(std::move(library)),
      call_(std::move(call)),
      code_(code),
      text_(std::move(text)),
      sticky_(sticky) {}

std::string with_errno(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

WriteError::WriteError(const std::filesystem::path& file)
    : Error(with_errno(fmt::format("{} cannot be written", file.string()))) {}

}  // namespace launchgap
