// NVTX ranges of the domain "launchgap", by which Nsight shows what the harness was doing. They
// cost about a nanosecond when no tool listens, and stand outside every timed statement all the
// same. docs/architecture.md has their names.
#pragma once

#include <cstdint>
#include <string>

#if LAUNCHGAP_HAVE_NVTX
#include <nvtx3/nvtx3.hpp>
#endif

namespace launchgap::nvtx {

#if LAUNCHGAP_HAVE_NVTX

inline constexpr bool kIsThere = true;

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

/// A point in time with a text of its own, which is said once and so is not registered.
inline void mark(const std::string& text) {
  nvtx3::mark_in<Domain>(nvtx3::event_attributes{nvtx3::message{text}});
}

#else

inline constexpr bool kIsThere = false;

class Name {
 public:
  explicit Name(const std::string&) {}
};

class Range {
 public:
  explicit Range(const Name&, std::uint64_t = 0) {}
  ~Range() {}
};

inline void mark(const std::string&) {}

#endif

}  // namespace launchgap::nvtx
