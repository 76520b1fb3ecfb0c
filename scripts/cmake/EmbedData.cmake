# launchgap_embed_data(TARGET FILES name.csv…): puts files of data/, or of the folder that is named with them, into
# TARGET, as the function `embedded_table` of harness/core/csv_table.h. The binary reads no table at run time; a changed table makes the build configure again.
function(launchgap_embed_data target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES")
  set(entries "")
  foreach(name IN LISTS arg_FILES)
    set(path ${CMAKE_SOURCE_DIR}/data/${name})
    if(name MATCHES "/")
      set(path ${CMAKE_SOURCE_DIR}/${name})
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(READ ${path} text)
    string(FIND "${text}" ")table\"" delimiter)
    if(NOT delimiter EQUAL -1)
      message(FATAL_ERROR "${path} contains the characters that end a table in the generated source")
    endif()
    string(APPEND entries "  if (name == \"${name}\") return R\"table(${text})table\";\n")
  endforeach()
  set(source ${CMAKE_BINARY_DIR}/generated/harness/core/embedded_tables.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
    "#include \"harness/core/csv_table.h\"

namespace launchgap {

std::string_view embedded_table(std::string_view name) {
@entries@  return {};
}

}  // namespace launchgap
")
  target_sources(${target} PRIVATE ${source})
endfunction()

# launchgap_embed_pages(TARGET): puts all of docs/findings into TARGET, as the functions of harness/doctor/doctor.h.
function(launchgap_embed_pages target)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/findings/*.md)
  list(SORT pages)
  set(entries "")
  set(codes "")
  foreach(path IN LISTS pages)
    get_filename_component(code ${path} NAME_WE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(READ ${path} text)
    string(APPEND entries "  if (code == \"${code}\") return R\"page(${text})page\";\n")
    string(APPEND codes "\"${code}\", ")
  endforeach()
  set(source ${CMAKE_BINARY_DIR}/generated/harness/doctor/pages.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
    "#include \"harness/doctor/doctor.h\"

namespace launchgap::doctor {

std::string_view page_of(std::string_view code) {
@entries@  return {};
}

const std::vector<std::string_view>& all_codes() {
  static const std::vector<std::string_view> codes = {@codes@};
  return codes;
}

}  // namespace launchgap::doctor
")
  target_sources(${target} PRIVATE ${source})
endfunction()
