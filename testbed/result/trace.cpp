#include "gradsync/testbed/result/trace.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/json_text.hpp"
#include "gradsync/core/version.hpp"

namespace gradsync {
namespace {

constexpr int kComputeThread = 1;
constexpr int kFirstCommunicationThread = 10;
/// About 40 MB of JSON, which Perfetto opens without problems.
constexpr std::int64_t kMaxEvents = 300'000;
/// Slices per step on the compute thread.
constexpr std::int64_t kEventsPerStep = 8;

using Nanoseconds = std::int64_t;

/// Whole nanoseconds: if starts and ends were rounded separately, slices could stick out of their
/// parents, and Perfetto would move them to another track.
Nanoseconds nanoseconds(Seconds seconds) {
  return std::llround(seconds.count() * 1e9);
}

std::string microseconds(Nanoseconds ns) {
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
}

std::string quoted(const std::string& text) {
  return dump_json(nlohmann::ordered_json(text));
}

/// Writes the event list as text. There are many similar events, so they are formatted directly.
class EventWriter {
 public:
  void metadata(int rank, int thread, const char* what, const std::string& value) {
    begin();
    fmt::format_to(out(), R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", rank,
                   thread, what, value);
  }

  void slice(int rank, int thread, const char* category, const std::string& name, Nanoseconds from,
             Nanoseconds to, const std::string& args) {
    begin();
    fmt::format_to(
        out(),
        R"({{"ph":"X","pid":{},"tid":{},"cat":"{}","name":{},"ts":{},"dur":{},"args":{{{}}}}})",
        rank, thread, category, quoted(name), microseconds(from),
        microseconds(std::max<Nanoseconds>(0, to - from)), args);
  }

  /// Draws an arrow between two slices: from the slice that contains `from` to the slice that
  /// starts at `to`.
  void arrow(int rank, int from_thread, Nanoseconds from, int to_thread, Nanoseconds to) {
    constexpr const char* kEvent =
        R"({{"ph":"{}","pid":{},"tid":{},"cat":"bucket","name":"launch","id":{},"ts":{}{}}})";
    ++arrows_;
    begin();
    fmt::format_to(out(), kEvent, 's', rank, from_thread, arrows_, microseconds(from), "");
    begin();
    fmt::format_to(out(), kEvent, 'f', rank, to_thread, arrows_, microseconds(to), R"(,"bp":"e")");
  }

  const std::string& text() const { return text_; }

 private:
  std::back_insert_iterator<std::string> out() { return std::back_inserter(text_); }
  void begin() { text_ += text_.empty() ? "\n" : ",\n"; }

  std::string text_;
  std::int64_t arrows_ = 0;
};

std::string number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "null";
}

void write_step(EventWriter& events, int rank, const StepRecord& step) {
  const auto phase = [&](const char* name, Seconds from, Seconds to) {
    if (to > from) {
      events.slice(rank, kComputeThread, "phase", name, nanoseconds(from), nanoseconds(to), "");
    }
  };
  events.slice(
      rank, kComputeThread, "step", fmt::format("step {}", step.step), nanoseconds(step.begin),
      nanoseconds(step.end),
      fmt::format(R"("epoch":{},"samples":{},"loss":{},"grad_norm":{},"parameter_hash":"{}")",
                  step.epoch, step.samples, number_or_null(step.loss),
                  number_or_null(step.grad_norm), step.parameter_hash));
  phase("data", step.begin, step.data_end);
  phase("forward", step.data_end, step.forward_end);
  phase("backward", step.forward_end, step.backward_compute_end);
  phase("wait for buckets", step.backward_compute_end, step.backward_end);
  phase("clip", step.backward_end, step.clip_end);
  phase("optimizer", step.clip_end, step.optimizer_end);
  phase("hash", step.optimizer_end, step.end);
}

/// The phase in which the rank ended, unless it ended after a step.
void write_unfinished_phase(EventWriter& events, const RankReport& report) {
  if (report.ended <= report.phase_since) return;
  events.slice(report.rank, kComputeThread, "phase", to_string(report.phase),
               nanoseconds(report.phase_since), nanoseconds(report.ended), R"("ended":false)");
}

void write_collective(EventWriter& events, const RankReport& report, const CollectiveRecord& record,
                      int thread, Nanoseconds from, Nanoseconds to) {
  std::string name = to_string(record.op);
  if (record.label.bucket >= 0) name += fmt::format(" bucket {}", record.label.bucket);
  std::string args = fmt::format(
      R"("seq":{},"step":{},"epoch":{},"bucket":{},"what":{},"elements":{},"dtype":"{}","bytes":{},"queued_us":{})",
      record.sequence, record.label.step, record.label.epoch, record.label.bucket,
      quoted(record.label.what), record.elements, to_string(record.dtype), record.bytes,
      microseconds(from - nanoseconds(record.issued)));
  if (record.state != CollectiveState::kCompleted) args += R"(,"ended":false)";
  events.slice(report.rank, thread, "collective", name, from, to, args);
  if (record.label.bucket >= 0) {
    events.arrow(report.rank, kComputeThread, nanoseconds(record.issued), thread, from);
  }
}

/// Writes the started collectives, each on the first free thread; returns the number of threads.
int write_collectives(EventWriter& events, const RankReport& report, std::int64_t first_step) {
  std::vector<const CollectiveRecord*> started;
  for (const CollectiveRecord* record : all_collectives(report)) {
    const bool kept = record->label.step < 0 ? first_step == 0 : record->label.step >= first_step;
    if (kept && record->started >= Seconds{0}) started.push_back(record);
  }
  std::stable_sort(started.begin(), started.end(),
                   [](const auto* a, const auto* b) { return a->started < b->started; });
  std::vector<Nanoseconds> busy_until;
  for (const CollectiveRecord* record : started) {
    const Nanoseconds from = nanoseconds(record->started);
    const bool ended = record->completed >= record->started;
    const Nanoseconds to = std::max(from, nanoseconds(ended ? record->completed : report.ended));
    auto thread = std::find_if(busy_until.begin(), busy_until.end(),
                               [&](Nanoseconds until) { return until <= from; });
    if (thread == busy_until.end()) thread = busy_until.insert(busy_until.end(), 0);
    *thread = to;
    write_collective(events, report, *record,
                     kFirstCommunicationThread + static_cast<int>(thread - busy_until.begin()),
                     from, to);
  }
  return static_cast<int>(busy_until.size());
}

/// The first step to draw, limited by the number of events; 0 if all fit.
std::int64_t first_step_to_draw(const std::vector<RankReport>& reports, std::int64_t detail_ranks) {
  std::int64_t events = 0;
  std::int64_t last_step = 0;
  for (const RankReport& report : reports) {
    if (report.rank >= detail_ranks) continue;
    const auto collectives = std::max(report.collectives.size(), report.flight.size());
    events += kEventsPerStep * static_cast<std::int64_t>(report.steps.size()) +
              3 * static_cast<std::int64_t>(collectives);
    if (!report.steps.empty()) last_step = std::max(last_step, report.steps.back().step + 1);
  }
  if (events <= kMaxEvents) return 0;
  const double kept = static_cast<double>(kMaxEvents) / static_cast<double>(events);
  return last_step - static_cast<std::int64_t>(kept * static_cast<double>(last_step));
}

void write_rank(EventWriter& events, const RankReport& report, std::int64_t first_step) {
  events.metadata(report.rank, 0, "process_name", fmt::format(R"("name":"rank {}")", report.rank));
  events.metadata(report.rank, 0, "process_sort_index",
                  fmt::format(R"("sort_index":{})", report.rank));
  events.metadata(report.rank, kComputeThread, "thread_name", R"("name":"compute")");
  for (const StepRecord& step : report.steps) {
    if (step.step >= first_step) write_step(events, report.rank, step);
  }
  if (report.state != RankState::kFinished) write_unfinished_phase(events, report);
  const int threads = write_collectives(events, report, first_step);
  for (int i = 0; i < threads; ++i) {
    events.metadata(report.rank, kFirstCommunicationThread + i, "thread_name",
                    R"("name":"communication")");
  }
}

}  // namespace

std::string chrome_trace(const Scenario& scenario, const std::vector<RankReport>& reports) {
  const std::int64_t detail_ranks = scenario.output.detail_ranks;
  const std::int64_t first_step = first_step_to_draw(reports, detail_ranks);
  EventWriter events;
  for (const RankReport& report : reports) {
    if (report.rank < detail_ranks) write_rank(events, report, first_step);
  }
  return fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\n\"otherData\":{{\"tool\":\"gradsync {}\",\"scenario\":{},"
      "\"backend\":{},\"world_size\":{},\"first_step\":{}}},\n\"traceEvents\":[{}\n]}}\n",
      version(), quoted(scenario.name), quoted(scenario.backend), scenario.ranks, first_step,
      events.text());
}

}  // namespace gradsync
