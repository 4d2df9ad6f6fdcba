/* SPDX-License-Identifier: Apache-2.0 */
/* Known-wrong variants of the product, which the simulator must detect. At most one is on at a time. The
 * product has no switches for them: they are inserted between its files by the linker (--wrap), or in the
 * simulator's replacements of agent and shim. */
#ifndef SIM_PLANTED_H
#define SIM_PLANTED_H

#include <stdbool.h>

/* X(name, the error) */
#define PLANTED(X)                                                                                           \
    X(NONE, "nothing")                                                                                       \
    X(SKIP_FSYNC, "the disk is told to sync, and nobody waits for it")                                       \
    X(FRAME_AFTER_SYNC, "the last page of a commit is written when the sync is over")                        \
    X(COMMIT_LATE, "answers and orders leave before their commit")                                           \
    X(WAL_NOT_RENEWED, "a new controller trusts what a failed sync left in the log")                         \
    X(EVENT_LOST, "now and then a row of a history is not written")                                          \
    X(RESULT_LOST, "now and then a result is not written")                                                   \
    X(ATTEMPT_LOST, "now and then a new state of an attempt is not written")                                 \
    X(JOB_LOST, "now and then a new state of a job is not written")                                          \
    X(REPLIES_FORGOTTEN, "a request that is repeated is done again")                                         \
    X(LIVE_REMOVED, "a live job is removed like one that has ended")                                         \
    X(REMOVAL_LOST, "now and then a job whose removal is acknowledged stays")                                \
    X(SAME_INCARNATION, "a new controller counts epochs like the one before")                                \
    X(TIME_GOES_BACK, "a new controller forgets when the last event of a job was")                           \
    X(WALL_CLOCK, "leases go by the wall clock")                                                             \
    X(BOOT_RENEWS_NOTHING, "a new controller takes leases as long unrenewed")                                \
    X(EARLY_REASSIGN, "the controller takes leases as half as long as nodes do")                             \
    X(NO_ATTEMPT_ID_CHECK, "a report counts for whatever attempt is on the node")                            \
    X(CODES_IGNORED, "an exit report counts as success")                                                     \
    X(DOUBLE_RELEASE, "devices are given back twice")                                                        \
    X(QUOTA_IGNORED, "limits of projects are not looked at")                                                 \
    X(CHANGE_MISSED, "waiting jobs are not considered again when their nodes change")                        \
    X(REST_FORGOTTEN,                                                                                        \
      "of a queue that is too long for one scheduling pass only the first entries are visited")              \
    X(SPENT_EARLY, "a scheduling pass ends after one visit, though devices are free")                        \
    X(START_UNPREPARED, "nodes of a gang start without waiting for the others")                              \
    X(UNLISTED_LIVES, "an agent keeps what the controller does not list, or names as fenced")                \
    X(EXIT_MISSED, "now and then an agent misses that a shim has ended")                                     \
    X(NO_FENCE, "a shim goes on after its lease")                                                            \
    X(NO_ADOPTION, "an agent that starts anew forgets what lives on its node")                               \
    X(EXIT_TOO_EARLY, "an attempt counts as ended when its first rank has ended")                            \
    X(RECORD_OF_ANOTHER, "after a loss of power a node believes an exit record of another attempt")

#define AS_ENUM(name, ...) PLANTED_##name,
enum planted { PLANTED(AS_ENUM) PLANTED_COUNT };
#undef AS_ENUM

void planted_set(enum planted planted);
bool planted_is(enum planted planted);
/* Begins a run: restarts the count of variants that act only now and then. */
void planted_begin(void);
const char *planted_name(enum planted planted);
const char *planted_what(enum planted planted);

#endif
