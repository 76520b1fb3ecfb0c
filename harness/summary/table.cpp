#include "harness/summary/table.h"

namespace launchgap {

std::string_view name_of(CellKind kind) {
  switch (kind) {
    case CellKind::text:
      return "text";
    case CellKind::number:
      return "number";
    case CellKind::count:
      return "count";
    case CellKind::flag:
      return "flag";
  }
  return "";
}

std::string_view name_of(TableUse use) {
  switch (use) {
    case TableUse::fleet:
      return "fleet";
    case TableUse::every_page:
      return "every_page";
    case TableUse::session:
      return "session";
    case TableUse::details:
      return "details";
    case TableUse::export_only:
      return "export";
    case TableUse::comparison:
      return "comparison";
    case TableUse::comparison_cases:
      return "comparison_cases";
  }
  return "";
}

}  // namespace launchgap
