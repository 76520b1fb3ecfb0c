#include "harness/doctor/programs/program_facts.h"

#include <algorithm>

#include "harness/core/printable.h"
#include "harness/doctor/libraries/library_copies.h"

namespace launchgap::doctor {
namespace {

bool is_context_node(const std::string& node) {
  constexpr std::string_view kDevice = "/dev/nvidia";
  if (node == "/dev/nvidia-uvm") return true;
  return node.starts_with(kDevice) && node.size() > kDevice.size() &&
         std::all_of(node.begin() + kDevice.size(), node.end(), [](char c) {
           return c >= '0' && c <= '9';
         });
}

Json printable_list(const auto& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(printable(text));
  return list;
}

Json to_json(const LoaderSearch& search) {
  Json json = {{"wanted", printable(search.wanted)},
               {"requested_by", printable(search.requested_by)},
               {"dlopened", search.dlopened},
               {"found", printable(search.found)},
               {"why", search.why()}};
  Json tried = Json::array();
  for (const LoaderSearch::Attempt& attempt : search.attempts)
    tried.push_back({{"path", printable(attempt.path)}, {"origin", attempt.origin.text()}});
  json["tried"] = std::move(tried);
  return json;
}

Json to_json(const ProcessFacts& facts) {
  Json json = {{"pid", facts.pid},
               {"command", facts.command},
               {"executable", printable(facts.executable)},
               {"context", facts.had_context()}};
  if (facts.statically_linked) json["statically_linked"] = *facts.statically_linked;
  Json libraries = Json::array();
  for (const MappedLibrary& library : facts.libraries) {
    libraries.push_back({{"name", printable(library.name)},
                         {"path", printable(library.path)},
                         {"why", library.origin.text()},
                         {"deleted", library.deleted}});
  }
  json["libraries"] = std::move(libraries);
  Json missing = Json::array();
  for (const LoaderSearch& search : facts.searches) {
    if (search.found.empty()) missing.push_back(to_json(search));
  }
  json["not_found"] = std::move(missing);
  json["nodes_open"] = printable_list(facts.nodes_open);
  json["nodes_mapped"] = printable_list(facts.nodes_mapped);
  json["listed_by_nvml"] = facts.listed_by_nvml;
  Json environment = Json::object();
  for (const auto& [name, value] : facts.environment) environment[name] = printable(value);
  json["environment"] = std::move(environment);
  return json;
}

}  // namespace

bool ProcessFacts::had_context() const {
  return listed_by_nvml || std::ranges::any_of(nodes_mapped, is_context_node);
}

bool ProcessFacts::had_driver() const {
  if (looks_with_driver > 0) return true;
  return std::ranges::any_of(searches, [](const LoaderSearch& search) {
    return library_stem(search.wanted) == "libcuda" && !search.found.empty() && !search.unloaded;
  });
}

bool ProcessFacts::asked() const {
  return !libraries.empty() || !searches.empty() || !nodes_open.empty() || had_context();
}

bool ProgramFacts::had_context() const {
  return std::ranges::any_of(processes, &ProcessFacts::had_context);
}

bool ProgramFacts::had_driver() const {
  return std::ranges::any_of(processes, &ProcessFacts::had_driver);
}

bool ProgramFacts::asked() const {
  return std::ranges::any_of(processes, &ProcessFacts::asked);
}

Json to_json(const ProgramFacts& facts) {
  Json json = {{"command", facts.command}, {"loader_traced", facts.traced}};
  if (facts.exit_code) json["exit_code"] = *facts.exit_code;
  if (facts.signal) json["signal"] = *facts.signal;
  json["limitations"] = facts.limitations;
  Json processes = Json::array();
  for (const ProcessFacts& process : facts.processes) processes.push_back(to_json(process));
  json["processes"] = std::move(processes);
  return json;
}

}  // namespace launchgap::doctor
