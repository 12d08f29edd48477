#include "cli/curl_library.h"

#include <dlfcn.h>

#include <string>

#include "base/check.h"

namespace delayd::cli {
namespace {

// The name of its ABI, the same for every TLS library (OpenSSL, GnuTLS) and on all distributions.
constexpr const char* kCurl = "libcurl.so.4";

Status CannotLoad() {
  const char* why = dlerror();
  return Internal(std::string("libcurl, which calls webhooks, cannot be loaded: ") +
                  (why != nullptr ? why : "unknown error") +
                  "; install it (the package libcurl4, or libcurl4t64 on newer systems)");
}

// Finds the functions in one library.
class Functions {
 public:
  explicit Functions(void* library) : library_(library) {}

  template <typename Function>
  void Find(const char* name, Function* function) {
    // POSIX guarantees that a function's address survives this cast.
    *function = reinterpret_cast<Function>(dlsym(library_, name));
    if (*function == nullptr && status_.ok()) {
      status_ = CannotLoad();
    }
  }

  const Status& status() const { return status_; }

 private:
  void* library_;
  Status status_;
};

const StatusOr<CurlLibrary>& Loaded() {
  static const StatusOr<CurlLibrary> loaded = [] {
    StatusOr<CurlLibrary> library = OpenCurl(kCurl);
    if (library.ok()) {
      DELAYD_CHECK(library->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    }
    return library;
  }();
  return loaded;
}

}  // namespace

StatusOr<CurlLibrary> OpenCurl(const char* name) {
  void* opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    return CannotLoad();
  }
  CurlLibrary library{};
  Functions functions(opened);
  functions.Find("curl_global_init", &library.global_init);
  functions.Find("curl_free", &library.free);
  functions.Find("curl_easy_init", &library.easy_init);
  functions.Find("curl_easy_cleanup", &library.easy_cleanup);
  functions.Find("curl_easy_setopt", &library.easy_setopt);
  functions.Find("curl_easy_getinfo", &library.easy_getinfo);
  functions.Find("curl_easy_header", &library.easy_header);
  functions.Find("curl_easy_strerror", &library.easy_strerror);
  functions.Find("curl_multi_init", &library.multi_init);
  functions.Find("curl_multi_cleanup", &library.multi_cleanup);
  functions.Find("curl_multi_add_handle", &library.multi_add_handle);
  functions.Find("curl_multi_remove_handle", &library.multi_remove_handle);
  functions.Find("curl_multi_perform", &library.multi_perform);
  functions.Find("curl_multi_poll", &library.multi_poll);
  functions.Find("curl_multi_info_read", &library.multi_info_read);
  functions.Find("curl_multi_strerror", &library.multi_strerror);
  functions.Find("curl_slist_append", &library.slist_append);
  functions.Find("curl_slist_free_all", &library.slist_free_all);
  functions.Find("curl_url", &library.url);
  functions.Find("curl_url_cleanup", &library.url_cleanup);
  functions.Find("curl_url_get", &library.url_get);
  functions.Find("curl_url_set", &library.url_set);
  functions.Find("curl_url_strerror", &library.url_strerror);
  DELAYD_RETURN_IF_ERROR(functions.status());
  return library;
}

Status LoadCurl() {
  return Loaded().status();
}

const CurlLibrary& Curl() {
  DELAYD_CHECK(Loaded().ok());
  return *Loaded();
}

}  // namespace delayd::cli
