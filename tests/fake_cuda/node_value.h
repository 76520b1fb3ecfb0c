// Reading a node description: values that know their place in it, and say what would be right
// there.
#pragma once

#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/fake_cuda/node.h"

namespace launchgap::fake {

/// One value of the description with its place in it. Whatever is wrong throws DescriptionError.
class Value {
 public:
  using Json = nlohmann::json;

  Value(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  const Json& json() const { return json_; }

  [[noreturn]] void reject(const std::string& expected) const;

  void expect_object(const std::set<std::string>& known) const;

  std::optional<Value> find(const char* key) const;
  Value at(const char* key, const std::string& expected) const;
  std::vector<Value> elements(const std::string& expected) const;

  std::string text(const std::string& expected) const;
  double number(double low, const std::string& expected) const;
  long long integer(long long low, long long high, const std::string& expected) const;
  bool boolean() const;

  /// At `key` if there is one.
  int integer_or(const char* key,
                 int low,
                 int otherwise,
                 int high = std::numeric_limits<int>::max()) const;
  bool boolean_or(const char* key, bool otherwise) const;
  /// At least 0.
  double number_or(const char* key, const std::string& expected, double otherwise) const;
  Distribution distribution_or(const char* key, double otherwise_ns) const;

  Distribution distribution() const;

 private:
  const Json& json_;
  std::string where_;
};

/// The parts of the description that have files of their own.
CuptiDescription read_cupti(const Value& value);
/// Of a device whose clocks are known.
NvmlDescription read_nvml(const std::optional<Value>& value, const DeviceDescription& device);

/// `device.launch`, from keys of the device itself; its other times are known.
void read_launch(const Value& value, DeviceDescription& device);
/// The keys that read_launch reads.
const std::set<std::string>& launch_keys();

/// The calls of a library that can be given a fault: those that return a status.
const std::set<std::string, std::less<>>& calls_of(Library library);

}  // namespace launchgap::fake
