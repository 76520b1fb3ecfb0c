# What hundreds of sources include, compiled once for each set of flags: a third of the build's time. Sources include what
# they use all the same: scripts/lint and -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON compile without.
set(launchgap_pch_standard <algorithm> <cmath> <cstdint> <cstdlib> <cstring> <filesystem> <fstream> <functional> <limits> <map>
    <memory> <optional> <ranges> <set> <sstream> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>)
set(launchgap_pch_json ${launchgap_pch_standard} <nlohmann/json.hpp>)
set(launchgap_pch_cli ${launchgap_pch_json} <CLI/CLI.hpp>)
set(launchgap_pch_tests ${launchgap_pch_json} <gmock/gmock.h> <gtest/gtest.h>)
