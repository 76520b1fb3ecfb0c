#include "harness/measure/shapes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/device/shape_text.h"

namespace launchgap {
namespace {

/// What a user gave; nothing: the tables are measured.
std::optional<ShapeTables>& users_shapes() {
  static std::optional<ShapeTables> shapes;
  return shapes;
}

/// One row of a table of shapes; every error names its line and column.
class Row {
 public:
  Row(const CsvTable& table, std::size_t row) : table_(table), row_(row) {}

  /// Where a table does not have the column, or nothing in it, the usual.
  int number(std::string_view column, int least, std::optional<int> usual = std::nullopt) const {
    if (usual && (!table_.has(column) || table_.at(row_, column).empty())) return *usual;
    try {
      return shape_number(table_.at(row_, column), least);
    } catch (const Error& error) {
      throw Error("{}, column {}: {}", table_.where(row_), column, error.what());
    }
  }
  bool flag(std::string_view column) const {
    const int value = number(column, 0, 0);
    if (value > 1)
      throw Error("{}, column {}: '{}' is not 0 or 1", table_.where(row_), column, value);
    return value == 1;
  }
  std::string text(std::string_view column) const {
    return table_.has(column) ? table_.at(row_, column) : "";
  }
  Profile profile() const {
    const std::string name = text("profile");
    if (name.empty()) return Profile::quick;
    try {
      return parse_profile(name);
    } catch (const Error& error) {
      throw Error("{}, column profile: {}", table_.where(row_), error.what());
    }
  }
  template <class Shape>
  NamedShape<Shape> named(const Shape& shape) const {
    try {
      check_shape(shape);
    } catch (const Error& error) {
      throw Error("{}: {}", table_.where(row_), error.what());
    }
    NamedShape<Shape> result{text("name"), text("set"), profile(), number("count", 1, 1), shape};
    if (result.name.empty()) result.name = shape_text(shape);
    return result;
  }

 private:
  const CsvTable& table_;
  std::size_t row_;
};

MatmulShape matmul_of(const Row& row) {
  MatmulShape shape{row.number("m", 1), row.number("n", 1), row.number("k", 1)};
  shape.transpose_a = row.flag("transpose_a");
  shape.transpose_b = row.flag("transpose_b");
  shape.batch = row.number("batch", 1, 1);
  return shape;
}

ConvolutionShape convolution_of(const Row& row) {
  ConvolutionShape shape;
  shape.n = row.number("n", 1), shape.c = row.number("c", 1), shape.h = row.number("h", 1),
  shape.w = row.number("w", 1), shape.k = row.number("k", 1), shape.r = row.number("r", 1),
  shape.s = row.number("s", 1);
  shape.stride_h = row.number("stride_h", 1, 1), shape.stride_w = row.number("stride_w", 1, 1);
  shape.pad_h = row.number("pad_h", 0, 0), shape.pad_w = row.number("pad_w", 0, 0);
  shape.dilation_h = row.number("dilation_h", 1, 1);
  shape.dilation_w = row.number("dilation_w", 1, 1);
  shape.groups = row.number("groups", 1, 1);
  return shape;
}

/// Throws Error for two rows of one name or of one shape.
template <class Shape>
void check_each_once(const CsvTable& table, const std::vector<NamedShape<Shape>>& shapes) {
  std::map<std::string, std::size_t> seen;
  for (std::size_t row = 0; row < shapes.size(); ++row) {
    for (const std::string& key : {shapes[row].name, shape_text(shapes[row].shape)}) {
      const auto [place, is_new] = seen.emplace(key, row);
      if (!is_new && place->second != row) {
        throw Error("{}: '{}' is in line {} already",
                    table.where(row),
                    printable(key, 100),
                    table.line(place->second));
      }
    }
  }
}

constexpr std::string_view kMatmulColumns[] =
    {"name", "set", "profile", "m", "n", "k", "transpose_a", "transpose_b", "batch", "source"};
constexpr std::string_view kConvolutionColumns[] = {"name",
                                                    "set",
                                                    "profile",
                                                    "count",
                                                    "n",
                                                    "c",
                                                    "h",
                                                    "w",
                                                    "k",
                                                    "r",
                                                    "s",
                                                    "stride_h",
                                                    "stride_w",
                                                    "pad_h",
                                                    "pad_w",
                                                    "dilation_h",
                                                    "dilation_w",
                                                    "groups",
                                                    "source"};

void check_columns(const CsvTable& table, std::span<const std::string_view> known) {
  for (const std::string& column : table.columns()) {
    if (std::ranges::find(known, column) == known.end()) {
      throw Error("{}: column '{}' is not known; a table of such shapes may have {}",
                  table.name(),
                  printable(column, 100),
                  list_text({known.begin(), known.end()}));
    }
  }
}

ShapeTables tables_of(std::string_view text, const std::string& name) {
  const CsvTable table = CsvTable::parse(text, name);
  ShapeTables shapes;
  const auto take = [&](const auto& columns, auto& own, auto* shape_of) {
    check_columns(table, columns);
    for (std::size_t row = 0; row < table.size(); ++row) {
      const Row reader(table, row);
      own.push_back(reader.named(shape_of(reader)));
    }
    check_each_once(table, own);
  };
  if (table.has("m")) {
    take(kMatmulColumns, shapes.matmul, matmul_of);
  } else if (table.has("c")) {
    take(kConvolutionColumns, shapes.convolution, convolution_of);
  } else {
    throw Error(
        "{}: neither the columns m, n, k of products nor n, c, h, w, k, r, s of convolutions",
        table.name());
  }
  return shapes;
}

constexpr const char* kMatmulTable = "matmul_shapes.csv";
constexpr const char* kConvolutionTable = "convolution_shapes.csv";

/// More than this many operations take a CPU too long.
double most_operations(Profile profile, const DeviceFacts& facts) {
  if (is_gpu(facts)) return std::numeric_limits<double>::infinity();
  switch (profile) {
    case Profile::quick:
      return 2e9;
    case Profile::nightly:
      return 4e10;
    case Profile::full:
      break;
  }
  return std::numeric_limits<double>::infinity();
}

template <class Shape>
std::vector<std::string> axis(const std::vector<NamedShape<Shape>>& shapes,
                              Profile profile,
                              const DeviceFacts& facts,
                              bool all) {
  std::vector<std::string> texts;
  for (const NamedShape<Shape>& named : shapes) {
    if (all ||
        (named.profile <= profile && named.shape.operations() <= most_operations(profile, facts)))
      texts.push_back(shape_text(named.shape));
  }
  return texts;
}

}  // namespace

const std::vector<NamedShape<MatmulShape>>& matmul_shapes() {
  static const auto shapes = tables_of(embedded_table(kMatmulTable), kMatmulTable).matmul;
  return shapes;
}

const std::vector<NamedShape<ConvolutionShape>>& convolution_shapes() {
  static const auto shapes =
      tables_of(embedded_table(kConvolutionTable), kConvolutionTable).convolution;
  return shapes;
}

std::vector<NamedShape<ConvolutionShape>> convolution_set(std::string_view set) {
  std::vector<NamedShape<ConvolutionShape>> layers;
  std::ranges::copy_if(convolution_shapes(), std::back_inserter(layers), [&](const auto& named) {
    return named.set == set;
  });
  return layers;
}

ShapeTables read_shapes(const std::filesystem::path& file) {
  try {
    const std::string name = printable(file.string());
    const std::string text = InputFile(file).text(kLongestShapes);
    check_utf8(text, name);
    ShapeTables shapes = tables_of(text, name);
    if (shapes.matmul.empty() && shapes.convolution.empty())
      throw Error("{}: no shape is in it", name);
    return shapes;
  } catch (const Error& error) {
    throw UsageError("--shapes: {}", error.what());
  }
}

void use_shapes(ShapeTables shapes) {
  users_shapes() = std::move(shapes);
}

bool has_users_shapes() {
  return users_shapes().has_value();
}

std::vector<std::string> matmul_shape_axis(Profile profile, const DeviceFacts& facts) {
  if (users_shapes()) return axis(users_shapes()->matmul, profile, facts, true);
  return axis(matmul_shapes(), profile, facts, false);
}

std::vector<std::string> convolution_shape_axis(Profile profile, const DeviceFacts& facts) {
  if (users_shapes()) return axis(users_shapes()->convolution, profile, facts, true);
  return axis(convolution_shapes(), profile, facts, false);
}

}  // namespace launchgap
