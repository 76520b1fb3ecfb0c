// Reads {"runs": [[…], …]} on standard input, prints every statistic of harness/stats as JSON;
// null: not defined.
#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "harness/stats/stats.h"

namespace {

using Json = nlohmann::json;
using namespace launchgap::stats;

Json maybe(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto runs = Json::parse(line).at("runs").get<std::vector<std::vector<double>>>();
    std::vector<double> in_order;
    for (const auto& run : runs) in_order.insert(in_order.end(), run.begin(), run.end());
    std::vector<double> sorted = in_order;
    std::ranges::sort(sorted);
    Json out;
    for (const double p : {0.0, 0.001, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0})
      out["quantiles"].push_back(maybe(quantile(sorted, p)));
    out["mean"] = maybe(mean(in_order));
    out["sd"] = maybe(standard_deviation(in_order));
    out["mad"] = maybe(median_absolute_deviation(sorted));
    out["outlier_share"] = maybe(outlier_share(sorted));
    out["lag1"] = maybe(lag1_autocorrelation(in_order));
    const auto interval = median_interval(sorted);
    out["median_interval"] = interval ? Json({interval->low, interval->high}) : Json(nullptr);
    const VarianceComponents components = variance_components(runs);
    out["within_cv"] = maybe(components.within_cv);
    out["between_cv"] = maybe(components.between_cv);
    out["icc"] = maybe(components.icc);
    std::cout << out.dump() << std::endl;
  }
}
