#include "harness/import/tuner_cache.h"

#include <cmath>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#include <unordered_set>

#include <fmt/format.h>

#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/import/json_text.h"

namespace launchgap::recording {
namespace {

constexpr double kNsPerMs = 1e6;
/// As which Kernel Tuner before 0.4 wrote a configuration that failed.
constexpr double kOldFailureMs = 1e20;
constexpr std::size_t kLongestText = 300, kMostParameters = 64;

/// What RapidJSON tells of a cache file; numbers come as their text.
class CacheHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, CacheHandler> {
 public:
  CacheHandler(TunerCache& cache, const TextStream& stream) : cache_(cache), stream_(stream) {}

  bool Null() { return value("null", false); }
  bool Bool(bool given) { return value(given ? "true" : "false", false); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    return value({text, size}, true);
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return value({text, size}, false);
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    if (depth_ < kDeepestKey) keys_[depth_].assign(text, size);
    if (depth_ == 2 && in_cache()) begin_configuration();
    return true;
  }
  bool StartObject() { return enter(); }
  bool EndObject(rapidjson::SizeType) {
    if (depth_ == 3 && in_cache()) end_configuration();
    return leave();
  }
  bool StartArray() { return enter(); }
  bool EndArray(rapidjson::SizeType) {
    if (depth_ == 3 && in_cache()) refuse("a configuration that is a list");
    return leave();
  }

  bool saw_cache() const { return saw_cache_; }

 private:
  static constexpr std::size_t kDeepestKey = 4, kDeepest = 100;

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error("line {}, column {}: {}", stream_.line(), stream_.column(), why);
  }
  bool in_cache() const { return keys_[1] == "cache"; }
  bool enter() {
    if (++depth_ > kDeepest) refuse(fmt::format("it is nested more than {} deep", kDeepest));
    if (depth_ == 2 && in_cache()) saw_cache_ = true;
    if (depth_ < kDeepestKey) keys_[depth_].clear();
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  std::string short_text(std::string_view text) const {
    if (text.size() > kLongestText)
      refuse(
          fmt::format("a text of {} characters, where {} are the most", text.size(), kLongestText));
    for (const char c : text) {
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7F')
        refuse("a text with control characters");
    }
    return std::string(text);
  }

  bool value(std::string_view text, bool number) {
    if (depth_ == 1 && keys_[1] == "device_name") cache_.gpu = short_text(text);
    if (depth_ == 1 && keys_[1] == "kernel_name") cache_.kernel = short_text(text);
    if (depth_ == 1 && keys_[1] == "problem_size") cache_.problem = short_text(text);
    if (depth_ == 2 && keys_[1] == "problem_size")
      cache_.problem += (cache_.problem.empty() ? "" : "x") + short_text(text);
    if (depth_ == 2 && keys_[1] == "tune_params_keys") {
      if (cache_.parameters.size() == kMostParameters)
        refuse(fmt::format("more than {} parameters", kMostParameters));
      cache_.parameters.push_back(short_text(text));
    }
    if (depth_ == 2 && in_cache()) refuse("a configuration without its parts");
    if (depth_ == 3 && in_cache() && keys_[3] == "time") take_time(text, number);
    if (depth_ == 4 && in_cache() && keys_[3] == "times" && number) take_run(text);
    return true;
  }

  void begin_configuration() {
    TunedConfiguration& own = cache_.configurations.emplace_back();
    own.values = short_text(keys_[2]);
    if (own.values.empty()) refuse("a configuration without a name");
    if (!seen_.insert(own.values).second)
      refuse(fmt::format("configuration {} is there twice", own.values));
    sum_ = squares_ = 0;
    has_time_ = false;
  }

  void take_time(std::string_view text, bool number) {
    TunedConfiguration& own = cache_.configurations.back();
    has_time_ = true;
    if (!number) {
      own.failure = short_text(text);
      if (own.failure.empty()) own.failure = "failed";
      return;
    }
    const double ms = number_of(own, text);
    if (ms >= kOldFailureMs) {
      own.failure = "failed";
    } else {
      own.ns = ms * kNsPerMs;
    }
  }

  double number_of(const TunedConfiguration& own, std::string_view text) const {
    const std::optional<double> ms = number_of_text<double>(text);
    if (!ms || !std::isfinite(*ms) || !(*ms > 0))
      refuse(fmt::format("the time of configuration {} is '{}', and no number of ms above 0",
                         own.values,
                         printable(text, 40)));
    return *ms;
  }

  void take_run(std::string_view text) {
    TunedConfiguration& own = cache_.configurations.back();
    const double log = std::log(number_of(own, text));
    ++own.runs;
    sum_ += log;
    squares_ += log * log;
  }

  void end_configuration() {
    TunedConfiguration& own = cache_.configurations.back();
    if (!has_time_) refuse(fmt::format("configuration {} has no time", own.values));
    if (own.runs < 2) return;
    const double n = own.runs, variance = (squares_ - sum_ * sum_ / n) / (n - 1);
    own.log_sd = std::sqrt(std::max(0.0, variance));
  }

  TunerCache& cache_;
  const TextStream& stream_;
  std::size_t depth_ = 0;
  std::string keys_[kDeepestKey];  // the last that was read, by how deep it stands
  std::unordered_set<std::string> seen_;
  double sum_ = 0, squares_ = 0;  // of the logarithms of a configuration's runs
  bool has_time_ = false, saw_cache_ = false;
};

TunerCache read_cache(const std::filesystem::path& file) {
  TunerCache cache;
  CompressedText text(file);
  text.limit_unpacking(kMostUnpacking);
  TextStream stream(text);
  CacheHandler handler(cache, stream);
  LimitedAllocator allocator;
  rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>, LimitedAllocator> reader(
      &allocator);
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag |
      rapidjson::kParseNanAndInfFlag | rapidjson::kParseValidateEncodingFlag;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, handler);
  if (result.IsError())
    throw Error(
        "line {}, column {}: it is no whole JSON: {}{}",
        stream.line(),
        stream.column(),
        rapidjson::GetParseError_En(result.Code()),
        stream.Peek() == '\0' ? " An interrupted tuning leaves a file without its end." : "");
  if (cache.gpu.empty()) throw Error("it has no device_name");
  if (cache.kernel.empty()) throw Error("it has no kernel_name");
  if (cache.parameters.empty()) throw Error("it has no tune_params_keys");
  if (!handler.saw_cache()) throw Error("it has no cache");
  if (cache.configurations.empty()) throw Error("no configuration is in it");
  return cache;
}

}  // namespace

bool is_tuner_cache(const std::filesystem::path& file) {
  try {
    const std::string begin = beginning_of(file, 4096);
    const std::size_t first = begin.find_first_not_of(" \t\r\n");
    return first != begin.npos && begin[first] == '{' &&
           begin.find("\"kernel_name\"") != begin.npos &&
           begin.find("\"traceEvents\"") == begin.npos &&
           (begin.find("\"tune_params_keys\"") != begin.npos ||
            begin.find("\"problem_size\"") != begin.npos);
  } catch (const Error&) {  // whoever reads it says what is wrong with it
    return false;
  }
}

TunerCache read_tuner_cache(const std::filesystem::path& file) {
  try {
    return read_cache(file);
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.starts_with(file.string())) throw;
    throw Error("{}: {}", printable(file.string()), message);
  }
}

}  // namespace launchgap::recording
