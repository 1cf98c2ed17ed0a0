#include "gradsync/testbed/record/files.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

[[noreturn]] void fail(const char* what, const std::filesystem::path& file) {
  throw Error(ErrorCode::kUsage,
              fmt::format("cannot {} {}: {}", what, file.string(), std::strerror(errno)));
}

}  // namespace

std::string read_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail("read", file);
  std::string content{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (stream.bad()) fail("read", file);
  return content;
}

void write_file(const std::filesystem::path& file, std::string_view content) {
  const std::filesystem::path beside = file.string() + ".tmp";
  std::ofstream stream(beside, std::ios::binary);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();
  if (!stream) fail("write", beside);
  std::error_code error;
  std::filesystem::rename(beside, file, error);
  if (error) {
    errno = error.value();
    fail("write", file);
  }
}

}  // namespace gradsync
