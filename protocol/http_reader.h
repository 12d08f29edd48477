// protocol/http_reader.h — parses one HTTP response from a connection's bytes, however they are
// split.
//
// What:    interim responses (1xx) before it are skipped.
// Private to the client.
// Errors:  kInternal "invalid_response" when the bytes are not HTTP.
// Threads: one owner.
// Cost:    Beast's parser, fed by hand; it stays out of this header.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "protocol/client.h"

namespace delayd::protocol {

class HttpReader {
 public:
  HttpReader();
  ~HttpReader();
  HttpReader(const HttpReader&) = delete;
  HttpReader& operator=(const HttpReader&) = delete;

  Status Feed(std::string_view bytes);
  // The peer has closed: a response without a length ends here, any other is cut off.
  Status FeedEnd();

  bool done() const;
  // Whether the connection may carry another request.
  bool keep_alive() const;
  HttpResponse Take();

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace delayd::protocol
