#include "tests/support/paths.hpp"

// Only this file is told where it was built, so that a compiler cache serves all others in any
// checkout.
namespace gradsync::test {

std::string source_dir() {
  return GRADSYNC_SOURCE_DIR;
}

std::string test_data() {
  return GRADSYNC_SOURCE_DIR "/tests/data";
}

std::string command_path() {
  return GRADSYNC_COMMAND;
}

}  // namespace gradsync::test
