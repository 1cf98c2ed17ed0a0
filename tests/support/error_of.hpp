#pragma once

#include <exception>
#include <functional>
#include <string>

namespace gradsync::test {

/// The text of the exception that `action` throws; "no error" if it throws none.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace gradsync::test
