// cli/curl_library.h — libcurl, loaded only when a worker is to call a webhook.
//
// What:    if linked, libcurl would bring 27 libraries into every start of delayctl, which took
//          longer than all else that it does (docs/decisions/0104-curl-when-it-is-wanted.md). The
//          functions have curl's own types and names, without "curl_".
// Errors:  kInternal when it cannot be loaded, with what to install.
// Threads: LoadCurl may be called from any thread; it loads once.
#pragma once

#include "base/status.h"

#include <curl/curl.h>

namespace delayd::cli {

struct CurlLibrary {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_free) free;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_header) easy_header;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_multi_add_handle) multi_add_handle;
  decltype(&::curl_multi_remove_handle) multi_remove_handle;
  decltype(&::curl_multi_perform) multi_perform;
  decltype(&::curl_multi_poll) multi_poll;
  decltype(&::curl_multi_info_read) multi_info_read;
  decltype(&::curl_multi_strerror) multi_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
  decltype(&::curl_url) url;
  decltype(&::curl_url_cleanup) url_cleanup;
  decltype(&::curl_url_get) url_get;
  decltype(&::curl_url_set) url_set;
  decltype(&::curl_url_strerror) url_strerror;
};

// Opens the library of that file name, which then stays loaded.
StatusOr<CurlLibrary> OpenCurl(const char* name);

// Loads and initializes the system's libcurl.
Status LoadCurl();

// Only after LoadCurl has returned OK.
const CurlLibrary& Curl();

}  // namespace delayd::cli
