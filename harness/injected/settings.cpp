#include "harness/injected/settings.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace launchgap::injected {

std::optional<Settings> Settings::of_environment() {
  const char* const folder = std::getenv(kFolderVariable);
  if (!folder || *folder != '/') return std::nullopt;
  Settings settings;
  settings.folder = folder;
  std::FILE* const file = std::fopen((settings.folder + "/" + kSettingsFile).c_str(), "re");
  if (!file) return std::nullopt;
  char* line = nullptr;
  std::size_t room = 0;
  for (ssize_t length; (length = getline(&line, &room, file)) > 0;) {
    const std::string_view text(line,
                                static_cast<std::size_t>(length) - (line[length - 1] == '\n'));
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) continue;
    const std::string_view key = text.substr(0, space);
    const std::string value(text.substr(space + 1));
    if (key == "level")
      settings.level = static_cast<std::uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    if (key == "limit") settings.limit_bytes = std::strtoull(value.c_str(), nullptr, 10);
    if (key == "seconds") settings.seconds = std::strtod(value.c_str(), nullptr);
    if (key == "libraries") settings.cupti_folders = value;
  }
  std::free(line);
  std::fclose(file);
  return settings.limit_bytes > 0 ? std::optional(settings) : std::nullopt;
}

}  // namespace launchgap::injected
