// protocol/http_reader.h — one HTTP response out of the bytes of a connection, however they are
// cut.
//
// What:    interim responses before it (1xx) are passed over.
// Private to the client.
// Errors:  kInternal "invalid_response" when the bytes are no HTTP.
// Threads: one owner.
// Cost:    Beast's parser fed by hand; it stays out of this header.
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
  // The peer has closed: an answer without a length ends here, any other is cut off.
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
