#include "base/last_words.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace delayd {

namespace {

LastWords& Words() {
  static LastWords words;
  return words;
}

void Say(std::string_view line) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

[[noreturn]] void EndByMistake(std::string_view cause) {
  Words().tell(Words().mistake, cause);
  std::abort();
}

[[noreturn]] void TellAndEnd() {
  if (std::current_exception() == nullptr) {
    EndByMistake("std::terminate");
  }
  try {
    throw;
  } catch (const std::bad_alloc& error) {
    Words().tell(Words().no_memory, error.what());
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) {
      EndByMistake(error.what());
    }
    Words().tell(Words().no_thread, error.what());
  } catch (const std::exception& error) {
    EndByMistake(error.what());
  } catch (...) {
    EndByMistake("of a type that says nothing");
  }
  std::_Exit(Words().exit_code);
}

[[noreturn]] void End() {
  // Reporting needs some memory itself, and other threads may run out of it at the same time.
  static std::atomic<bool> begun{false};
  if (begun.exchange(true)) {
    Say(Words().no_memory);
    Say("\n");
    std::_Exit(Words().exit_code);
  }
  TellAndEnd();
}

}  // namespace

void InstallLastWords(const LastWords& words) {
  Words() = words;
  std::set_terminate(End);
}

void TellOnStderr(std::string_view message, std::string_view cause) {
  Say(std::string(message) + ": " + std::string(cause) + "\n");
}

}  // namespace delayd
