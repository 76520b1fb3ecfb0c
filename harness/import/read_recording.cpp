// Which form a file has, by its content.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/core/stop.h"
#include "harness/import/compressed_text.h"
#include "harness/import/database.h"
#include "harness/import/readers.h"
#include "harness/import/recording.h"
#include "harness/import/repairs.h"

namespace launchgap::recording {
namespace {

constexpr std::string_view kSqlite = "SQLite format 3";

/// What begins so, and what to do with it.
struct UnsupportedFormat {
  std::string_view begin;
  std::string_view what;
};
constexpr UnsupportedFormat kUnsupportedFormats[] = {
    {"version https://git-lfs",
     "it is a pointer to a large file and not the file: `git lfs pull` brings it"},
    {"/annex/objects/",
     "it is a pointer to a large file and not the file: `git annex get` brings it"},
    {"<?xml", "it is XML, a session of nvvp: save its profile by `nvprof --export-profile`"},
    {"# gmtrace ", "it is a gmtrace, which `launchgap replay` plays as it is"},
    {"NVPROF", "it is a text of nvprof: record with `nvprof --export-profile FILE`"},
    {"==", "it is the text that nvprof prints: record with `nvprof --export-profile FILE`"},
    {"\x7F"
     "ELF",
     "it is a program"},
    {"PK", "it is a zip archive: unpack it first"},
    {"\x28\xB5\x2F\xFD", "it is compressed by zstd: `zstd -d` it first"},
    {"BZh", "it is compressed by bzip2: `bunzip2` it first"},
    {"\xFD"
     "7zXZ",
     "it is compressed by xz: `unxz` it first"},
    {"QDSTRM",
     "it is an unfinished report of Nsight Systems: finish it by QdstrmImporter, then `nsys export "
     "--type sqlite`"},
};

/// Whether a text begins as Python's picklers write it: a protocol since 2; of before, a dict, a
/// list or tuple, or the name of something, on two lines.
bool is_pickle(std::string_view begin) {
  const auto is_name = [](std::string_view line) {
    return !line.empty() && std::ranges::all_of(line, [](unsigned char c) {
      return std::isalnum(c) || c == '_' || c == '.';
    });
  };
  if (begin.size() >= 2 && begin[0] == '\x80' && begin[1] > 1 && begin[1] < 32) return true;
  if (begin.starts_with('(') || begin.starts_with('}') || begin.starts_with("]q")) return true;
  const std::size_t first = begin.find('\n');
  if (!begin.starts_with('c') || first == std::string_view::npos) return false;
  const std::size_t second = begin.find('\n', first + 1);
  return second != std::string_view::npos && is_name(begin.substr(1, first - 1)) &&
         is_name(begin.substr(first + 1, second - first - 1));
}

[[noreturn]] void refuse(const std::string& begin) {
  if (begin.empty()) throw Error("it is empty");
  if (begin.find_first_not_of('\0') == std::string::npos)
    throw Error("it begins with zeros only: copy it again");
  constexpr std::string_view kProfileOfGo = "\x0A\x04\x08", kEvents = "brain.Event:";
  if (begin.starts_with(kProfileOfGo))
    throw Error("it is a profile of pprof, which has no launches");
  if (begin.substr(0, 64).find(kEvents) != std::string::npos) {
    throw Error(
        "it is an event file of TensorBoard, which has no launches: a profile is beside it, "
        "plugins/profile/*/*.xplane.pb");
  }
  throw Error(
      "it has no form that launchgap knows: launchgap reads {}, caches of Kernel Tuner, and tables "
      "of published values (docs/published.md)",
      importable_forms(true));
}

}  // namespace

Recording read_sqlite_report(const std::filesystem::path& file) {
  Recording recording;
  recording.file = file;
  const Database database(file);
  const auto is_recorders = [](const std::string& table) {
    return table == "StringIds" || table.starts_with("CUPTI_ACTIVITY_KIND_");
  };
  const auto view = std::ranges::find_if(database.views(), is_recorders);
  if (view != database.views().end()) {
    throw Error(
        "its {} is a view, which is a query of the file's own, and no table: export the report "
        "once more",
        *view);
  }
  if (database.has("StringIds")) {
    read_nsys(database, recording);
  } else if (std::ranges::any_of(database.tables(), is_recorders)) {
    read_nvprof(database, recording);
  } else {
    throw Error(
        "it is SQLite, and has no tables of Nsight Systems or nvprof: export the report by `nsys "
        "export --type sqlite`");
  }
  return recording;
}

namespace {

/// SQLite reads no compressed file.
Recording read_compressed_report(const std::filesystem::path& file) {
  const TemporaryFolder folder;
  if (folder.path().empty()) throw Error(with_errno("no temporary folder can be made for it"));
  const std::filesystem::path unpacked = folder.path() / "report.sqlite";
  CompressedText text(file);
  text.limit_unpacking(kMostUnpacking);
  OutputFile out(unpacked);
  std::string piece(1 << 18, '\0');
  while (const std::size_t got = text.read(piece.data(), piece.size()))
    out.write(std::string_view(piece).substr(0, got));
  out.commit();
  Recording recording = read_sqlite_report(unpacked);
  recording.file = file;
  recording.form += ", compressed";
  return recording;
}

bool is_sqlite(std::string_view begin) {
  return begin.starts_with(kSqlite);
}

Recording read_sqlite(const std::filesystem::path& file) {
  return CompressedText(file).is_compressed() ? read_compressed_report(file)
                                              : read_sqlite_report(file);
}

bool is_json(std::string_view begin) {
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (begin[first] == '{' || begin[first] == '[');
}

/// A form of recordings: what people call it, how it is made, and how it is told by its beginning.
struct Form {
  std::string_view name, made_by;
  bool (*is)(std::string_view begin);
  Recording (*read)(const std::filesystem::path& file);
};

constexpr Form kForms[] = {
    {"SQLite exports of Nsight Systems",
     "`nsys export --type sqlite REPORT.nsys-rep`",
     is_sqlite,
     read_sqlite},
    {"profiles of nvprof", "`--export-profile`", is_sqlite, read_sqlite},
    {"memory snapshots of PyTorch",
     "`torch.cuda.memory._dump_snapshot()`",
     is_pickle,
     read_torch_snapshot},
    {"raw recordings", "`launchgap record`", is_raw_recording, read_raw_recording},
    {"logs of RMM", "", is_rmm_log, read_rmm_log},
    {"problems of minimalloc", "", is_minimalloc, read_minimalloc},
    {"XPlanes of TensorFlow and JAX", "`*.xplane.pb`", is_xplane, read_xplane},
    {"Chrome traces of PyTorch's profiler", "", is_json, read_chrome_trace},
    {"traces and timelines of TensorFlow and JAX", "`*.trace.json.gz`", is_json, read_chrome_trace},
};

Recording read_known(const std::filesystem::path& file) {
  const std::string begin = beginning_of(file, 512);
  // First, since what zstd compressed begins as a pickle does.
  for (const UnsupportedFormat& stranger : kUnsupportedFormats) {
    if (begin.starts_with(stranger.begin)) throw Error(std::string(stranger.what));
  }
  const auto form = std::ranges::find_if(kForms, [&](const Form& one) { return one.is(begin); });
  if (form == std::end(kForms)) refuse(begin);
  return form->read(file);
}

}  // namespace

std::string importable_forms(bool with_how) {
  std::vector<std::string> names;
  for (const Form& form : kForms) {
    names.emplace_back(form.name);
    if (with_how && !form.made_by.empty()) names.back() += fmt::format(" ({})", form.made_by);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Recording read_recording(const std::filesystem::path& file) {
  try {
    Recording recording = read_known(file);
    drop_copies(recording);
    forget_stray_times(recording);
    for (Process& process : recording.processes) forget_captured_launches(process);
    return recording;
  } catch (const Stopped&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error("{}: there is not enough memory for it", file.string());
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.starts_with(file.string())) throw;
    throw Error("{}: {}", file.string(), message);
  }
}

}  // namespace launchgap::recording
