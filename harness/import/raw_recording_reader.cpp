// What `launchgap record` had written from within a program (harness/injected/raw_recording.h).
#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/import/call_names.h"
#include "harness/import/readers.h"
#include "harness/injected/raw_recording.h"
#include "harness/trace/cupti/decode.h"

namespace launchgap::recording {
namespace {

using activity::Domain;
using injected::RawBlock;
using injected::RawHeader;
using injected::RawState;
using injected::RawTag;

/// The entries of a block; throws Error where they end within one.
class Entries {
 public:
  explicit Entries(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool empty() const { return at_ == end_; }
  std::uint8_t byte() {
    if (empty()) throw Error("an entry is cut off");
    return static_cast<std::uint8_t>(*at_++);
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t part = byte();
      value |= std::uint64_t{part & 0x7Fu} << shift;
      if (part < 0x80) return value;
    }
    throw Error("a number has too many digits");
  }
  std::int64_t signed_number() { return injected::unzigzag(number()); }
  template <class Integer>
  Integer number_of(std::uint64_t most = std::numeric_limits<Integer>::max()) {
    const std::uint64_t value = number();
    if (value > most) throw Error("a number is {}, and at most {} can be", value, most);
    return static_cast<Integer>(value);
  }
  std::string_view bytes(std::size_t count) {
    if (static_cast<std::size_t>(end_ - at_) < count) throw Error("an entry is cut off");
    return {std::exchange(at_, at_ + count), count};
  }

 private:
  const char* at_;
  const char* const end_;
};

template <std::size_t n>
std::string text_of(const char (&characters)[n]) {
  return {characters, strnlen(characters, n)};
}

/// "535.129.03" of what /proc/driver/nvidia/version says.
std::string driver_version(const std::string& text) {
  const auto is_part = [](char c) {
    return c == '.' || std::isdigit(static_cast<unsigned char>(c)) != 0;
  };
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_part(text[end])) ++end;
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    const bool whole =
        (begin == 0 || text[begin - 1] == ' ') && (end == text.size() || text[end] == ' ');
    if (whole && word.find('.') != std::string_view::npos) return std::string(word);
    begin = std::max(end, begin + 1);
  }
  return {};
}

/// "python train.py --st…" of "/usr/bin/python train.py --steps 100 --seed 4 ".
std::string short_command(std::string command) {
  constexpr std::size_t kLongest = 40;
  while (command.ends_with(' ')) command.pop_back();
  const std::size_t folder = command.rfind('/', command.find(' '));
  if (folder != std::string::npos) command.erase(0, folder + 1);
  return printable(command, kLongest);
}

class RawReader {
 public:
  explicit RawReader(Recording& recording) : recording_(recording) {
    process_ = &recording.processes.emplace_back();
  }

  void take_header(const RawHeader& header) {
    if (header.level == injected::kClockAlone) {
      recording_.recorder = "launchgap";
      recording_.remarks.emplace_back("this start was not recorded, so that --cost can compare");
      return;
    }
    if (header.level >= std::size(injected::kRawLevels))
      throw Error("it is of a later launchgap: use that one");
    const char* const level = injected::kRawLevels[header.level];
    process_->pid = header.pid;
    if (header.rank >= 0) process_->rank = header.rank;
    recording_.recorder = "launchgap";
    recording_.form = fmt::format("raw recording, level {}", level);
    recording_.clock = "Unix time";
    recording_.simulated = header.simulated != 0;
    recording_.driver_version = driver_version(text_of(header.driver));
    if (recording_.driver_version.empty() && header.cuda_version > 0)
      recording_.driver_version =
          fmt::format("of CUDA {}.{}", header.cuda_version / 1000, header.cuda_version % 1000 / 10);
    recording_.conditions["level"] = level;
    recording_.conditions["CUPTI"] = cupti::version_text(header.cupti_version);
    const std::string command = short_command(text_of(header.command));
    recording_.label =
        fmt::format("{}{}process {}", command, command.empty() ? "" : ", ", header.pid);
    lose("records that CUPTI lost", header.dropped);
    lose("records that cannot be read", header.unknown);
    lose("ranges of NVTX that could not be kept", header.lost_ranges);
    switch (header.state) {
      case RawState::ended:
        return;
      case RawState::stopped: {
        const std::string reason = printable(text_of(header.reason), 400);
        recording_.remarks.push_back(
            fmt::format("recording stopped before the program: {}",
                        reason.empty() ? "why could not be written" : reason));
      }
        return;
      case RawState::starting:
        recording_.remarks.emplace_back("the program ended while CUPTI was asked to record it");
        return;
      case RawState::recording:
        recording_.remarks.emplace_back(
            "the program was killed, ended by _exit, or took away what it takes to write: what it "
            "did last is missing");
        return;
    }
    throw Error("its state is {}, of a later launchgap: use that one",
                static_cast<std::uint32_t>(header.state));
  }

  /// After all blocks, of which there are so many bytes.
  void finish(const RawHeader& header, std::uint64_t bytes, std::uint64_t left_out) {
    if (left_out > 0)
      recording_.remarks.push_back(
          fmt::format("{} bytes at its end are damaged, and were left out", left_out));
    if (header.bytes > bytes + left_out)
      recording_.remarks.push_back(
          fmt::format("{} bytes of it are missing", header.bytes - bytes - left_out));
    if (failed_launches_ > 0)
      recording_.remarks.push_back(
          fmt::format("{} launch calls returned an error, and count for none", failed_launches_));
  }

  void take_block(std::string_view bytes) {
    Entries entries(bytes);
    last_ns_ = 0;
    last_correlation_ = 0;
    while (!entries.empty()) take_entry(entries);
  }

 private:
  void lose(const char* what, std::uint64_t count) {
    if (count == 0) return;
    recording_.leave_out(what, count);
    recording_.remarks.push_back(fmt::format("{} {} are missing", count, what));
  }

  void take_entry(Entries& entries) {
    const std::uint8_t tag = entries.byte();
    switch (static_cast<RawTag>(tag)) {
      case RawTag::name: {
        const std::string name(entries.bytes(entries.number_of<std::size_t>(kLongestName)));
        names_.push_back(process_->trace.name_index(name.c_str()));
        return;
      }
      case RawTag::thread:
        process_->threads.push_back(std::to_string(entries.number()));
        return;
      case RawTag::stream: {
        Stream stream;
        stream.gpu = entries.number_of<std::uint64_t>(kMostGpu);
        stream.context = entries.number();
        stream.number = entries.number();
        streams_.push_back(process_->stream(stream));
        return;
      }
      case RawTag::kernel:
        take_kernel(entries);
        return;
      case RawTag::gpu:
        take_gpu(entries);
        return;
      case RawTag::call:
        take_call(entries, Domain::driver, false);
        return;
      case RawTag::runtime_call:
        take_call(entries, Domain::runtime, false);
        return;
      case RawTag::failed_call:
        take_call(entries, Domain::driver, true);
        return;
      case RawTag::failed_runtime_call:
        take_call(entries, Domain::runtime, true);
        return;
      case RawTag::kernel_run: {
        activity::KernelRun run;
        take_times(entries, run);
        run.stream = stream(entries);
        activity::KernelRun const& kernel = one_of(kernels_, entries, "kernel");
        run.name = kernel.name;
        std::memcpy(run.grid, kernel.grid, sizeof run.grid);
        std::memcpy(run.block, kernel.block, sizeof run.block);
        process_->trace.kernels.push_back(run);
        return;
      }
      case RawTag::copy:
      case RawTag::copy_from_host:
      case RawTag::copy_to_host:
      case RawTag::fill: {
        activity::Transfer transfer;
        take_times(entries, transfer);
        transfer.stream = stream(entries);
        transfer.bytes = entries.number();
        transfer.fill = static_cast<RawTag>(tag) == RawTag::fill;
        transfer.from_host = static_cast<RawTag>(tag) == RawTag::copy_from_host;
        transfer.to_host = static_cast<RawTag>(tag) == RawTag::copy_to_host;
        process_->trace.transfers.push_back(transfer);
        return;
      }
      case RawTag::overhead: {
        activity::Overhead overhead;
        take_times(entries, overhead);
        overhead.kind = cupti::overhead_kind(
            static_cast<cupti::abi::OverheadKind>(entries.number_of<std::uint32_t>()));
        process_->trace.overheads.push_back(overhead);
        return;
      }
      case RawTag::wait: {
        activity::Wait wait;
        take_times(entries, wait);
        wait.type = entries.number_of<std::uint32_t>();
        process_->trace.waits.push_back(wait);
        return;
      }
      case RawTag::memory: {
        activity::Memory memory;
        memory.at_ns = time(entries);
        memory.address = entries.number();
        memory.bytes = entries.number();
        memory.pool = entries.number();
        memory.correlation = correlation(entries);
        memory.kind = entries.number_of<std::uint32_t>();
        memory.release = entries.number_of<std::uint8_t>(1) != 0;
        memory.gpu = entries.number_of<std::uint32_t>();
        process_->trace.memory.push_back(memory);
        return;
      }
      case RawTag::graph: {
        activity::Graph graph;
        take_times(entries, graph);
        graph.stream = stream(entries);
        graph.graph = entries.number_of<std::uint32_t>();
        process_->trace.graphs.push_back(graph);
        return;
      }
      case RawTag::range: {
        Range range;
        range.begin_ns = time(entries);
        range.end_ns = plus(range.begin_ns, entries.signed_number());
        range.thread = thread(entries);
        range.name = one_of(names_, entries, "name");
        process_->ranges.push_back(range);
        return;
      }
    }
    throw Error("an entry has the kind {}, of a later launchgap: use that one", tag);
  }

  void take_kernel(Entries& entries) {
    activity::KernelRun kernel;
    kernel.name = one_of(names_, entries, "name");
    for (std::int32_t* const extents : {kernel.grid, kernel.block}) {
      for (int axis = 0; axis < 3; ++axis) {
        const std::int64_t extent = entries.signed_number();
        if (!std::in_range<std::int32_t>(extent))
          throw Error("a kernel has an extent of {}", extent);
        extents[axis] = static_cast<std::int32_t>(extent);
      }
    }
    kernels_.push_back(kernel);
  }

  void take_gpu(Entries& entries) {
    Gpu gpu;
    gpu.number = entries.number_of<std::uint64_t>(kMostGpu);
    const std::uint64_t capability = entries.number();
    if (capability > 0)
      gpu.compute_capability = fmt::format("{}.{}", capability / 10, capability % 10);
    if (const std::uint64_t bytes = entries.number(); bytes > 0) gpu.memory_bytes = bytes;
    gpu.uuid = recorded_uuid_text(entries.bytes(kUuidBytes));
    gpu.name = entries.bytes(entries.number_of<std::size_t>(kLongestName));
    recording_.gpus.push_back(std::move(gpu));
  }

  void take_call(Entries& entries, Domain domain, bool failed) {
    activity::Call call;
    take_times(entries, call);
    call.thread = thread(entries);
    const auto id = entries.number_of<std::uint32_t>();
    const auto [known, added] = calls_.try_emplace({domain, id, failed});
    if (added) {
      std::string name(name_of_call(domain, id));
      if (name.empty()) name = fmt::format("call {}", id);
      // What failed did nothing of what it is for, and no rule takes it for that.
      const activity::Purpose purpose = failed ? activity::Purpose::other : purpose_of(name);
      if (failed) name += " (failed)";
      known->second = {process_->trace.name_index(name.c_str()), purpose};
    }
    if (failed && is_launch(purpose_of(name_of_call(domain, id)))) ++failed_launches_;
    call.domain = domain;
    call.id = known->second.first;
    call.purpose = known->second.second;
    process_->trace.calls.push_back(call);
  }

  std::int64_t time(Entries& entries) { return last_ns_ = plus(last_ns_, entries.signed_number()); }
  std::uint32_t correlation(Entries& entries) {
    return last_correlation_ += static_cast<std::uint32_t>(entries.signed_number());
  }
  void take_times(Entries& entries, auto& record) {
    record.begin_ns = time(entries);
    record.end_ns = plus(record.begin_ns, entries.signed_number());
    record.correlation = correlation(entries);
  }
  std::uint32_t stream(Entries& entries) { return one_of(streams_, entries, "stream"); }
  std::uint32_t thread(Entries& entries) {
    const auto index = entries.number_of<std::uint32_t>();
    if (index >= process_->threads.size()) throw Error("a thread has the number {}", index);
    return index;
  }
  template <class Value>
  static const Value& one_of(const std::vector<Value>& values, Entries& entries, const char* what) {
    const std::uint64_t index = entries.number();
    if (index >= values.size())
      throw Error("a {} has the number {} of {}", what, index, values.size());
    return values[index];
  }

  static constexpr std::size_t kLongestName = 4096;

  Recording& recording_;
  Process* process_;
  std::vector<std::uint32_t> names_, streams_;
  std::vector<activity::KernelRun> kernels_;
  std::map<std::tuple<Domain, std::uint32_t, bool>, std::pair<std::uint32_t, activity::Purpose>>
      calls_;
  std::uint64_t failed_launches_ = 0;
  std::int64_t last_ns_ = 0;
  std::uint32_t last_correlation_ = 0;
};

}  // namespace

bool is_raw_recording(std::string_view begin) {
  return begin.starts_with(std::string_view(injected::kRawMagic, sizeof injected::kRawMagic));
}

Recording read_raw_recording(const std::filesystem::path& file) {
  Recording recording;
  recording.file = file;
  std::ifstream in(file, std::ios::binary);
  RawHeader header{};
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) {
    recording.processes.emplace_back();
    recording.remarks.emplace_back("its head is cut off: its process could not write");
    return recording;
  }
  RawReader reader(recording);
  reader.take_header(header);
  std::string bytes;
  std::uint64_t whole = 0;
  for (;;) {
    stop_if_asked();
    RawBlock block{};
    if (!in.read(reinterpret_cast<char*>(&block), sizeof block)) break;
    if (block.magic != RawBlock::kMagic || block.bytes > RawBlock::kMost) break;
    bytes.resize(block.bytes);
    if (!in.read(bytes.data(), block.bytes)) break;
    if (!injected::raw_checksums_are_right &&
        injected::raw_checksum(reinterpret_cast<const unsigned char*>(bytes.data()),
                               bytes.size()) != block.checksum)
      break;
    reader.take_block(bytes);
    whole += sizeof block + block.bytes;
  }
  const std::uint64_t length = std::filesystem::file_size(file) - sizeof header;
  reader.finish(header, whole, length - std::min(whole, length));
  return recording;
}

}  // namespace launchgap::recording
