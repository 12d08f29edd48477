// cli/verbs/verbs.h — all verbs, one file each.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cli/verb.h"

namespace delayd::cli {

std::unique_ptr<Verb> MakeEnqueue();
std::unique_ptr<Verb> MakeList();
std::unique_ptr<Verb> MakeShow();
std::unique_ptr<Verb> MakeCancel();
std::unique_ptr<Verb> MakeReschedule();
std::unique_ptr<Verb> MakeTouch();
std::unique_ptr<Verb> MakeKick();
std::unique_ptr<Verb> MakeImport();
std::unique_ptr<Verb> MakeExport();
std::unique_ptr<Verb> MakeLease();
std::unique_ptr<Verb> MakeAck();
std::unique_ptr<Verb> MakeNack();
std::unique_ptr<Verb> MakeBury();
std::unique_ptr<Verb> MakeExtend();
std::unique_ptr<Verb> MakeWork();
std::unique_ptr<Verb> MakeQueues();
std::unique_ptr<Verb> MakeForecast();
std::unique_ptr<Verb> MakeRun();
std::unique_ptr<Verb> MakeWait();
std::unique_ptr<Verb> MakeStatus();
std::unique_ptr<Verb> MakeTop();
std::unique_ptr<Verb> MakePause();
std::unique_ptr<Verb> MakeResume();
std::unique_ptr<Verb> MakeStats();
std::unique_ptr<Verb> MakeClock();
std::unique_ptr<Verb> MakeDrain();
std::unique_ptr<Verb> MakeVerify();
std::unique_ptr<Verb> MakeRecover();
std::unique_ptr<Verb> MakeBackup();
std::unique_ptr<Verb> MakePing();
std::unique_ptr<Verb> MakeConfig();
std::unique_ptr<Verb> MakeDoctor();
std::unique_ptr<Verb> MakeCompletion();
std::unique_ptr<Verb> MakeVersion();

std::string_view BuildVersion();

}  // namespace delayd::cli
