// NVTX ranges of the domain "launchgap", by which Nsight shows what the harness was doing. They
// cost about a nanosecond when no tool listens, and stand outside every timed statement all the
// same.
#pragma once

#include <cstdint>
#include <string>

#if LAUNCHGAP_HAVE_NVTX
#include <nvtx3/nvtx3.hpp>
#endif

namespace launchgap::nvtx {

#if LAUNCHGAP_HAVE_NVTX

struct Domain {
  static constexpr char const* name{"launchgap"};
};

/// A name by which ranges are found: registered, since Nsight's filters see only registered
/// strings.
class Name {
 public:
  explicit Name(const std::string& text) : handle_(text) {}
  const nvtx3::registered_string_in<Domain>& handle() const { return handle_; }

 private:
  nvtx3::registered_string_in<Domain> handle_;
};

/// From construction to destruction, with a number that tells ranges of one name apart.
class Range {
 public:
  explicit Range(const Name& name, std::uint64_t payload = 0)
      : range_(nvtx3::event_attributes{name.handle(), nvtx3::payload{payload}}) {}

 private:
  nvtx3::scoped_range_in<Domain> range_;
};

#else

class Name {
 public:
  explicit Name(const std::string&) {}
};

class Range {
 public:
  explicit Range(const Name&, std::uint64_t = 0) {}
  ~Range() {}
};

#endif

}  // namespace launchgap::nvtx
