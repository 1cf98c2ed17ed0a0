#include "gradsync/predict/bench_log_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "gradsync/predict/bench_table.hpp"

namespace gradsync {
namespace {

using Words = std::vector<std::string_view>;

template <class Number>
std::optional<Number> number_of(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<double> real(std::string_view word) {
  const auto value = number_of<double>(word);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

bool is_missing(std::string_view word) {
  return word == "N/A" || word == "nan" || word == "-nan" || word == "inf";
}

bool is_cell(std::string_view word) {
  return real(word) || is_missing(word);
}

bool is_redop(std::string_view word) {
  constexpr std::array<std::string_view, 7> kNames{"sum", "prod", "max",   "min",
                                                   "avg", "none", "mulsum"};
  return std::find(kNames.begin(), kNames.end(), word) != kNames.end();
}

/// Length of an ANSI escape sequence (colors, erasing) at `at`, or 0.
std::size_t escape_length(const std::string& line, std::size_t at) {
  if (line[at] != '\x1b') return 0;
  std::size_t end = at + 1;
  if (end < line.size() && line[end] == '[') {
    ++end;
    while (end < line.size() && (line[end] < '@' || line[end] > '~')) ++end;
  }
  return std::min(end + 1, line.size()) - at;
}

/// Length of a launcher's label at `at`, or 0: "[1,3]<stdout>:", "[0]", "<stderr>". Launchers label
/// every write, and a row is three writes.
std::size_t label_length(const std::string& line, std::size_t at) {
  std::size_t end = at;
  if (line[end] == '[') {
    ++end;
    while (end < line.size() &&
           (std::isdigit(static_cast<unsigned char>(line[end])) != 0 || line[end] == ',')) {
      ++end;
    }
    if (end == at + 1 || end >= line.size() || line[end] != ']') return 0;
    ++end;
  }
  for (const std::string_view stream : {"<stdout>", "<stderr>"}) {
    if (std::string_view(line).substr(end).starts_with(stream)) end += stream.size();
  }
  if (end > at && end < line.size() && line[end] == ':') ++end;
  return end - at;
}

/// The line without the additions of terminals, launchers and Markdown.
std::string cleaned(const std::string& line) {
  std::string text;
  for (std::size_t at = 0; at < line.size();) {
    if (const std::size_t escape = escape_length(line, at)) {
      at += escape;
    } else if (const std::size_t label = label_length(line, at)) {
      text += ' ';
      at += label;
    } else if (line[at] == '\0') {  // every second byte of UTF-16
      ++at;
    } else if (line[at] == '|' || line[at] == '\r' || line[at] == '\xa0' || line[at] == '\xc2') {
      text += ' ';  // a Markdown table, a line ending, a non-breaking space
      ++at;
    } else {
      text += line[at++];
    }
  }
  return text;
}

Words words_of(std::string_view line) {
  Words words;
  constexpr std::string_view kSpace = " \t\v\f";
  for (std::size_t at = line.find_first_not_of(kSpace); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kSpace, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kSpace, end);
  }
  return words;
}

std::optional<std::int64_t> whole_after(const Words& words, std::string_view name) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == name || words[i] == std::string(name) + ":") {
      return number_of<std::int64_t>(words[i + 1]);
    }
  }
  return std::nullopt;
}

/// "Rank 3 Group 0 Pid 4711 on HOST device 3 [0x15] NAME"
std::optional<LoggedDevice> device_in(const Words& words) {
  const auto rank = whole_after(words, "Rank");
  const auto process = whole_after(words, "Pid");
  const auto on = std::find(words.begin(), words.end(), "on");
  if (!rank || *rank < 0 || *rank >= (1 << 24) || !process || words.end() - on < 2) {
    return std::nullopt;
  }
  LoggedDevice device;
  device.rank = static_cast<int>(*rank);
  device.group = static_cast<int>(
      std::clamp<std::int64_t>(whole_after(words, "Group").value_or(0), -1, std::int64_t{1} << 24));
  device.process = *process;
  device.host = *(on + 1);
  auto name =
      std::find_if(on, words.end(), [](std::string_view word) { return word.starts_with('['); });
  while (name != words.end() && !name->ends_with(']')) ++name;
  for (; name != words.end() && name + 1 != words.end(); ++name) {
    device.name += (device.name.empty() ? "" : " ") + std::string(*(name + 1));
  }
  return device;
}

/// What the column heading says about the rows below it.
struct Columns {
  std::size_t width = 4;     ///< columns per placement
  bool counts_wrong = true;  ///< false in old versions, which print the largest error
  bool in_place_only = false;
  std::optional<bool> root;  ///< whether there is a root column; absent: no heading seen
};

class TextReader {
 public:
  std::vector<LoggedRun> read(const std::string& text) {
    runs_.emplace_back();
    for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = cleaned(text.substr(begin, end - begin));
      place_ = fmt::format("line {}", number);
      read_line(words_of(line));
      begin = end + 1;
    }
    finish_row();
    std::erase_if(runs_,
                  [](const LoggedRun& run) { return run.rows.empty() && run.cut_off.empty(); });
    for (LoggedRun& run : runs_) {
      if (run.program.empty()) run.program = "nccl-tests";
    }
    return std::move(runs_);
  }

 private:
  LoggedRun& run() { return runs_.back(); }

  /// Starts a new run unless the current one has only a heading so far.
  void begin_run(bool has_heading_already) {
    finish_row();
    if (!run().rows.empty() || !run().cut_off.empty() || has_heading_already) {
      runs_.emplace_back();
      columns_ = {};
    }
  }

  void read_line(const Words& words) {
    if (words.empty() || read_heading(words)) return;
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      if (begins_row(words, i)) {
        finish_row();
        begin_row(words, i);
        return;
      }
    }
    continue_row(words);
  }

  bool read_heading(const Words& words) {
    if (const auto threads = whole_after(words, "nThread")) {
      begin_run(!run().devices.empty() || run().ranks_per_process != 1);
      const std::int64_t gpus = whole_after(words, "nGpus").value_or(1);
      const bool plausible = *threads > 0 && gpus > 0 && *threads < 1024 && gpus < 1024;
      run().ranks_per_process = plausible ? static_cast<int>(*threads * gpus) : 1;
      return true;
    }
    for (std::size_t i = 0; i + 3 < words.size(); ++i) {
      if (words[i] == "Collective" && words[i + 1] == "test" && words[i + 2] == "starting:") {
        begin_run(!run().test.empty());
        run().test = words[i + 3];
        return true;
      }
      if (words[i] == "size" && words[i + 1] == "count" && words[i + 2] == "type") {
        begin_run(false);
        read_columns(words);
        return true;
      }
    }
    if (const auto device = device_in(words)) {
      if (!run().rows.empty()) begin_run(true);
      run().devices.push_back(*device);
      return true;
    }
    return read_own_heading(words) || read_placements(words);
  }

  void read_columns(const Words& words) {
    const auto has = [&](std::string_view word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    columns_.width = has("i_min") ? 8 : 4;
    columns_.counts_wrong = !has("error");
    columns_.root = has("root");
  }

  /// "# gradsync bench allreduce on gloo, 4 ranks"
  bool read_own_heading(const Words& words) {
    const auto own = std::find(words.begin(), words.end(), "gradsync");
    if (words.end() - own < 4 || words.back() != "ranks") return false;
    const auto ranks = number_of<int>(words[words.size() - 2]);
    if (!ranks || !(words.end() - 3)->ends_with(',')) return false;
    begin_run(run().ranks.has_value());
    run().ranks = *ranks;
    for (auto word = own; word != words.end() - 2; ++word) {
      run().program += (run().program.empty() ? "" : " ") + std::string(*word);
    }
    run().program.pop_back();  // the comma
    return true;
  }

  /// The line above the columns: "out-of-place in-place", or "in-place" in our own output.
  bool read_placements(const Words& words) {
    const auto has = [&](std::string_view word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (!has("in-place") || !has("#")) return false;
    begin_run(false);
    columns_.in_place_only = !has("out-of-place");
    return true;
  }

  /// A row starts with size, count and type, followed by an operation or a number.
  static bool begins_row(const Words& words, std::size_t i) {
    const auto bytes = number_of<std::int64_t>(words[i]);
    const auto count = number_of<std::int64_t>(words[i + 1]);
    if (!bytes || !count || *bytes < 0 || *count < 0 || real(words[i + 2])) return false;
    if (bench_type_size(words[i + 2]) > 0) return true;
    return i + 3 < words.size() && is_redop(words[i + 3]) && !is_missing(words[i + 2]);
  }

  void begin_row(const Words& words, std::size_t i) {
    row_.emplace();
    row_->place = place_;
    row_->bytes = *number_of<std::int64_t>(words[i]);
    row_->count = *number_of<std::int64_t>(words[i + 1]);
    row_->type = words[i + 2];
    i += 3;
    if (i < words.size() && !is_cell(words[i]) && is_redop(words[i])) row_->redop = words[i++];
    std::vector<std::string_view> cells;
    for (; i < words.size() && is_cell(words[i]); ++i) cells.push_back(words[i]);
    if (!cells.empty() && begins_with_root(cells)) {
      row_->root = number_of<int>(cells[0]);
      cells.erase(cells.begin());
    }
    take(cells);
  }

  /// A root is an integer before the placements, each of which has a fixed number of columns.
  bool begins_with_root(const std::vector<std::string_view>& cells) const {
    if (!number_of<int>(cells[0])) return false;
    if (columns_.root) return *columns_.root;
    return cells[0].starts_with('-') || cells.size() % 4 == 1;
  }

  /// Continues a row whose placements come on a later line, after a message that interrupted it.
  void continue_row(const Words& words) {
    if (!row_ || words.size() < columns_.width) return;
    std::vector<std::string_view> cells;
    for (const std::string_view word : words) {
      if (!is_cell(word)) break;
      cells.push_back(word);
    }
    if (cells.size() % columns_.width == 0) take(cells);
  }

  void take(const std::vector<std::string_view>& cells) {
    for (std::size_t at = 0; at + 3 <= cells.size(); at += columns_.width) {
      const bool first = !row_->out_of_place && !first_is_missing_;
      if (!first && row_->in_place) break;
      const auto time = placement(cells, at);
      (first ? row_->out_of_place : row_->in_place) = time;
      first_is_missing_ |= first && !time;
      placements_ += 1;
    }
  }

  std::optional<LoggedTime> placement(const std::vector<std::string_view>& cells,
                                      std::size_t at) const {
    const auto time = real(cells[at]);
    if (!time) return std::nullopt;
    LoggedTime result;
    result.time = Seconds(*time * 1e-6);
    result.algbw = real(cells[at + 1]);
    result.busbw = real(cells[at + 2]);
    if (columns_.counts_wrong && at + 3 < cells.size()) {
      const auto wrong = real(cells[at + 3]);
      if (wrong && *wrong >= 0 && *wrong < 1e15 && *wrong == std::floor(*wrong)) {
        result.wrong = static_cast<std::int64_t>(*wrong);
      }
    }
    return result;
  }

  void finish_row() {
    if (!row_) return;
    if (columns_.in_place_only && placements_ == 1) std::swap(row_->out_of_place, row_->in_place);
    if (row_->out_of_place || row_->in_place) {
      run().rows.push_back(*row_);
    } else {
      run().cut_off.push_back(row_->place);
    }
    row_.reset();
    first_is_missing_ = false;
    placements_ = 0;
  }

  std::vector<LoggedRun> runs_;
  Columns columns_;
  std::string place_;
  std::optional<LoggedRow> row_;  ///< started, not yet added to its run
  bool first_is_missing_ = false;
  int placements_ = 0;
};

}  // namespace

std::vector<LoggedRun> read_log_text(const std::string& text) {
  return TextReader().read(text);
}

}  // namespace gradsync
