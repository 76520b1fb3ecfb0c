// What a worker tells its parent while it works: JSON lines, each with its kind in "message".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/device/facts.h"
#include "harness/record/fields.h"

namespace launchgap {
namespace message {

/// How many GPUs there are.
struct Found {
  static constexpr std::string_view kName = "found";
  int count = 0;

  static void fields(auto& self, auto&& field) { field("count", self.count); }
};

/// Which call is made next, before it is made: it may not return.
struct Asking {
  static constexpr std::string_view kName = "asking";
  std::string call;

  static void fields(auto& self, auto&& field) { field("call", self.call); }
};

struct Devices {
  static constexpr std::string_view kName = "devices";
  std::vector<DeviceFacts> devices;

  static void fields(auto& self, auto&& field) { field("devices", self.devices); }
};

struct Initialised {
  static constexpr std::string_view kName = "initialised";
  double milliseconds = 0;

  static void fields(auto& self, auto&& field) { field("milliseconds", self.milliseconds); }
};

/// Why CUPTI cannot be loaded; nothing where it can.
struct TracingFound {
  static constexpr std::string_view kName = "tracing";
  std::optional<std::string> problem;

  static void fields(auto& self, auto&& field) { field("problem", self.problem); }
};

/// The driver is open, and stays so.
struct Kept {
  static constexpr std::string_view kName = "kept";
  static void fields(auto&, auto&&) {}
};

struct CaseBegun {
  static constexpr std::string_view kName = "begin";
  std::string case_name;

  static void fields(auto& self, auto&& field) { field("case", self.case_name); }
};

/// It is set up, verified and warm.
struct CasePrepared {
  static constexpr std::string_view kName = "prepared";
  std::string case_name;

  static void fields(auto& self, auto&& field) { field("case", self.case_name); }
};

/// A block of samples is measured and written.
struct BlockDone {
  static constexpr std::string_view kName = "block";
  int block = 0;

  static void fields(auto& self, auto&& field) { field("block", self.block); }
};

struct CaseEnded {
  static constexpr std::string_view kName = "end";
  std::string case_name;
  Status status = Status::ok;
  std::string reason;
  bool sticky = false;    // the process can make no further use of the device, and ends
  bool of_trace = false;  // the reason begins with a word for what is wrong with the trace

  static void fields(auto& self, auto&& field) {
    field("case", self.case_name);
    field("status", self.status);
    field("reason", self.reason);
    field("sticky", self.sticky);
    field("of_trace", self.of_trace);
  }
};

/// Why the process ends before its work is done.
struct Failed {
  static constexpr std::string_view kName = "failed";
  std::string error;
  bool disk = false;  // nothing can be written

  static void fields(auto& self, auto&& field) {
    field("error", self.error);
    field("disk", self.disk);
  }
};

}  // namespace message

using Message = std::variant<message::Found,
                             message::Asking,
                             message::Devices,
                             message::Initialised,
                             message::TracingFound,
                             message::Kept,
                             message::CaseBegun,
                             message::CasePrepared,
                             message::BlockDone,
                             message::CaseEnded,
                             message::Failed>;

Json to_json(const Message& message);
/// Nothing for what is no message: a library may have written to the worker's descriptor.
std::optional<Message> message_from_json(const Json& json);

// --- How a process ended ---

struct ProcessEnd {
  int exit_code = 0;     // when it exited
  int signal = 0;        // when a signal ended it
  bool unknown = false;  // somebody else took the status

  bool clean() const { return signal == 0 && exit_code == 0 && !unknown; }
  std::string text() const;  // "exited with 3", "was killed by SIGABRT"
};

}  // namespace launchgap
