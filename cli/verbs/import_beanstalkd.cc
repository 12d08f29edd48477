#include "cli/verbs/import_beanstalkd.h"

#include <memory>
#include <utility>

#include "cli/beanstalkd_import.h"
#include "cli/human_time.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "protocol/client.h"
#include "protocol/json_writer.h"

namespace delayd::cli {
namespace {

// `put_back`: whether the source answered to the end, so that the jobs are as they were.
Status TooLarge(const BeanstalkdImport& import, bool put_back) {
  return ResourceExhausted(
      Jobs(import.counts().too_large) + " too large for the daemon's limits.payload: left there" +
          (put_back ? "" : ", perhaps buried") + ": " + import.TooLarge() +
          "; raise limits.payload and run it again, or let them be worked there",
      "payload_too_large");
}

Status NoRoom(const BeanstalkdImport& import) {
  return ResourceExhausted("no room for " + Jobs(import.counts().queue_full) + ", left there: " +
                               FirstOf(import.full()) + "; " + import.why_full().message() +
                               "; no job is lost, run it again for the rest",
                           "queue_full");
}

// Advice after an import that was broken off.
std::string HowToGoOn(const BeanstalkdImport::Counts& counts) {
  const std::string again = "; no job is lost, run it again for the rest";
  return counts.undeleted == 0 ? again
                               : again + "; if beanstalkd is started anew before that, " +
                                     Jobs(counts.undeleted) + " may come twice";
}

std::string StillThere(const BeanstalkdImport::Left& left) {
  return Jobs(left.all()) + " left there (" + std::to_string(left.ready) + " ready, " +
         std::to_string(left.delayed) + " delayed, " + std::to_string(left.buried) + " buried, " +
         std::to_string(left.reserved) + " reserved); run it again" +
         (left.reserved > 0 ? " when the workers there are done" : "");
}

StatusOr<ExitCode> Conclude(const Status& status,
                            const BeanstalkdImport& import,
                            Millis elapsed,
                            Context* context) {
  if (status.reason() == "usage") {
    return status;  // it never began
  }
  const BeanstalkdImport::Counts& counts = import.counts();
  std::string text = "imported " + Jobs(counts.imported) + " in " + RoughDuration(elapsed) + ", " +
                     Rate(counts.imported, elapsed);
  if (counts.existed > 0) {
    text += "; " + std::to_string(counts.existed) + " of them ";
    text += std::string(WasOrWere(counts.existed)) + " here already";
  }
  if (counts.taken > 0) {
    text += "; " + std::to_string(counts.taken) + " " + std::string(WasOrWere(counts.taken)) +
            " taken by a worker there meanwhile and will be worked on twice";
  }
  if (!import.paused().empty()) {
    text += "; paused here as there: " + FirstOf(import.paused());
  }
  if (context->globals.output != OutputFormat::kTable) {
    protocol::JsonObjectWriter writer;
    writer.Number("imported", counts.imported);
    writer.Number("existed", counts.existed);
    writer.Number("taken", counts.taken);
    writer.Number("too_large", counts.too_large);
    writer.Number("queue_full", counts.queue_full);
    if (status.ok()) {  // otherwise not everything was looked at
      writer.Number("left", counts.left.all());
    }
    writer.Raw("paused", protocol::JsonArray(import.paused(), protocol::JsonString));
    writer.Number("elapsed_ms", static_cast<uint64_t>(elapsed.count()));
    context->console.out() << writer.Take() << '\n';
  }
  context->console.Say(text);
  if (InterruptGuard::interrupted()) {
    return Unavailable("interrupted" + HowToGoOn(counts), "interrupted");
  }
  if (!status.ok()) {
    // The jobs have keys, so repeating is safe.
    return status.WithMessage(protocol::WithoutWarning(status)).Followed(HowToGoOn(counts));
  }
  const uint64_t told = counts.too_large + counts.queue_full;
  if (counts.left.all() > told) {
    return Status(StatusCode::kInternal, StillThere(counts.left), "part_done");
  }
  return told > 0 ? kExitFailed : kExitOk;
}

}  // namespace

StatusOr<ExitCode> ImportFromBeanstalkd(const std::string& address,
                                        Millis retry_for,
                                        Context* context) {
  DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<Api> api, context->OpenApi(kImportTimeout));
  const Millis timeout = context->globals.timeout.value_or(kImportTimeout);
  DELAYD_ASSIGN_OR_RETURN(const std::unique_ptr<beanstalk::Client> source,
                          beanstalk::Client::Connect(address, timeout));
  Progress progress(&context->console, &context->clock, "jobs", 0);
  const InterruptGuard guard;
  source->HurryWhen(InterruptGuard::fd());
  // Giving up is safe: the jobs have keys and are still at the source.
  api->GiveUpWhen(InterruptGuard::fd(), kTimeToAnswer);
  Patience patience(
      &context->clock, retry_for, InterruptGuard::Nap, [context, &progress](const Status& status) {
        progress.Clear();
        context->console.Warn(status);
      });
  BeanstalkdImport import(
      source.get(),
      api.get(),
      [&progress](const BeanstalkdImport::Counts& counts) {
        progress.Update(counts.imported, 0);
        return InterruptGuard::Check();
      },
      std::move(patience));
  const Status status = import.Run();
  progress.Clear();
  if (import.counts().too_large > 0) {
    context->console.Error(TooLarge(import, status.ok()));
  }
  if (import.counts().queue_full > 0) {
    context->console.Error(NoRoom(import));
  }
  return Conclude(status, import, progress.elapsed(), context);
}

}  // namespace delayd::cli
