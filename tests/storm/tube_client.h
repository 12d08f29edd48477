// tests/storm/tube_client.h — a client of a storm that speaks beanstalk (tests/storm/client.h), on
// the same queues as those that speak HTTP.
//
// A reservation has no token on the wire: here it gets a name of its own, under which the checker
// finds it. A delete is written down as a cancel, since a job whose reservation ran out may be
// deleted still.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/job.h"
#include "tests/storm/client.h"
#include "tests/support/beanstalk_client.h"

namespace delayd::storm {

class TubeClient final : public Client {
 public:
  // `options.server`: the path of the Unix socket.
  using Client::Client;

 private:
  // A new connection, to a daemon that answers: one that is away is waited for.
  void Connect() override;
  void DrawTimes(JobSpec* spec) override;
  void Enqueue(const std::vector<JobSpec>& specs) override;
  void Lease() override;
  void EndOne() override;
  void DoSomething() override;
  void EnqueueNew();
  // Sends them all, then reads what they are answered one after the other.
  void PutAll(const std::vector<std::vector<JobSpec>>& puts);
  void NotePut(uint64_t request, const std::vector<JobSpec>& specs, std::string_view reply);
  // Of one job, or of a batch.
  std::string PutCommand(const std::vector<JobSpec>& specs);
  void NoteReserved(std::string_view reply, std::vector<std::string>* entries);
  // On the reservation: release, bury or touch.
  void Change(const std::string& verb, const Held& held);
  void UseOldReservation();
  void Delete(const std::vector<JobId>& ids);
  void DeleteMine();
  void DeleteByKey(const Mine& mine);
  void Kick();
  void Peek();
  void Lose(const std::vector<uint64_t>& requests);

  // The last of so many. None: the daemon is gone, or its answer says that it does not know.
  std::optional<std::string> ReadReply(int of);
  // Sends, and reads as many replies; the last one is returned. Without one nobody knows what
  // became of `requests`, and the connection is a new one.
  std::optional<std::string> Exchange(const std::vector<uint64_t>& requests,
                                      const std::string& commands,
                                      int replies = 1);
  // Writes down how it ended; `refusal`: the reply that means no, and what the checker calls it.
  void NoteEnd(uint64_t request,
               std::string_view reply,
               std::string_view refusal,
               std::string_view code);

  std::optional<test::BeanstalkClient> connection_;
  uint64_t next_reservation_ = 1;
  std::vector<Held> forgotten_;  // which the connection may have reserved still
};

}  // namespace delayd::storm
