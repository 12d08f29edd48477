// cli/webhook_handler.h — handles a job by POSTing its payload to a URL, signed.
//
// What:    the answer decides. 2xx acks. 400, 405, 410, 411, 413, 414, 415, 422, 431, 451 and 501
//          mean that this job will never be accepted: it is buried. Anything else, including no
//          answer and a redirect (none is followed), is a failed attempt; the Retry-After of a 429
//          or 503 sets its delay. An answer that breaks off counts by its status, except that a 2xx
//          is then a failed attempt. The URL is the worker's, never the job's. Each connection's
//          address is checked when it is opened, after the name was resolved, so that no name can
//          point inside later. A call refused by this check costs the job no attempt; nor does one
//          whose receiver's certificate is not trusted. Each attempt sends its request once, even
//          if a kept-alive connection breaks. No proxy, no cookies, no environment.
// Units:   base/time.h.
// Errors:  CheckWebhookUrl names what is wrong with a URL, or why no webhook can be called here.
// Threads: as cli/job_handler.h. Connections are kept open between the jobs of one slot.
// Source:  Standard Webhooks for the headers webhook-id, -timestamp and -signature.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "cli/job_handler.h"
#include "cli/public_address.h"

namespace delayd::cli {

struct WebhookOptions {
  std::string url;
  std::vector<std::string> keys;  // none: not signed
  std::string content_type = "application/json";
  std::string ca_file;  // empty: the system's store
  bool allow_private = false;
  // Not used with allow_private. Replaceable because tests have no public addresses.
  std::function<bool(const sockaddr*)> may_call = IsPublicAddress;
};

// Checks for an http or https URL with a host and without a user or password. Unless
// `allow_private`, the host must not be localhost or an address that would be refused. Call this
// before making a handler.
Status CheckWebhookUrl(const std::string& url, bool allow_private);

MakeJobHandler WebhookHandler(WebhookOptions options);

}  // namespace delayd::cli
