// tests/bench/load/modes.h — the measurements: each puts one server under one kind of load and
// prints what it did as one line of JSON.
//
// Errors:  what cannot be measured ends the tool (Fail).
#pragma once

#include "tests/bench/load/options.h"

namespace delayd::load {

// Every connection keeps `window` puts in flight for `seconds`.
void MeasurePut(const Options& options);
// `rate` puts a second over all connections, whether answers come or not.
void MeasureOpen(const Options& options);
// `jobs` due jobs are leased and acked, `window` at a time on each connection, for at most
// `seconds`.
void MeasureDrain(const Options& options);
// `jobs` jobs are cancelled by id in random order, `window` at a time on each connection, for at
// most `seconds`.
void MeasureCancel(const Options& options);
// `rate` jobs a second are put with a delay of 1 s; how late `connections` workers get them.
void MeasureLateness(const Options& options);
// `jobs` jobs due in the same second; how long until all are acked, and what becomes of puts at
// `rate` a second meanwhile.
void MeasureBurst(const Options& options);
// Every connection waits for a job that does not come; what that costs the server.
void MeasureIdle(const Options& options);
// Puts `pending` jobs and ends.
void MeasureFill(const Options& options);
// Tries to put a job until one is acknowledged; prints when, on the monotonic clock.
void MeasureFirst(const Options& options);
// What the machine itself takes, in the directory `target`: appending and overwriting 4 KiB with
// fdatasync, and an echo of 300 bytes between two processes.
void MeasureFloor(const Options& options);

}  // namespace delayd::load
