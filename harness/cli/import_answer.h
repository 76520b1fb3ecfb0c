// What is answered of a session that was just made of recordings.
#pragma once

#include <filesystem>
#include <string>

namespace launchgap::cli {

/// Writes the session's tables, and its page if `with_page`; answers what they say, and `more`
/// below that. With `json` the answer is a file there, or with "-" a document on standard output
/// and nothing else. The session then is whole; where something throws, it is taken away.
void report_import(const std::filesystem::path& folder,
                   bool with_page,
                   const std::string& json,
                   const std::string& more);

}  // namespace launchgap::cli
