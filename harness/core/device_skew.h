// Who was late when several devices, or CPUs, did the same step at once: what one process measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

/// One of those that do the step.
struct SkewMember {
  std::string name;                   // a device's UUID; of the host device's CPUs "cpu3"
  std::vector<std::int64_t> host_ns;  // of each step, the host's part
  std::vector<std::int64_t> work_ns;  // and the member's own
  std::vector<std::int64_t> sum_ns;   // from the end of its own part until the sum of all; or none
  double alone_ns = 0;                // its own part while the others do nothing, the median

  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("host_ns", self.host_ns);
    field("work_ns", self.work_ns);
    field.optional("sum_ns", self.sum_ns);
    field("alone_ns", self.alone_ns);
  }
};

/// The record `skew`.
struct DeviceSkew {
  static constexpr std::string_view kName = "skew";

  std::string case_name;
  double uncertainty_ns = 0;  // of who was late by how much: what is not seen of a step
  bool valid = true;          // not of one device, whose streams stand for devices
  std::vector<SkewMember> members;

  static void fields(auto& self, auto&& field) {
    field("case", self.case_name);
    field("uncertainty_ns", self.uncertainty_ns);
    field.optional("valid", self.valid);
    field("members", self.members);
  }
};

}  // namespace launchgap
