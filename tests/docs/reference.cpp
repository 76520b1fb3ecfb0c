// Prints tables.json: what the docs' tables and the tests of the page are made from.
#include <cstdio>

#include "harness/summary/all_tables.h"

int main() {
  return std::puts(launchgap::describe_tables().dump(1).c_str()) < 0;
}
