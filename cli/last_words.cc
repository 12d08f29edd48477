#include "cli/last_words.h"

#include "base/last_words.h"
#include "cli/exit_code.h"

namespace delayd::cli {

void InstallLastWords() {
  delayd::InstallLastWords(
      {.no_thread = "delayctl: no thread could be made; raise the limit of processes (ulimit -u, "
                    "TasksMax= of a service) or that of memory (ulimit -v)",
       .no_memory =
           "delayctl: no memory is left; raise the limit of memory (ulimit -v, LimitAS= or "
           "MemoryMax= of a service), or do less at a time",
       .mistake = "delayctl: an error that nobody expects; please report it",
       .exit_code = kExitFailed,
       .tell = TellOnStderr});
}

}  // namespace delayd::cli
