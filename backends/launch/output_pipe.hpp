#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <asio.hpp>

#include "gradsync/backends/launch/line_splitter.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {

/// One of a rank's output streams: a pipe, whose lines `on_line` gets on the thread that runs `io`.
class OutputPipe {
 public:
  OutputPipe(asio::io_context& io, std::function<void(const std::string&)> on_line)
      : pipe_(io), lines_(std::move(on_line)) {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) {
      throw Error(ErrorCode::kInternal, fmt::format("pipe: {}", std::strerror(errno)));
    }
    pipe_.assign(fds[0]);
    write_end_ = fds[1];
  }
  ~OutputPipe() { started(); }
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;

  int write_end() const { return write_end_; }
  /// Closes the write end: the child has its copy.
  void started() {
    if (write_end_ >= 0) ::close(write_end_);
    write_end_ = -1;
  }
  void read() {
    pipe_.async_read_some(asio::buffer(chunk_), [this](asio::error_code error, std::size_t bytes) {
      lines_.add({chunk_.data(), bytes});
      if (!error) return read();
      if (error == asio::error::operation_aborted) return;
      lines_.finish();
      open_ = false;
    });
  }
  bool open() const { return open_; }
  void finish() {
    asio::error_code ignored;
    pipe_.close(ignored);
    if (open_) lines_.finish();
    open_ = false;
  }

 private:
  asio::posix::stream_descriptor pipe_;
  LineSplitter lines_;
  std::array<char, 16 * 1024> chunk_{};
  int write_end_ = -1;
  bool open_ = true;
};

}  // namespace gradsync
