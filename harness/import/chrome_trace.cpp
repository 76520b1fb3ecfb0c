#include <algorithm>
#include <array>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/import/chrome_events.h"
#include "harness/import/compressed_text.h"
#include "harness/import/decimal.h"
#include "harness/import/json_text.h"
#include "harness/import/readers.h"

namespace launchgap::recording {
namespace {

namespace json = rapidjson;

struct EventKey {
  std::string_view key;
  EventField field;
};
constexpr auto kEventKeys = std::to_array<EventKey>({{"ph", EventField::phase},
                                                     {"cat", EventField::category},
                                                     {"name", EventField::name},
                                                     {"pid", EventField::pid},
                                                     {"tid", EventField::tid},
                                                     {"ts", EventField::time},
                                                     {"dur", EventField::duration}});
constexpr auto kArgumentKeys =
    std::to_array<EventKey>({{"correlation", EventField::correlation},
                             {"device", EventField::device},
                             {"correlation_id", EventField::correlation},
                             {"context", EventField::context},
                             {"context_id", EventField::context},
                             {"stream", EventField::stream},
                             {"bytes", EventField::bytes},
                             {"Bytes", EventField::bytes},
                             {"allocation_bytes", EventField::bytes},
                             {"Addr", EventField::address},
                             {"addr", EventField::address},
                             {"Device Type", EventField::device_type},
                             {"cuda_sync_kind", EventField::sync_kind},
                             {"wait_on_stream", EventField::event_stream},
                             {"wait_on_cuda_event_record_corr_id", EventField::event_record},
                             {"Device Id", EventField::device},
                             {"group_id", EventField::group},
                             {"step_num", EventField::step},
                             {"allocator_name", EventField::allocator},
                             {"kernel_details", EventField::kernel_details},
                             {"memcpy_details", EventField::copy_details},
                             {"memset_details", EventField::fill_details},
                             {"Memset_details", EventField::fill_details},
                             {"name", EventField::own_name}});

/// What RapidJSON tells of: keeps track of where it is, and collects one event at a time. Numbers
/// come as their text, and what is no text is passed over.
class Handler : public json::BaseReaderHandler<json::UTF8<>, Handler> {
 public:
  explicit Handler(Recording& recording) : recording_(recording), events_(recording) {}

  bool String(const char* text, json::SizeType size, bool) {
    take({text, size});
    return true;
  }
  bool Key(const char* text, json::SizeType size, bool) {
    key_.assign(text, size);
    return true;
  }

  bool StartObject() {
    Where next = Where::elsewhere;
    switch (where()) {
      case Where::outside:
        next = Where::file;
        break;
      case Where::events:
        next = Where::event;
        event_.clear();
        break;
      case Where::gpus:
        next = Where::gpu;
        recording_.gpus.emplace_back();
        break;
      case Where::event:
        if (key_ == "args") next = Where::arguments;
        break;
      case Where::file:
        if (key_ == "distributedInfo") next = Where::distributed;
        break;
      default:
        break;
    }
    return enter(next);
  }
  bool EndObject(json::SizeType) {
    if (where() == Where::event) events_.take(event_);
    return leave();
  }
  bool StartArray() {
    Where next = Where::elsewhere;
    if (where() == Where::outside) {
      next = Where::events;
      is_list_ = true;
    } else if (where() == Where::file) {
      if (key_ == "traceEvents") next = Where::events;
      if (key_ == "deviceProperties") next = Where::gpus;
    } else if (where() == Where::arguments && (key_ == "grid" || key_ == "block")) {
      next = Where::extent;
      extent_ = 0;
    }
    saw_events_ = saw_events_ || next == Where::events;
    return enter(next);
  }
  bool EndArray(json::SizeType) { return leave(); }

  bool saw_events() const { return saw_events_; }
  bool is_list() const { return is_list_; }
  bool of_amd() const { return events_.of_amd(); }
  void finish() { events_.finish(); }
  const std::optional<std::int64_t>& base_ns() const { return base_ns_; }

 private:
  enum class Where {
    outside,
    file,
    events,
    event,
    arguments,
    extent,  // a grid or block
    gpus,
    gpu,
    distributed,
    elsewhere,
  };

  Where where() const { return stack_.empty() ? Where::outside : stack_.back(); }
  bool enter(Where next) {
    constexpr std::size_t kDeepest = 500;
    if (stack_.size() >= kDeepest) throw Error("it is nested more than {} deep", kDeepest);
    stack_.push_back(next);
    return true;
  }
  bool leave() {
    stack_.pop_back();
    return true;
  }

  void take(std::string_view text) {
    switch (where()) {
      case Where::event:
        take_field(kEventKeys, text);
        break;
      case Where::arguments:
        take_field(kArgumentKeys, text);
        break;
      case Where::extent:
        if (extent_ < 3)
          (key_ == "grid" ? event_.grid : event_.block)[extent_++] =
              static_cast<std::int32_t>(integer_of(text).value_or(1));
        break;
      case Where::file:
        if (key_ == "baseTimeNanoseconds") base_ns_ = integer_of(text);
        if (key_ == "cuda_driver_version") recording_.driver_version = text;
        break;
      case Where::gpu:
        take_of_gpu(recording_.gpus.back(), text);
        break;
      case Where::distributed:
        if (key_ == "rank") recording_.processes.front().rank = integer_of(text);
        if (key_ == "world_size") recording_.processes.front().ranks = integer_of(text);
        break;
      default:
        break;
    }
  }

  void take_field(std::span<const EventKey> keys, std::string_view text) {
    const auto known = std::ranges::find(keys, std::string_view(key_), &EventKey::key);
    if (known != keys.end()) event_[known->field] = text;
  }

  void take_of_gpu(Gpu& gpu, std::string_view text) const {
    if (key_ == "id") gpu.number = natural_of(text).value_or(0);
    if (key_ == "name") gpu.name = text;
    if (key_ == "totalGlobalMem") gpu.memory_bytes = natural_of(text);
    if (key_ == "computeMajor") gpu.compute_capability.insert(0, text);
    if (key_ == "computeMinor") gpu.compute_capability += "." + std::string(text);
  }

  Recording& recording_;
  ChromeEvents events_;
  std::vector<Where> stack_;
  std::string key_;  // the last that was read
  ChromeEvent event_;
  std::size_t extent_ = 0;
  std::optional<std::int64_t> base_ns_;
  bool saw_events_ = false, is_list_ = false;
};

/// 12040 is CUDA 12.4; recorders write the newest CUDA that the driver serves.
std::string cuda_version_text(const std::string& number) {
  const auto version = natural_of(number);
  if (!version || *version < 1000) return {};
  return fmt::format("for CUDA {}.{}", *version / 1000, *version % 1000 / 10);
}

}  // namespace

Recording read_chrome_trace(const std::filesystem::path& file) {
  Recording recording;
  recording.file = file;
  recording.recorder = "PyTorch's profiler";
  CompressedText text(file);
  TextStream stream(text);
  Handler handler(recording);
  LimitedAllocator allocator;
  json::GenericReader<json::UTF8<>, json::UTF8<>, LimitedAllocator> reader(&allocator);
  constexpr unsigned kFlags =
      json::kParseIterativeFlag | json::kParseNumbersAsStringsFlag | json::kParseNanAndInfFlag;
  const json::ParseResult result = reader.Parse<kFlags>(stream, handler);
  if (result.IsError()) {
    throw Error("it is no whole JSON: {} (at byte {})",
                json::GetParseError_En(result.Code()),
                result.Offset());
  }
  if (!handler.saw_events()) throw Error("it is JSON, and has no list \"traceEvents\"");
  if (handler.of_amd()) {
    throw Error(
        "it is a trace of an AMD GPU (its calls begin with hip): launchgap reads those of "
        "NVIDIA's");
  }
  recording.form = "Chrome trace";
  recording.clock = "Unix time";
  handler.finish();
  if (handler.is_list()) recording.form += ", a bare list";
  if (text.is_compressed()) recording.form += ", compressed";
  if (handler.base_ns()) move_times(recording.processes.front(), *handler.base_ns());
  recording.driver_version = cuda_version_text(recording.driver_version);
  return recording;
}

}  // namespace launchgap::recording
