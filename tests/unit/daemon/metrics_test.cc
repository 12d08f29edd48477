#include "daemon/metrics.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/http/router.h"
#include "tests/support/plain_report.h"

namespace delayd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::array<uint64_t, 2> kBounds = {5, 100};

TEST(MetricsTest, HistogramsAreCumulativeAndInBaseUnits) {
  ServiceFigures figures;
  figures.engine.lateness_ms = Histogram(kBounds);
  for (const uint64_t ms : {1U, 50U, 5000U}) {
    figures.engine.lateness_ms.Observe(ms);
  }
  const std::string text = MetricsText(figures);
  EXPECT_THAT(text, HasSubstr("delayd_job_lateness_seconds_bucket{le=\"0.005\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("delayd_job_lateness_seconds_bucket{le=\"0.1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("delayd_job_lateness_seconds_bucket{le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("delayd_job_lateness_seconds_count 3\n"));
  EXPECT_THAT(text, HasSubstr("delayd_job_lateness_seconds_sum 5.051\n"));
}

TEST(MetricsTest, BoundsOfMicrosecondsAreTheRoundNumbersThatQueriesName) {
  constexpr std::array<uint64_t, 3> kMicros = {50, 100, 100'000};
  ServiceFigures figures;
  figures.server.commit_us = Histogram(kMicros);
  const std::string text = MetricsText(figures);
  for (const char* bound : {"5e-05", "0.0001", "0.1"}) {
    EXPECT_THAT(
        text,
        HasSubstr("delayd_commit_duration_seconds_bucket{le=\"" + std::string(bound) + "\"} 0\n"));
  }
}

TEST(MetricsTest, KicksAreCountedAsTheOtherChangesOfClientsAre) {
  ServiceFigures figures;
  figures.engine.totals.rescheduled = 3;
  figures.engine.totals.kicked = 7;
  const std::string text = MetricsText(figures);
  EXPECT_THAT(text, HasSubstr("delayd_jobs_rescheduled_total 3\n"));
  EXPECT_THAT(text, HasSubstr("delayd_jobs_kicked_total 7\n"));
}

TEST(MetricsTest, WhatWaitsIsShown) {
  ServiceFigures figures;
  figures.engine.totals.waiting = 4;
  figures.server.commit_running = Millis(2500);
  const std::string text = MetricsText(figures);
  EXPECT_THAT(text, HasSubstr("delayd_lease_requests_waiting 4\n"));
  EXPECT_THAT(text, HasSubstr("delayd_commit_running_seconds 2.5\n"));
}

TEST(MetricsTest, ProcessorsThatAreNotKeptAwakeHaveNoFigure) {
  ServiceFigures figures;
  EXPECT_THAT(MetricsText(figures), Not(HasSubstr("delayd_processors_awake")));
  figures.server.processors_awake = Millis(1500);
  EXPECT_THAT(MetricsText(figures), HasSubstr("delayd_processors_awake_seconds_total 1.5\n"));
}

TEST(MetricsTest, QueuesThatAreNotNamedAreSummedUp) {
  ServiceFigures figures;
  figures.engine.queues = {{.name = "orders", .scheduled = 7, .paused = true, .handed_out = 9}};
  figures.engine.other = {.name = "other", .dead = 3};
  const std::string text = MetricsText(figures);
  EXPECT_THAT(text, HasSubstr("delayd_jobs{queue=\"orders\",state=\"scheduled\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("delayd_jobs{queue=\"other\",state=\"dead\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("delayd_queue_handed_out_total{queue=\"orders\"} 9\n"));
  EXPECT_THAT(text, HasSubstr("delayd_queue_paused{queue=\"orders\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("delayd_queue_paused{queue=\"other\"}")));
}

TEST(MetricsTest, WhetherTheCertificateIsToBeRenewedIsToldWhereThereIsOne) {
  ServiceFigures figures;
  figures.certificate_to_renew = true;
  EXPECT_THAT(MetricsText(figures), Not(HasSubstr("delayd_tls_certificate")));
  figures.tls.certificate_end = WallFromMillis(5000);
  EXPECT_THAT(MetricsText(figures), HasSubstr("delayd_tls_certificate_to_renew 1\n"));
}

TEST(MetricsTest, UsersThatAreNotNamedAreSummedUp) {
  ServiceFigures figures;
  figures.engine.users = {{"uid:1000", 7}};
  figures.engine.other_users = 3;
  EXPECT_THAT(MetricsText(figures), Not(HasSubstr("delayd_user_jobs")));
  figures.counts_users = true;
  const std::string text = MetricsText(figures);
  EXPECT_THAT(text, HasSubstr("delayd_user_jobs{user=\"uid:1000\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("delayd_user_jobs{user=\"other\"} 3\n"));
}

TEST(MetricsTest, RequestsAreCountedByRouteAndNotByTarget) {
  http::RequestCounts requests(http::Router::RouteNames().size());
  const http::Router router({.service = &test::kPlainReport, .counts = &requests});
  const auto count = [&router](const std::string& target, int status) {
    router.Count(http::Router::Find({.method = "GET", .target = target}).number, status);
  };
  count("/v1/jobs/4711", 200);
  count("/nothing/here", 404);
  ServiceFigures figures;
  figures.requests = &requests;
  const std::string text = MetricsText(figures);
  EXPECT_THAT(
      text,
      HasSubstr(
          "delayd_http_requests_total{method=\"GET\",route=\"/v1/jobs/*\",code=\"200\"} 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr("delayd_http_requests_total{method=\"other\",route=\"other\",code=\"404\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("4711")));
}

}  // namespace
}  // namespace delayd
