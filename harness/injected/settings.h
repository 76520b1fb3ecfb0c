// What `launchgap record` tells the library that it injects: a file in the folder that
// LAUNCHGAP_RECORD names, one line each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace launchgap::injected {

inline constexpr const char* kFolderVariable = "LAUNCHGAP_RECORD";
inline constexpr const char* kSettingsFile = "settings";

struct Settings {
  std::string folder;             // where raw recordings go
  std::uint32_t level = 2;        // of kRawLevels (raw_recording.h)
  std::uint64_t limit_bytes = 0;  // of each process
  double seconds = 0;             // after which recording ends; 0: with the program
  std::string cupti_folders;      // where CUPTI may be, separated by colons

  /// As the file has it.
  std::string text() const {
    return "level " + std::to_string(level) + "\nlimit " + std::to_string(limit_bytes) +
           "\nseconds " + std::to_string(seconds) + "\nlibraries " + cupti_folders + "\n";
  }
  /// Of this process's environment; nothing if it has none, or the file cannot be read.
  static std::optional<Settings> of_environment();
};

}  // namespace launchgap::injected
