/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of the database, version by version, and the conditions that its indices and the queries share.
 */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

#include "proto/states.h"

/* A job that may still change. A query that shall use the index jobs_live carries this very condition. */
#define SCHEMA_IF_LIVE(name, terminal, ...) SCHEMA_IF_LIVE_##terminal(#name)
#define SCHEMA_IF_LIVE_true(word)           ""
#define SCHEMA_IF_LIVE_false(word)          " WHEN '" word "' THEN 1"
#define SCHEMA_JOB_IS_LIVE                                                                                   \
    "CASE jobs.state" JOB_STATES(SCHEMA_IF_LIVE)                                                             \
    " END"

/* A job that lists show by themselves, not within its array. */
#define SCHEMA_JOB_IS_NO_TASK "array_key IS NULL"

/* The attempts that hold GPUs; a query that shall use the index attempts_live carries this very condition. */
#define SCHEMA_ATTEMPT_IS_LIVE "state <> 'ENDED'"

/* A blob that no job, no schedule and no result names. Rows from before uses were counted stay, because
 * requirements that stood in specs of that time are among them. */
#define SCHEMA_BLOB_IS_UNUSED                                                                                \
    "NOT EXISTS (SELECT 1 FROM uses WHERE uses.hash = lower(hex(blobs.hash))) "                              \
    "AND NOT EXISTS (SELECT 1 FROM schedule_uses WHERE schedule_uses.hash = lower(hex(blobs.hash))) "        \
    "AND NOT EXISTS (SELECT 1 FROM results WHERE results.hash = blobs.hash) "                                \
    "AND (bytes IS NULL OR blobs.rowid > (SELECT value FROM meta WHERE name = 'uncounted_blobs'))"

/* Job keys are cut into parts of 1,024, and ids are indexed part by part: see jobs_id. */
#define SCHEMA_PART_BITS "10"
#define SCHEMA_JOB_PART  "key >> " SCHEMA_PART_BITS

/* Runs of job_ids: the ids of a range of job keys, in their order. A run of level 0 has 32,768 keys, and one
 * of each further level has 32 runs of the level below. The number of a run is its level and its range. */
enum { RUN_LEVELS = 4, RUN_KEY_BITS = 15, RUN_FAN_BITS = 5, RUN_LEVEL_BITS = 40 };
#define SCHEMA_RUN_PARTS "32" /* of jobs_id, in a run of level 0 */
/* Two statements that fill an empty job_ids: ids of keys that fill runs go into the largest run that is full.
 */
#define SCHEMA_FULL_RUNS "(SELECT coalesce(max(key), 0) >> 15 FROM jobs)"
#define SCHEMA_INDEX_JOBS                                                                                    \
    "INSERT INTO job_ids SELECT CASE "                                                                       \
    "WHEN key >> 30 < full >> 15 THEN (3 << 40) + (key >> 30) "                                              \
    "WHEN key >> 25 < full >> 10 THEN (2 << 40) + (key >> 25) "                                              \
    "WHEN key >> 20 < full >> 5 THEN (1 << 40) + (key >> 20) "                                               \
    "ELSE key >> 15 END AS run, id, key "                                                                    \
    "FROM jobs, (SELECT " SCHEMA_FULL_RUNS " AS full) WHERE key >> 15 < full ORDER BY run, id",              \
        "UPDATE meta SET value = " SCHEMA_FULL_RUNS " WHERE name = 'indexed'"

/* Fills an empty node_jobs in its order, in one pass over members and one sort. */
#define SCHEMA_FIND_NODE_JOBS                                                                                \
    "INSERT INTO node_jobs SELECT node, job_key, max(epoch), node_rank "                                     \
    "FROM members CROSS JOIN attempts USING (epoch) GROUP BY node, job_key"

/* Marks a file as ours: "gpuc". */
#define SCHEMA_APPLICATION_ID      0x67707563
#define SCHEMA_APPLICATION_ID_TEXT "0x67707563"

/* How many versions there are, and the statements that make one of the version before it, 1 of an empty
 * database; they end with NULL. */
extern const int schema_versions;
const char *const *schema_statements(int version);

#endif
