#include "gradsync/testbed/scenario/scenario_document.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/testbed/scenario/scenario_codec.hpp"
#include "gradsync/testbed/scenario/scenario_hints.hpp"
#include "gradsync/testbed/scenario/scenario_table.hpp"

namespace gradsync::scenario_table {
namespace {

using Json = ScenarioDocument::Json;

/// nlohmann silently keeps the last of two equal keys. This parser callback follows the structure
/// and rejects the second one.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(const std::string& file) : file_(file) {}

  bool operator()(Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        start_item();
        levels_.push_back({.is_array = event == Event::array_start});
        break;
      case Event::object_end:
      case Event::array_end:
        levels_.pop_back();
        break;
      case Event::key:
        levels_.back().key = parsed.get<std::string>();
        if (!levels_.back().keys.insert(levels_.back().key).second) {
          throw ConfigError({file_, pointer(), "each key once", "this key for the second time",
                             "remove one of the two"});
        }
        break;
      case Event::value:
        start_item();
        break;
    }
    return true;
  }

 private:
  struct Level {
    bool is_array = false;
    std::set<std::string> keys = {};
    std::string key = {};
    std::size_t items = 0;
  };

  void start_item() {
    if (levels_.empty() || !levels_.back().is_array) return;
    levels_.back().key = std::to_string(levels_.back().items++);
  }

  std::string pointer() const {
    std::string text;
    for (const Level& level : levels_) text += pointer_token(level.key);
    return text;
  }

  std::string file_;
  std::vector<Level> levels_;
};

/// The part after the position in nlohmann's "[json.exception.parse_error.101] parse error at line
/// 3, column 5: syntax error while parsing value - unexpected '}'; expected ...".
std::string reason(const std::string& what) {
  std::string text = what;
  for (const char* end_of_position : {"column ", ": "}) {
    const std::size_t at = text.find(end_of_position);
    if (at == std::string::npos) return what;
    text = text.substr(at + std::string(end_of_position).size());
  }
  return text;
}

/// A hint for common syntax that JSON does not have, by the character at which the parser stopped.
std::string syntax_hint(char stopped_at, const std::string& what) {
  if (stopped_at == '/' || stopped_at == '#') return "a comment is a key that starts with \"//\"";
  if (stopped_at == '\'') return "a text stands in double quotes";
  const bool closed = stopped_at == '}' || stopped_at == ']';
  if (closed && what.find("expected end of input") == std::string::npos) {
    return "is there a comma too many in front of it?";
  }
  return "";
}

Json parse(const std::string& text, const std::string& file) {
  if (std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c); })) {
    throw ConfigError({file, "", "a JSON object", "an empty file", ""});
  }
  DuplicateKeys duplicates(file);
  try {
    return Json::parse(text, [&](int, Json::parse_event_t event, Json& parsed) {
      return duplicates(event, parsed);
    });
  } catch (const Json::parse_error& error) {
    // `byte` is 1-based and refers to the character at which the parser stopped.
    const std::size_t end = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    const auto begin = text.begin();
    const auto stop = begin + static_cast<std::ptrdiff_t>(end);
    const auto line = 1 + std::count(begin, stop, '\n');
    const std::size_t newline = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
    const std::size_t column = newline == std::string::npos ? end + 1 : end - newline;
    throw ConfigError({fmt::format("{}:{}:{}", file, line, column), "", "JSON",
                       fmt::format("a {}", reason(error.what())),
                       end < text.size() ? syntax_hint(text[end], error.what()) : ""});
  }
}

}  // namespace

std::string pointer_token(const std::string& key) {
  std::string token = "/";
  for (const char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

ScenarioDocument::ScenarioDocument(const std::string& text, std::string file,
                                   const std::string& base_dir,
                                   const std::vector<ScenarioOverride>& overrides)
    : json_(parse(text, file)), file_(std::move(file)) {
  if (!json_.is_object()) fail("", "a JSON object");
  include_files(base_dir);
  for (const ScenarioOverride& override_ : overrides) {
    apply(override_);
    include_files(base_dir);  // now, so that a later override can change the included values
  }
}

void ScenarioDocument::include_files(const std::string& base_dir) {
  namespace fs = std::filesystem;
  for (const Section& section : root().sections) {
    const std::string pointer = pointer_token(section.name);
    if (!section.accepts_file || !has(pointer) || !json_[section.name].is_string()) continue;
    std::string path;
    try {
      path = resolve_file(json_[section.name].get<std::string>(), base_dir);
    } catch (const Mistake& mistake) {
      fail(pointer, mistake.expected + ", or an object", mistake.hint);
    }
    std::ifstream stream(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const std::string name = fs::proximate(path).string();
    Json included = parse(text, name);
    if (!included.is_object())
      throw ConfigError({name, "", "a JSON object", shortened(included), ""});
    included.erase("$schema");
    // Paths in the included file are relative to it; make them relative to the document.
    const std::string folder = fs::path(path).parent_path().string();
    for (const Field& field : section.fields) {
      if (field.type != Codec<std::string>::type(existing_file())) continue;
      const auto value = included.find(field.name);
      if (value == included.end() || !value->is_string()) continue;
      *value = (fs::path(folder) / value->get<std::string>()).string();
    }
    json_[section.name] = std::move(included);
    origins_.push_back({pointer, name, /*is_file=*/true});
  }
}

void ScenarioDocument::apply(const ScenarioOverride& override_) {
  const std::string option = override_.option.empty()
                                 ? fmt::format("--set {}={}", override_.path, override_.value)
                                 : override_.option;
  Json* place = &json_;
  std::string pointer;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = override_.path.find('.', begin);
    const std::string key = override_.path.substr(begin, dot - begin);
    if (key.empty()) {
      throw ConfigError({option, "", "a path such as train.batch_size",
                         "\"" + override_.path + "\"", "write --set train.batch_size=16"});
    }
    if (!place->is_object()) {
      throw ConfigError(
          {option, pointer, "an object that has a key \"" + key + "\"", shortened(*place), ""});
    }
    pointer += pointer_token(key);
    place = &(*place)[key];
    if (dot == std::string::npos) break;
    if (place->is_null()) *place = Json::object();
    begin = dot + 1;
  }
  // Text need not be quoted on a command line: 5s is text, 16 and [1,2] are JSON.
  *place = try_parse_json(override_.value);
  if (place->is_discarded()) *place = override_.value;
  origins_.push_back({pointer, option});
}

const ScenarioDocument::Origin* ScenarioDocument::origin_of(const std::string& pointer) const {
  // The last override wins, as when they were applied.
  for (auto origin = origins_.rbegin(); origin != origins_.rend(); ++origin) {
    const bool inside =
        pointer.compare(0, origin->pointer.size(), origin->pointer) == 0 &&
        (pointer.size() == origin->pointer.size() || pointer[origin->pointer.size()] == '/');
    if (inside) return &*origin;
  }
  return nullptr;
}

bool ScenarioDocument::has(const std::string& pointer) const {
  return json_.contains(Json::json_pointer(pointer));
}

void ScenarioDocument::fail(const std::string& pointer, const std::string& expected,
                            const std::string& hint, const Json& by_default) const {
  const Origin* origin = origin_of(pointer);
  std::string found = "nothing";
  if (has(pointer)) {
    found = shortened(json_.at(Json::json_pointer(pointer)));
  } else if (!by_default.is_null()) {
    found = shortened(by_default) + " by default";
  }
  if (origin == nullptr) throw ConfigError({file_, pointer, expected, found, hint});
  const std::string inside = origin->is_file ? pointer.substr(origin->pointer.size()) : pointer;
  throw ConfigError({origin->name, inside, expected, found, hint});
}

std::string ScenarioDocument::mention(const std::string& pointer, const Json& value) const {
  const Origin* origin = origin_of(pointer);
  std::string text = fmt::format("{} is {}", pointer, shortened(value));
  if (!has(pointer)) {
    text += " by default";
  } else if (origin != nullptr) {
    text += (origin->is_file ? " in " : " by ") + origin->name;
  }
  return text;
}

}  // namespace gradsync::scenario_table
