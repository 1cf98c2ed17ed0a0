#pragma once

#include <string>

namespace gradsync::test {

/// The root of the source tree.
std::string source_dir();

/// tests/data.
std::string test_data();

/// The built command.
std::string command_path();

}  // namespace gradsync::test
