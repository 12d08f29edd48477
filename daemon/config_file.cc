// The YAML side of the configuration. yaml-cpp reports the position of a node, but silently accepts
// duplicate and unknown keys; the walk below refuses them.
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/job.h"
#include "base/utf8.h"
#include "daemon/config.h"
#include "protocol/nearest.h"

namespace delayd {

namespace {

// Notes where a document begins and ignores its contents. YAML::LoadAll would build all documents,
// and for a text such as ",a" it never ends: the parser does not get past the comma and reports
// empty documents for ever.
class DocumentStart final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& where) override { mark = where; }

  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}

  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}

  void OnScalar(const YAML::Mark&,
                const std::string&,
                YAML::anchor_t,
                const std::string&) override {}

  void OnSequenceStart(const YAML::Mark&,
                       const std::string&,
                       YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}

  void OnSequenceEnd() override {}

  void OnMapStart(const YAML::Mark&,
                  const std::string&,
                  YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}

  void OnMapEnd() override {}

  YAML::Mark mark;
};

// The position of the first bytes that are not UTF-8; none: there are none. yaml-cpp would replace
// them with U+FFFD, and a path would become a different one.
std::optional<YAML::Mark> FindNoUtf8(std::string_view yaml) {
  YAML::Mark mark;
  while (!yaml.empty()) {
    const size_t length = Utf8Length(yaml);
    if (length == 0) {
      return mark;
    }
    mark.column = yaml[0] == '\n' ? 0 : mark.column + 1;
    mark.line += yaml[0] == '\n' ? 1 : 0;
    yaml.remove_prefix(length);
  }
  return std::nullopt;
}

bool HasTabIndent(const std::string& yaml) {
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    const size_t text = line.find_first_not_of(" \t");
    if (text != std::string::npos && line.find('\t') < text) {
      return true;
    }
  }
  return false;
}

}  // namespace

class ConfigFileWalk {
 public:
  ConfigFileWalk(const std::string& file, ConfigReader* reader) : file_(file), reader_(reader) {
    for (const ConfigKey& key : ConfigKeys()) {
      names_.push_back(key.name);
      for (size_t dot = key.name.find('.'); dot != std::string_view::npos;
           dot = key.name.find('.', dot + 1)) {
        sections_.insert(key.name.substr(0, dot));
      }
    }
    names_.insert(names_.end(), sections_.begin(), sections_.end());
    names_.push_back("queues");
  }

  void Document(const std::string& yaml) {
    if (const std::optional<YAML::Mark> where = FindNoUtf8(yaml)) {
      Fail(*where, "this is no UTF-8; save the file as UTF-8");
      return;
    }
    try {
      if (!IsOneDocument(yaml)) {
        return;
      }
      const YAML::Node document = YAML::Load(yaml);
      if (!document.IsNull()) {
        Section(document, "");
      }
    } catch (const YAML::Exception& error) {
      Fail(error.mark,
           "this is no YAML: " + error.msg +
               (HasTabIndent(yaml) ? "; a line begins with a tab, indent with spaces" : ""));
    }
  }

 private:
  bool IsOneDocument(const std::string& yaml) {
    std::istringstream stream(yaml);
    YAML::Parser parser(stream);
    DocumentStart first;
    DocumentStart second;
    if (!parser.HandleNextDocument(first) || !parser.HandleNextDocument(second)) {
      return true;
    }
    Fail(second.mark,
         second.mark.pos == first.mark.pos ? "expected 'key: value' lines"
                                           : "a second document begins; put all settings into one");
    return false;
  }

  void Section(const YAML::Node& node, const std::string& prefix) {
    if (!node.IsMap()) {
      Fail(node.Mark(),
           prefix.empty() ? "expected 'key: value' lines"
                          : prefix + ": expected a section with keys of its own, found " +
                                (node.IsScalar() ? "'" + node.Scalar() + "'" : "a list"));
      return;
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        Fail(entry.first.Mark(), "expected a plain key");
        continue;
      }
      const std::string name =
          prefix.empty() ? entry.first.Scalar() : prefix + "." + entry.first.Scalar();
      if (!seen.insert(name).second) {
        Fail(entry.first.Mark(), "'" + name + "' is set a second time; remove one of the two");
        continue;
      }
      Entry(name, entry.first, entry.second);
    }
  }

  // queues: { NAME: { lease: ..., backoff: { initial: ... } } }
  void Queues(const YAML::Node& node) {
    if (!node.IsMap()) {
      Fail(node.Mark(), "queues: expected the names of queues, each with settings of its own");
      return;
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string queue = entry.first.IsScalar() ? entry.first.Scalar() : std::string();
      if (const Status status = ValidateQueueName(queue); !status.ok()) {
        Fail(entry.first.Mark(), "queues: " + status.message());
      } else if (!seen.insert(queue).second) {
        Fail(entry.first.Mark(),
             "queue '" + queue + "' is set a second time; remove one of the two");
      } else if (!entry.second.IsNull()) {
        QueueSection(queue, entry.second, "");
      }
    }
  }

  void QueueSection(const std::string& queue, const YAML::Node& node, const std::string& prefix) {
    const std::string place = "queues." + queue + (prefix.empty() ? "" : "." + prefix);
    if (!node.IsMap()) {
      Fail(node.Mark(), place + ": expected settings of its own");
      return;
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string last = entry.first.IsScalar() ? entry.first.Scalar() : std::string();
      const std::string name = prefix.empty() ? last : prefix + "." + last;
      const QueueKey* known = FindQueueKey(name);
      if (!seen.insert(name).second) {
        Fail(entry.first.Mark(), "'" + name + "' is set a second time; remove one of the two");
      } else if (name == "backoff" && !entry.second.IsNull()) {
        QueueSection(queue, entry.second, name);
      } else if (known == nullptr) {
        std::vector<std::string_view> names;
        for (const QueueKey& key : QueueKeys()) {
          names.push_back(key.name());
        }
        Fail(entry.first.Mark(),
             place + ": unknown key " + protocol::Quoted(name) + protocol::DidYouMean(name, names));
      } else if (!entry.second.IsScalar()) {
        Fail(entry.first.Mark(),
             place + ": " + name + ": expected one value (" + std::string(known->kind) + ")");
      } else {
        reader_->SetOfQueue(queue, *known, entry.second.Scalar(), At(entry.second.Mark()));
      }
    }
  }

  void Entry(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    if (name == "queues") {
      if (!value.IsNull()) {
        Queues(value);
      }
      return;
    }
    if (sections_.contains(name)) {
      if (!value.IsNull()) {
        Section(value, name);
      }
      return;
    }
    const ConfigKey* known = FindConfigKey(name);
    if (known == nullptr) {
      // Do not suggest the section that contains the key.
      const bool own = name.starts_with(std::string(protocol::Nearest(name, names_)) + '.');
      const std::string hint = own ? "" : protocol::DidYouMean(name, names_);
      Fail(key.Mark(),
           "unknown key " + protocol::Quoted(name) +
               (hint.empty() ? "; 'delayd --help' lists the known ones" : hint));
      return;
    }
    if (!value.IsScalar()) {
      // A missing value has no position of its own, so the error gives that of its key.
      const std::string kind =
          known->kind == "LIST" ? R"(such as "alice, @ops")" : std::string(known->kind);
      Fail(value.IsNull() ? key.Mark() : value.Mark(),
           name + ": expected one value (" + kind + "), found " +
               (value.IsNull() ? "nothing" : (value.IsMap() ? "a section" : "a list")));
      return;
    }
    reader_->Set(*known, value.Scalar(), At(value.Mark()));
  }

  std::string At(const YAML::Mark& mark) const {
    if (mark.is_null()) {
      return file_;
    }
    return file_ + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
  }

  void Fail(const YAML::Mark& mark, std::string_view message) { reader_->Fail(At(mark), message); }

  const std::string& file_;
  ConfigReader* reader_;
  std::set<std::string_view> sections_;
  std::vector<std::string_view> names_;
};

void ConfigReader::ReadFile(const std::string& name, const std::string& yaml) {
  ConfigFileWalk(name, this).Document(yaml);
}

}  // namespace delayd
