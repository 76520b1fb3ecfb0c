#include "harness/import/import_folder.h"

#include <algorithm>
#include <exception>
#include <fcntl.h>
#include <fstream>
#include <limits>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;

/// In the folder of an import that is not over, and says whether it made the folder.
constexpr const char* kUnfinished = "unfinished-import";
constexpr std::string_view kMade = "made\n", kTaken = "taken\n";

/// Until the process ends. False if another one has it.
bool lock(const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return true;
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
  close(descriptor);
  return false;
}

/// Makes the mark, locked until the process ends. It is written in its place, and not moved there:
/// a process that is killed on the way leaves nothing that is not known to be an import's.
bool mark(const fs::path& file, std::string_view text) {
  const int descriptor =
      open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) return false;
  flock(descriptor, LOCK_EX | LOCK_NB);
  if (write(descriptor, text.data(), text.size()) == std::ssize(text)) return true;
  close(descriptor);
  std::error_code ignored;
  fs::remove(file, ignored);
  return false;
}

/// FNV-1a, piece by piece.
class Digest {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

}  // namespace

void make_import_folder(const fs::path& path) {
  std::error_code failed;
  if (fs::exists(path / kUnfinished, failed)) {
    if (!lock(path / kUnfinished))
      throw UsageError("another import writes to {}: name another with -o", path.string());
    remove_import(path);
  }
  const bool made = !fs::exists(path, failed);
  make_output_folder(path);
  if (!mark(path / kUnfinished, made ? kMade : kTaken)) {
    if (made) fs::remove(path, failed);
    throw UsageError("nothing can be written to {}", path.string());
  }
  for (const char* folder : {"records", "events"}) {
    if (!failed) fs::create_directories(path / folder, failed);
  }
  if (!failed) return;
  remove_import(path);
  throw UsageError("{} cannot be made: {}", path.string(), failed.message());
}

void remove_import(const fs::path& folder) noexcept {
  std::error_code ignored;
  std::string made;
  try {
    made = InputFile(folder / kUnfinished).text(64);
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename() != kUnfinished) fs::remove_all(entry.path(), ignored);
    }
  } catch (const std::exception&) {
    return;
  }
  fs::remove(folder / kUnfinished, ignored);
  if (made == kMade) fs::remove(folder, ignored);
}

void finish_import(const fs::path& folder) noexcept {
  std::error_code ignored;
  fs::remove(folder / kUnfinished, ignored);
}

std::string digest(std::string_view text) {
  Digest digest;
  digest.add(text);
  return digest.text();
}

std::string digest_of_files(std::span<const std::filesystem::path> files) {
  Digest digest;
  std::string piece(1 << 18, '\0');
  for (const std::filesystem::path& file : files) {
    std::error_code ignored;
    digest.add(fmt::format("{};", std::filesystem::file_size(file, ignored)));
    if (!std::filesystem::is_regular_file(file, ignored)) continue;
    std::ifstream in(file, std::ios::binary);
    while (in) {
      in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      digest.add(std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount())));
    }
  }
  return digest.text();
}

DeviceFacts facts_of(const Recording& recording, const Process& process, std::uint64_t number) {
  Gpu gpu;
  gpu.number = number;
  const auto known = std::ranges::find(recording.gpus, number, &Gpu::number);
  if (known != recording.gpus.end()) gpu = *known;
  DeviceFacts facts;
  facts.backend = "cuda";
  facts.index = static_cast<int>(std::min<std::uint64_t>(number, std::numeric_limits<int>::max()));
  facts.name = gpu.name.empty() ? "a GPU (not recorded which)" : printable(gpu.name, 200);
  if (!gpu.compute_capability.empty())
    facts.compute_capability = printable(gpu.compute_capability, 20);
  facts.memory_bytes = gpu.memory_bytes;
  if (!recording.driver_version.empty())
    facts.driver_version = printable(recording.driver_version, 50);
  if (!gpu.uuid.empty()) {
    const std::string uuid = printable(gpu.uuid, 80);
    facts.uuid = uuid.starts_with("GPU-") || uuid.starts_with("MIG-") ? uuid : "GPU-" + uuid;
  } else {
    facts.uuid =
        "recorded-" + digest(fmt::format("{}|{}|{}|{}|{}",
                                         gpu.name,
                                         gpu.compute_capability,
                                         gpu.memory_bytes.value_or(0),
                                         number,
                                         process.rank ? std::to_string(*process.rank) : ""));
  }
  return facts;
}

std::set<std::uint64_t> gpus_of(const Recording& recording, const Process& process) {
  std::set<std::uint64_t> gpus;
  for_each_work(process.trace,
                [&](const auto& record) { gpus.insert(process.streams[record.stream].gpu); });
  for (const Allocation& allocation : process.allocations) gpus.insert(allocation.gpu);
  if (gpus.empty()) {
    for (const activity::Memory& memory : process.trace.memory) gpus.insert(memory.gpu);
  }
  if (gpus.empty()) gpus.insert(recording.gpus.empty() ? 0 : recording.gpus.front().number);
  return gpus;
}

std::map<std::uint64_t, std::size_t> shared_gpus(const Recording& recording) {
  std::map<std::uint64_t, std::size_t> processes;
  for (const Process& process : recording.processes) {
    if (process.trace.kernels.empty() && process.trace.transfers.empty()) continue;
    for (const std::uint64_t gpu : gpus_of(recording, process)) ++processes[gpu];
  }
  std::erase_if(processes, [](const auto& gpu) { return gpu.second < 2; });
  return processes;
}

}  // namespace launchgap::recording
