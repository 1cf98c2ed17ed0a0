#include "file_process_group.hpp"

#include <chrono>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include <gradsync/comm/comm_error.hpp>
#include <gradsync/comm/reduce_functions.hpp>
#include <gradsync/comm/ring_plan.hpp>
#include <gradsync/comm/signature.hpp>

namespace fs = std::filesystem;
using namespace gradsync;

namespace {

constexpr auto kPollInterval = std::chrono::microseconds(100);

std::optional<std::string> read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

/// Whoever finds the file finds all of it: it gets its name when it is complete.
void write(const fs::path& file, const std::string& content) {
  const fs::path draft = file.string() + ".draft";
  std::ofstream(draft, std::ios::binary) << content;
  fs::rename(draft, file);
}

std::string bytes_of(const Tensor& tensor) {
  if (!tensor.defined() || tensor.nbytes() == 0) return {};
  return {reinterpret_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.nbytes())};
}

}  // namespace

/// A collective whose contribution has been written. The others' are read by who waits.
class FileWork final : public Work {
 public:
  FileWork(FileProcessGroup& group, CollectiveRecord record, Tensor output)
      : group_(group), record_(std::move(record)), output_(std::move(output)) {}

  void wait() override {
    if (error_) std::rethrow_exception(error_);
    if (done_) return;
    FlightRecorder& recorder = group_.flight_recorder();
    try {
      finish(group_.collect(record_));
    } catch (const CommError& error) {
      error_ = std::current_exception();
      recorder.fail(record_.group, record_.sequence, group_.clock().now(), error.cause());
      throw;
    }
    done_ = true;
    recorder.complete(record_.group, record_.sequence, group_.clock().now());
  }

  bool is_completed() const override { return done_ || error_ || group_.all_have_issued(record_); }

 private:
  void finish(std::vector<FileProcessGroup::Contribution> contributions) {
    if (record_.elements == 0) return;
    switch (record_.op) {
      case OpType::kAllreduce: {
        // Gloo's order of summation, so that results have its bits.
        std::vector<std::byte*> data;
        for (auto& contribution : contributions) data.push_back(contribution.bytes.data());
        const std::size_t element = element_size(record_.dtype);
        reduce_in_ring_order(RingPlan(record_.bytes, element, group_.size()), data,
                             reduce_function(record_.reduce_op, record_.dtype), element);
        return take(contributions.front().bytes, 0);
      }
      case OpType::kBroadcast:
        return take(contributions[static_cast<std::size_t>(record_.root)].bytes, 0);
      case OpType::kAllgather:
        for (std::size_t rank = 0; rank < contributions.size(); ++rank) {
          take(contributions[rank].bytes, rank * static_cast<std::size_t>(record_.bytes));
        }
        return;
      default:  // a barrier; ProcessGroup refuses the operations that this class does not have
        return;
    }
  }

  void take(const std::vector<std::byte>& bytes, std::size_t offset) {
    std::memcpy(output_.data() + offset, bytes.data(), bytes.size());
  }

  FileProcessGroup& group_;
  CollectiveRecord record_;
  Tensor output_;
  bool done_ = false;
  std::exception_ptr error_;
};

FileProcessGroup::FileProcessGroup(fs::path folder, int rank, int size, Clock& clock,
                                   Seconds timeout)
    : ProcessGroup(rank, size, kDefaultGroupName, clock, std::make_shared<FlightRecorder>()),
      folder_(std::move(folder)),
      timeout_(timeout) {}

FileProcessGroup::~FileProcessGroup() {
  if (has_shut_down_) return;
  try {
    publish_failure(ErrorCode::kRankDied, "rank " + std::to_string(rank()) + " is gone");
  } catch (const std::exception&) {
    // The others will time out.
  }
}

fs::path FileProcessGroup::file_of(const std::string& name, int rank) const {
  return folder_ / (name + "." + std::to_string(rank));
}

WorkPtr FileProcessGroup::issue(const CollectiveRecord& record, const Tensor& input,
                                const Tensor& output) {
  throw_if_failed(record);
  if (record.reduce_op == ReduceOp::kAverage) {
    throw Error(ErrorCode::kMisuse, "files: there is no average; divide the sum");
  }
  flight_recorder().start(record.group, record.sequence, clock().now());
  // A line of text, and the bytes: whoever reads them compares the text first.
  written_.push_back(file_of(std::to_string(record.sequence), rank()));
  write(written_.back(), signature(record) + '\n' + bytes_of(input));
  return std::make_shared<FileWork>(*this, record, output);
}

bool FileProcessGroup::all_have_issued(const CollectiveRecord& record) const {
  if (fs::exists(folder_ / "failed")) return true;
  for (int other = 0; other < size(); ++other) {
    if (!fs::exists(file_of(std::to_string(record.sequence), other))) return false;
  }
  return true;
}

std::vector<FileProcessGroup::Contribution> FileProcessGroup::collect(
    const CollectiveRecord& record) {
  std::vector<Contribution> contributions;
  const Seconds deadline = clock().now() + timeout_;
  for (int other = 0; other < size(); ++other) {
    std::optional<std::string> content;
    while (!(content = read(file_of(std::to_string(record.sequence), other)))) {
      throw_if_failed(record);
      if (clock().now() > deadline) {
        fail(record, ErrorCode::kTimeout,
             "timed out: rank " + std::to_string(other) + " did not come");
      }
      std::this_thread::sleep_for(kPollInterval);
    }
    const std::size_t end = content->find('\n');
    Contribution& contribution = contributions.emplace_back();
    contribution.signature = content->substr(0, end);
    const std::string& expected = contributions.front().signature;
    if (contribution.signature != expected) {
      fail(record, ErrorCode::kDesync,
           describe_mismatch(record.sequence, 0, expected, other, contribution.signature));
    }
    contribution.bytes.resize(content->size() - end - 1);
    std::memcpy(contribution.bytes.data(), content->data() + end + 1, contribution.bytes.size());
  }
  return contributions;
}

/// The first failure of the job counts. A code, a blank, and the cause.
void FileProcessGroup::publish_failure(ErrorCode code, const std::string& cause) const {
  // "failed" may be a link to this rank's own file, which must then not be written again.
  if (fs::exists(folder_ / "failed")) return;
  const fs::path own = file_of("failure", rank());
  std::ofstream(own) << static_cast<int>(code) << ' ' << cause;
  std::error_code exists_already;
  fs::create_hard_link(own, folder_ / "failed", exists_already);
}

void FileProcessGroup::throw_if_failed(const CollectiveRecord& record) const {
  const std::optional<std::string> failure = read(folder_ / "failed");
  if (!failure) return;
  const std::size_t blank = failure->find(' ');
  const auto code = static_cast<ErrorCode>(std::stoi(failure->substr(0, blank)));
  const bool is_shared = code == ErrorCode::kDesync || code == ErrorCode::kRankDied;
  throw CommError(is_shared ? code : ErrorCode::kPeerFailed, rank(), record,
                  failure->substr(blank + 1));
}

void FileProcessGroup::fail(const CollectiveRecord& record, ErrorCode code,
                            const std::string& cause) const {
  publish_failure(code, cause);
  throw CommError(code, rank(), record, cause);
}

void FileProcessGroup::shutdown() {
  CollectiveRecord end;
  end.op = OpType::kBarrier;
  end.sequence = -1;
  end.group = name();
  end.label.phase = Phase::kShutdown;
  end.label.what = "end of the job";
  write(file_of("-1", rank()), signature(end) + '\n');
  collect(end);
  has_shut_down_ = true;
  // All ranks have all they need: only the files of the end are still read.
  for (const fs::path& file : written_) fs::remove(file);
}

WorkPtr FileProcessGroup::do_allreduce(Tensor tensor, ReduceOp, const CollectiveRecord& record) {
  return issue(record, tensor, tensor);
}
WorkPtr FileProcessGroup::do_broadcast(Tensor tensor, int root, const CollectiveRecord& record) {
  return issue(record, rank() == root ? tensor : Tensor(), tensor);
}
WorkPtr FileProcessGroup::do_allgather(Tensor output, Tensor input,
                                       const CollectiveRecord& record) {
  return issue(record, input, output);
}
WorkPtr FileProcessGroup::do_barrier(const CollectiveRecord& record) {
  return issue(record, {}, {});
}
