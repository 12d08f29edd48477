#include "storage/manifest_guard.h"

namespace delayd::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class ManifestGuard final : public rocksdb::FileSystemWrapper {
 public:
  ManifestGuard(const std::shared_ptr<rocksdb::FileSystem>& base, const std::string& directory)
      : FileSystemWrapper(base),
        manifests_(directory + "/MANIFEST-"),
        current_(directory + "/CURRENT") {}

  const char* Name() const override { return "ManifestGuard"; }

  IOStatus DeleteFile(const std::string& path,
                      const IOOptions& options,
                      IODebugContext* debug) override {
    if (path.starts_with(manifests_)) {
      std::string named;
      IOStatus status = rocksdb::ReadFileToString(target(), current_, &named);
      if (!status.ok()) {
        return status;
      }
      if (named == path.substr(path.find_last_of('/') + 1) + "\n") {
        return IOStatus::IOError(path, "stays: CURRENT names it");
      }
    }
    return target()->DeleteFile(path, options, debug);
  }

 private:
  const std::string manifests_;
  const std::string current_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> NewManifestGuard(
    const std::shared_ptr<rocksdb::FileSystem>& base, const std::string& directory) {
  return std::make_shared<ManifestGuard>(base, directory);
}

}  // namespace delayd::storage
