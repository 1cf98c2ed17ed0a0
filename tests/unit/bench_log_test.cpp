// Logs of nccl-tests as people have them: whatever a launcher, a terminal or a web page did to one,
// the table is the same.
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/bench_log.hpp"
#include "tests/support/bench_logs.hpp"
#include "tests/support/catch.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;
using test::joined;
using test::made_lines;
using test::made_text;
using test::MadeLog;

/// What stands in front of a line, behind it, or in its place.
using Change = std::function<std::string(const std::string&)>;

struct Form {
  const char* name;
  Change change;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> kForms{
      {"plain", [](const std::string& line) { return line; }},
      {"mpirun --tag-output", [](const std::string& line) { return "[1,0]<stdout>:" + line; }},
      {"mpirun of OpenMPI 5",
       [](const std::string& line) { return "[prterun-host-2134@1,0]<stdout>: " + line; }},
      {"mpiexec -prepend-rank", [](const std::string& line) { return "[0] " + line; }},
      {"srun --label", [](const std::string& line) { return "0: " + line; }},
      {"srun --label of 128 tasks", [](const std::string& line) { return "000: " + line; }},
      {"kubectl logs --timestamps",
       [](const std::string& line) { return "2025-05-02T10:11:12.123456789Z " + line; }},
      {"kubectl logs --prefix",
       [](const std::string& line) { return "[pod/nccl-launcher-x2v/main] " + line; }},
      {"ts", [](const std::string& line) { return "May 02 10:11:12 " + line; }},
      {"CRLF", [](const std::string& line) { return line + "\r"; }},
      {"colours", [](const std::string& line) { return "\x1b[1;32m" + line + "\x1b[0m\x1b[K"; }},
      {"a quotation", [](const std::string& line) { return "> " + line; }},
      {"a Markdown table",
       [](const std::string& line) {
         std::string row;
         bool was_space = true;
         for (const char c : line) {
           if (c == ' ' && !was_space) row += " |";
           was_space = c == ' ';
           row += c;
         }
         return line.starts_with('#') ? line : "| " + row + " |";
       }},
      {"docker compose", [](const std::string& line) { return "worker-0-1  | " + line; }},
  };
  return kForms;
}

std::string changed(const std::vector<std::string>& lines, const std::vector<Change>& changes) {
  std::string text;
  for (std::string line : lines) {
    for (const Change& change : changes) line = change(line);
    text += line + "\n";
  }
  return text;
}

void check_is(const BenchTable& table, const MadeLog& log) {
  CHECK(table.ranks == log.ranks());
  if (log.list_devices) {
    CHECK(table.nodes == log.nodes);
    CHECK(table.ranks_per_node == log.ranks_per_node);
    CHECK(table.device == log.device);
  }
  REQUIRE(table.rows.size() == log.sizes.size());
  for (std::size_t i = 0; i < log.sizes.size(); ++i) {
    CAPTURE(i);
    CHECK(table.rows[i].bytes == log.sizes[i]);
    CHECK(table.rows[i].count == log.sizes[i] / log.element);
    CHECK(table.rows[i].type == log.type);
    CHECK(table.rows[i].wrong == 0);
    CHECK(table.rows[i].time.count() * 1e6 ==
          Approx(test::made_time_us(log, log.sizes[i])).margin(0.006));
  }
}

}  // namespace

TEST_CASE("bench log: labels, times, colours and Markdown change nothing, alone or in pairs") {
  for (const auto& [nodes, each] : {std::pair{1, 2}, {1, 8}, {2, 1}, {8, 8}}) {
    MadeLog log;
    log.nodes = nodes;
    log.ranks_per_node = each;
    log.test = nodes == 8 ? "all_reduce_perf" : "";
    log.list_groups = each != 2;
    for (const Form& inner : forms()) {
      for (const Form& outer : forms()) {
        CAPTURE(nodes, each, inner.name, outer.name);
        const std::string text = changed(made_lines(log), {inner.change, outer.change});
        check_is(read_bench_log(text, "log"), log);
      }
    }
  }
}

TEST_CASE("bench log: a fence, prose around it, a byte-order mark or UTF-16 change nothing") {
  const MadeLog log;
  const std::string text = made_text(log);
  check_is(read_bench_log("We see this:\n```text\n" + text + "```\nIs 3 GB/s right?\n", "log"),
           log);
  check_is(read_bench_log("\xef\xbb\xbf" + text, "log"), log);
  std::string wide = "\xff\xfe";
  for (const char c : text) wide += std::string{c, '\0'};
  check_is(read_bench_log(wide, "log"), log);
}

TEST_CASE("bench log: messages of NCCL between, before, behind and inside rows lose nothing") {
  const std::string info =
      "node-0:4711:4790 [3] NCCL INFO comm 0x55d1f8 rank 3 nranks 8 - Init COMPLETE";
  const MadeLog log;
  std::string between, before, behind, inside, tagged;
  for (const std::string& line : test::made_header(log)) {
    for (std::string* text : {&between, &before, &behind, &inside, &tagged}) *text += line + "\n";
  }
  for (const long long bytes : log.sizes) {
    const auto pieces = test::made_row_pieces(log, bytes);
    const std::string row = pieces[0] + pieces[1] + pieces[2];
    between += info + "\n" + row + "\n";
    before += info + row + "\n";
    behind += row + info + "\n";
    inside += pieces[0] + info + "\n" + info + "\n" + pieces[1] + pieces[2] + "\n";
    tagged += "[0]" + pieces[0] + "[0]" + pieces[1] + "[1,0]<stdout>:" + pieces[2] + "\n";
  }
  check_is(read_bench_log(between, "log"), log);
  check_is(read_bench_log(before, "log"), log);
  check_is(read_bench_log(inside, "log"), log);
  check_is(read_bench_log(tagged, "log"), log);
  // The message eats the last count of wrong elements of the second placement, no more.
  CHECK(read_bench_log(behind, "log").rows.size() == log.sizes.size());
}

TEST_CASE("bench log: columns of in-place, of old versions, with a time or single iterations") {
  MadeLog log;
  log.in_place_factor = 2;
  BenchLogOptions in_place;
  in_place.in_place = true;
  const BenchTable table = read_bench_log(made_text(log), "log", in_place);
  CHECK(table.rows[0].time.count() * 1e6 ==
        Approx(2 * test::made_time_us(log, log.sizes[0])).margin(0.006));

  // Before 2.12: no root, the largest error in place of a count.
  const std::string old =
      "#       size         count    type   redop     time   algbw   busbw     error     time   "
      "algbw   busbw     error\n"
      "     1048576        262144   float     sum     89.3   11.75   20.56  1e-07     88.0   11.9  "
      " "
      "20.8  1e-07\n";
  const BenchTable first = read_bench_log(old, "old.txt", {8, {}, false});
  REQUIRE(first.rows.size() == 1);
  CHECK(first.rows[0].time.count() == Approx(89.3e-6));
  CHECK_FALSE(first.rows[0].wrong.has_value());

  const std::string stamped =
      "     1048576        262144   float     sum    -1     89.3   11.75   20.56      0     88.0   "
      "11.92   20.85    N/A 2025-05-02 10:11:12\n";
  CHECK(read_bench_log(stamped, "log", {8, {}, false}).rows.at(0).time.count() == Approx(89.3e-6));
  const std::string iterations =
      "#  size  count  type  redop  root  time  algbw  busbw  #wrong  i_min  i_max  i_p99  i_cv%  "
      "time  algbw  busbw  #wrong  i_min  i_max  i_p99  i_cv%\n"
      "  1048576  262144  float  sum  -1  89.3  11.75  20.56  0  80.1  99.2  99.1  3.25"
      "  88.0  11.92  20.85  0  80.0  99.0  99.0  3.10\n";
  const BenchTable each = read_bench_log(iterations, "log", {8, {}, true});
  CHECK(each.rows.at(0).time.count() == Approx(88e-6));
  CHECK(each.rows.at(0).wrong == 0);
  // A placement that was not measured says N/A; then the other is all there is.
  const std::string half =
      "     4194304       1048576     float     sum      -1      N/A     N/A     N/A    N/A    "
      "134.5 "
      "  31.18   54.57      0\n";
  CHECK(read_bench_log(half, "log", {8, {}, false}).rows.at(0).time.count() == Approx(134.5e-6));
}

TEST_CASE("bench log: a file that ends early has the rows that are whole") {
  const MadeLog log;
  const std::string text = made_text(log);
  const std::size_t last = text.find("    67108864");
  for (const std::size_t more : {20, 45, 60, 70}) {
    CAPTURE(more);
    const BenchTable table = read_bench_log(text.substr(0, last + more), "log");
    CHECK(table.rows.size() == log.sizes.size() - 1);
    REQUIRE(table.notes.size() == (more < 30 ? 0U : 1U));
    if (more >= 30) CHECK_THAT(table.notes[0], contains("cut off"));
  }
}

TEST_CASE("bench log: ranks come from the list, the person or busbw / algbw, and must agree") {
  MadeLog log;
  log.list_devices = false;
  log.gigabytes_per_second = 90;
  const BenchTable table = read_bench_log(made_text(log), "log");
  CHECK(table.ranks == 8);
  CHECK(table.ranks_per_node == 0);
  CHECK_THAT(table.notes.at(0), contains("busbw / algbw"));
  CHECK_THROWS_WITH(read_bench_log(made_text(log), "log", {4, {}, false}),
                    contains("not of 4 ranks"));
  log.ranks_per_node = 2;  // of which broadcasts have the ratio too
  CHECK_THROWS_WITH(read_bench_log(made_text(log), "log"), contains("--ranks"));
  log.list_devices = true;
  log.ranks_per_node = 1;
  CHECK_THROWS_WITH(read_bench_log(made_text(log), "log"), contains("MPI=1"));
}

TEST_CASE("bench log: groups of a split job are communicators of their own") {
  const MadeLog log;
  std::string text = made_text(log);
  // Sixteen ranks on two nodes as eight pairs: pair i has rank i of each node.
  std::string devices;
  for (int rank = 0; rank < 16; ++rank) {
    devices += fmt::format("#  Rank {:2} Group {:2} Pid {:6} on node-{} device {:2} [0x0f] GPU\n",
                           rank, rank % 8, 4000 + rank, rank / 8, rank % 8);
  }
  const std::size_t begin = text.find("#  Rank  0");
  const std::size_t end = text.find("#\n", begin);
  MadeLog pairs = log;
  pairs.ranks_per_node = 1;
  pairs.nodes = 2;
  pairs.device = "GPU";
  const std::string all = made_text(pairs);
  const std::string rows = all.substr(all.find("       65536"));
  const BenchTable table =
      read_bench_log(text.substr(0, begin) + devices + text.substr(end, 1) + "\n" + rows, "log");
  CHECK(table.ranks == 2);
  CHECK(table.nodes == 2);
  CHECK(table.ranks_per_node == 1);
}

TEST_CASE("bench log: tables of other collectives are refused by their name and the sign") {
  MadeLog log;
  log.gigabytes_per_second = 90;
  log.ranks_per_node = 4;
  const auto refused = [](const MadeLog& made, const std::string& name, const std::string& sign) {
    for (const Form& form : forms()) {
      CAPTURE(form.name, name);
      try {
        read_bench_log(changed(made_lines(made), {form.change}), "f.txt");
        FAIL("was taken for an all-reduce");
      } catch (const ConfigError& error) {
        CHECK_THAT(error.what(), contains("f.txt"));
        CHECK_THAT(error.what(), contains(name));
        CHECK_THAT(error.what(), contains(sign));
      }
    }
  };
  MadeLog other = log;
  other.root = 0;
  other.bus_factor = 1;
  refused(other, "reduce", "root 0, not -1");
  other.root = 3;
  other.redop = "none";
  refused(other, "broadcast", "root 3, not -1");
  other = log;
  other.bus_factor = 0.75;
  other.count_share = 4;
  refused(other, "reduce_scatter", "are not");
  other.redop = "none";
  refused(other, "all_gather", "are not");
  other.count_share = 1;
  refused(other, "all_gather", "redop none");
  other.redop = "sum";
  refused(other, "reduce_scatter", "busbw / algbw");
  other.bus_factor = 1;
  refused(other, "sendrecv", "busbw / algbw");
  other = log;
  other.test = "alltoall_perf";
  refused(other, "alltoall", "the log names");
}

TEST_CASE("bench log: runs that differ in ranks or operation are kept apart, equal ones together") {
  MadeLog log;
  MadeLog two_nodes = log;
  two_nodes.nodes = 2;
  two_nodes.latency_us = 200;
  MadeLog gather = log;
  gather.redop = "none";
  gather.count_share = 8;
  gather.bus_factor = 7.0 / 8;
  const std::string both = made_text(gather) + made_text(log) + made_text(two_nodes);
  CHECK_THROWS_WITH(read_bench_log(both, "log"), contains("2: 16 ranks on 2 nodes, float sum"));
  BenchLogOptions options;
  options.table = 2;
  const BenchTable second = read_bench_log(both, "log", options);
  check_is(second, two_nodes);
  CHECK_THAT(second.notes.back(), contains("all_gather"));
  options.table = 3;
  CHECK_THROWS_AS(read_bench_log(both, "log", options), Error);

  MadeLog half = log;
  half.type = "half";
  half.element = 2;
  options.table = 2;
  check_is(read_bench_log(made_text(log) + made_text(half), "log", options), half);

  MadeLog slow = log;
  slow.latency_us = 6000;
  const std::string thrice = made_text(slow) + made_text(log) + made_text(log);
  const BenchTable median = read_bench_log(thrice, "log");
  check_is(median, log);
  CHECK_THAT(median.notes.at(0), contains("3 runs"));
}

TEST_CASE("bench log: what gradsync bench writes is read back, text and JSON") {
  BenchTable table{"gradsync bench allreduce on gloo", 4, {}};
  for (Bytes bytes = 1024; bytes <= 8192; bytes *= 2) {
    BenchRow row;
    row.bytes = bytes;
    row.time = Seconds(1e-4 + static_cast<double>(bytes) / 1e9);
    row.count = row.bytes / 4;
    row.type = "float";
    row.wrong = 0;
    table.rows.push_back(row);
  }
  std::string text = bench_heading(table.program, table.ranks);
  for (const BenchRow& row : table.rows) text += bench_line(row, table.ranks);
  text += bench_footer(table);
  for (const std::string& log : {text, "0: " + text, to_json(table).dump()}) {
    const BenchTable back = read_bench_log(log, "log");
    CHECK(back.program == table.program);
    CHECK(back.ranks == 4);
    REQUIRE(back.rows.size() == table.rows.size());
    for (std::size_t i = 0; i < back.rows.size(); ++i) {
      CHECK(back.rows[i].bytes == table.rows[i].bytes);
      CHECK(back.rows[i].time.count() == Approx(table.rows[i].time.count()).epsilon(1e-3));
      CHECK(back.rows[i].wrong == 0);
    }
  }
}

TEST_CASE("bench log: what is wrong is named with its place") {
  CHECK_THROWS_WITH(read_bench_log("nothing here\n", "a.txt"), contains("a.txt"));
  CHECK_THROWS_WITH(read_bench_log("8 2 float sum -1 bad 0 0 0\n", "d.txt", {2, {}, false}),
                    contains("line 1"));
}

}  // namespace gradsync
