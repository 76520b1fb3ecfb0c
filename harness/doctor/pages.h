// The pages of docs/findings, as the build put them into the binary.
#pragma once

#include <string_view>
#include <vector>

namespace launchgap::doctor {

/// The page of a finding's code, in Markdown; empty for a code that has none.
std::string_view page_of(std::string_view code);
/// All codes that have a page, in alphabetical order.
const std::vector<std::string_view>& all_codes();

}  // namespace launchgap::doctor
