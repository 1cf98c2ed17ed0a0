#include "gradsync/models/profile.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::json;

/// A value of the profile with its location, for errors.
class Field {
 public:
  Field(const Json& value, const std::string& file, std::string pointer)
      : value_(value), file_(file), pointer_(std::move(pointer)) {}

  [[noreturn]] void fail(std::string expected, std::string hint = "") const {
    std::string found = dump_json(value_);
    if (found.size() > 60) found = found.substr(0, 57) + "...";
    throw ConfigError({.file = file_,
                       .pointer = pointer_,
                       .expected = std::move(expected),
                       .found = std::move(found),
                       .hint = std::move(hint)});
  }

  /// Checks that this is an object with exactly these keys; the `optional` ones may be missing.
  void require_keys(std::initializer_list<std::string_view> required,
                    std::initializer_list<std::string_view> optional = {}) const {
    if (!value_.is_object()) fail("an object");
    for (const std::string_view key : required) {
      if (!value_.contains(key)) fail("an object with the key \"" + std::string(key) + "\"");
    }
    for (const auto& [key, ignored] : value_.items()) {
      const auto is_key = [&key = key](std::string_view known) { return known == key; };
      if (std::ranges::none_of(required, is_key) && std::ranges::none_of(optional, is_key)) {
        std::string known;
        for (const auto& keys : {required, optional}) {
          for (const std::string_view k : keys) {
            known += (known.empty() ? "" : ", ") + std::string(k);
          }
        }
        (*this)[key].fail("no key \"" + key + "\"", "the keys here are " + known);
      }
    }
  }

  Field operator[](const std::string& key) const {
    return {value_.at(key), file_, pointer_ + "/" + key};
  }
  Field operator[](std::size_t index) const {
    return {value_.at(index), file_, pointer_ + "/" + std::to_string(index)};
  }
  bool has(const std::string& key) const { return value_.contains(key); }

  std::size_t require_list(const char* of) const {
    if (!value_.is_array() || value_.empty()) fail(std::string("a list of ") + of);
    return value_.size();
  }
  std::string text() const {
    if (!value_.is_string() || value_.get_ref<const std::string&>().empty()) fail("a text");
    return value_.get<std::string>();
  }
  Seconds duration() const {
    if (!value_.is_string()) fail("a duration such as \"38.5ms\"");
    try {
      return parse_duration(value_.get_ref<const std::string&>());
    } catch (const std::invalid_argument&) {
      fail("a duration such as \"38.5ms\"");
    }
  }
  DType dtype(bool or_int64) const {
    try {
      const DType result = parse_dtype(text());
      if (is_floating_point(result) || (or_int64 && result == DType::kInt64)) return result;
    } catch (const std::invalid_argument&) {
    }
    fail(std::string("a floating-point type: float32, float64, float16 or bfloat16") +
         (or_int64 ? "; or int64" : ""));
  }
  Shape shape() const {
    if (!value_.is_array()) fail("a shape such as [1024, 768]");
    Shape result;
    for (const Json& size : value_) {
      if (!size.is_number_integer() || size.get<std::int64_t>() < 0) {
        fail("a shape such as [1024, 768]");
      }
      result.push_back(size.get<std::int64_t>());
    }
    return result;
  }
  void require_one_of(std::initializer_list<std::string_view> choices) const {
    if (std::ranges::find(choices, text()) != choices.end()) return;
    std::string names;
    for (const std::string_view choice : choices) {
      names += (names.empty() ? "\"" : ", \"") + std::string(choice) + "\"";
    }
    fail("one of " + names);
  }

 private:
  const Json& value_;
  const std::string& file_;
  std::string pointer_;
};

ProfileParameter read_parameter(const Field& field) {
  field.require_keys({"name", "shape", "ready"}, {"dtype"});
  ProfileParameter parameter;
  parameter.name = field["name"].text();
  parameter.shape = field["shape"].shape();
  if (field.has("dtype")) parameter.dtype = field["dtype"].dtype(/*or_int64=*/false);
  parameter.ready = field["ready"].duration();
  return parameter;
}

ProfileBuffer read_buffer(const Field& field) {
  field.require_keys({"name", "shape"}, {"dtype"});
  ProfileBuffer buffer;
  buffer.name = field["name"].text();
  buffer.shape = field["shape"].shape();
  if (field.has("dtype")) buffer.dtype = field["dtype"].dtype(/*or_int64=*/true);
  return buffer;
}

}  // namespace

std::vector<std::size_t> ModelProfile::ready_order() const {
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [this](std::size_t i) { return parameters[i].ready; });
  return order;
}

std::int64_t ModelProfile::parameter_count() const {
  std::int64_t count = 0;
  for (const ProfileParameter& parameter : parameters) count += numel_of(parameter.shape);
  return count;
}

ModelProfile parse_profile(const std::string& text, const std::string& name) {
  Json json;
  try {
    json = parse_json(text);
  } catch (const Json::parse_error& error) {
    throw ConfigError({.file = name,
                       .pointer = "",
                       .expected = "a model profile in JSON",
                       .found = "text that is not JSON",
                       .hint = error.what()});
  }
  const Field root(json, name, "");
  root.require_keys({"name", "source", "confidence", "forward", "optimizer", "parameters"},
                    {"buffers"});
  root["confidence"].require_one_of({"measured", "scaled", "synthetic"});

  ModelProfile profile;
  profile.name = root["name"].text();
  profile.source = root["source"].text();
  profile.confidence = root["confidence"].text();
  profile.forward_time = root["forward"].duration();
  profile.optimizer_time = root["optimizer"].duration();
  const Field parameters = root["parameters"];
  const std::size_t count = parameters.require_list("parameters");
  for (std::size_t i = 0; i < count; ++i) {
    profile.parameters.push_back(read_parameter(parameters[i]));
  }
  if (root.has("buffers")) {
    const Field buffers = root["buffers"];
    const std::size_t buffer_count = buffers.require_list("buffers");
    for (std::size_t i = 0; i < buffer_count; ++i) {
      profile.buffers.push_back(read_buffer(buffers[i]));
    }
  }
  return profile;
}

ModelProfile load_profile(const std::string& file) {
  std::ifstream stream(file);
  std::string text;
  if (stream) text.assign(std::istreambuf_iterator<char>(stream), {});
  if (!stream || stream.bad()) {
    throw ConfigError({.file = file,
                       .pointer = "",
                       .expected = "a model profile that can be read",
                       .found = std::strerror(errno),
                       .hint = ""});
  }
  return parse_profile(text, file);
}

}  // namespace gradsync
