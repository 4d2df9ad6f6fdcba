/* SPDX-License-Identifier: Apache-2.0 */
/* Promises between the rows of a database at rest, one statement each: every row of its result is one
 * finding, in words. They read whole tables, so they are for copies, never for the file that is served. */
#ifndef STORE_CHECKS_H
#define STORE_CHECKS_H

#include "daemon/store/database/schema.h"

#define CHECK_TERMINAL_STATE(name, terminal, ...) CHECK_TERMINAL_STATE_##terminal(#name)
#define CHECK_TERMINAL_STATE_true(word)           ", '" word "'"
#define CHECK_TERMINAL_STATE_false(word)
#define CHECK_TERMINAL                                                                                       \
    "('' " JOB_STATES(CHECK_TERMINAL_STATE)                                                                  \
    ")"
#define CHECK_THE_JOB "'job ' || coalesce(jobs.id, 'with key ' || job_key) || ': ' || "

/* The row is not of a job that is being removed. */
#define CHECK_IS_STAYING "job_key NOT IN (SELECT job_key FROM removals) "

/* Hashes that specs name: of functions, bundles and requirements. */
#define CHECK_NAMED_BLOBS                                                                                    \
    "(SELECT job_key, spec ->> '$.function.blob' AS name FROM specs "                                        \
    "UNION ALL SELECT job_key, spec ->> '$.bundle.blob' FROM specs "                                         \
    "UNION ALL SELECT job_key, spec ->> '$.environment.blob' FROM specs)"

#define STORE_CHECKS(X)                                                                                      \
    X(CHECK_EVENTS, CHECKER,                                                                                 \
      "SELECT 'job ' || id || ': its history has ' || coalesce(n, 0) || ' events from ' || "                 \
      "coalesce(first, 0) || ' to ' || coalesce(last, 0) || ', and the job says ' || jobs.seq FROM jobs "    \
      "LEFT JOIN (SELECT job_key, count(*) AS n, min(seq) AS first, max(seq) AS last FROM events "           \
      "GROUP BY job_key) ON job_key = key "                                                                  \
      "WHERE coalesce(n, 0) <> jobs.seq OR coalesce(last, 0) <> jobs.seq OR coalesce(first, 1) <> 1")        \
    X(CHECK_EVENTS_OF_JOBS, CHECKER,                                                                         \
      "SELECT 'events of a job that is not there: key ' || job_key FROM events "                             \
      "WHERE job_key NOT IN (SELECT key FROM jobs) AND " CHECK_IS_STAYING "GROUP BY job_key")                \
    X(CHECK_ENDS, CHECKER,                                                                                   \
      "SELECT 'job ' || id || ': it is ' || state || ', and its history has ' || coalesce(n, 0) || "         \
      "' ends' || coalesce(', the last one ' || kind, '') FROM jobs LEFT JOIN "                              \
      "(SELECT job_key, count(*) AS n, max(seq), kind FROM events "                                          \
      "WHERE upper(kind) IN " CHECK_TERMINAL " GROUP BY job_key) ON job_key = key "                          \
      "WHERE coalesce(n, 0) <> (state IN " CHECK_TERMINAL ") OR upper(coalesce(kind, state)) <> state")      \
    X(CHECK_LIVE_ATTEMPTS, CHECKER,                                                                          \
      "SELECT " CHECK_THE_JOB                                                                                \
      "count(*) || ' attempts are not over, and it is ' || coalesce(jobs.state, 'not there') "               \
      "FROM attempts LEFT JOIN jobs ON jobs.key = job_key WHERE attempts." SCHEMA_ATTEMPT_IS_LIVE            \
      " GROUP BY job_key HAVING count(*) > 1 OR jobs.key IS NULL OR jobs.state IN " CHECK_TERMINAL)          \
    X(CHECK_ATTEMPT_NUMBERS, CHECKER,                                                                        \
      "SELECT " CHECK_THE_JOB "count(*) || ' attempts up to number ' || max(number) || "                     \
      "', and the job says ' || coalesce(jobs.attempt, 'nothing') "                                          \
      "FROM attempts LEFT JOIN jobs ON jobs.key = job_key WHERE " CHECK_IS_STAYING "GROUP BY job_key "       \
      "HAVING count(*) <> max(number) OR min(number) <> 1 OR jobs.attempt IS NOT max(number)")               \
    X(CHECK_ATTEMPT_IDS, CHECKER,                                                                            \
      "SELECT " CHECK_THE_JOB "'attempt ' || later.number || ' has the epoch ' || later.epoch "              \
      "FROM attempts AS later LEFT JOIN jobs ON jobs.key = later.job_key WHERE later.epoch >> 32 > "         \
      "(SELECT value FROM meta WHERE name = 'incarnation') OR EXISTS (SELECT 1 FROM attempts AS earlier "    \
      "WHERE earlier.job_key = later.job_key AND earlier.number = later.number - 1 "                         \
      "AND earlier.epoch >= later.epoch)")                                                                   \
    X(CHECK_DEVICES, CHECKER,                                                                                \
      "SELECT 'device ' || value || ' of node ' || node || ' is held by ' || count(*) || ' attempts' "       \
      "FROM attempts JOIN members USING (epoch) JOIN json_each('[' || devices || ']') "                      \
      "WHERE attempts." SCHEMA_ATTEMPT_IS_LIVE " AND members.state <> 'LOST' "                               \
      "GROUP BY node, value HAVING count(*) > 1")                                                            \
    X(CHECK_PARTS, CHECKER,                                                                                  \
      "SELECT what || ' of an attempt that is not there: epoch ' || epoch FROM "                             \
      "(SELECT 'a member' AS what, epoch FROM members UNION SELECT 'a rank', epoch FROM ranks "              \
      "UNION SELECT 'a result', epoch FROM results) WHERE epoch NOT IN (SELECT epoch FROM attempts)")        \
    X(CHECK_NODE_JOBS, CHECKER,                                                                              \
      "SELECT " CHECK_THE_JOB "'it is not among the jobs of node ' || node "                                 \
      "FROM members CROSS JOIN attempts USING (epoch) LEFT JOIN jobs ON jobs.key = job_key "                 \
      "WHERE " CHECK_IS_STAYING "AND NOT EXISTS (SELECT 1 FROM node_jobs WHERE node_jobs.node = "            \
      "members.node AND node_jobs.job_key = attempts.job_key AND node_jobs.epoch >= attempts.epoch) "        \
      "UNION ALL SELECT 'node ' || node || ' has a job without an attempt there: key ' || job_key "          \
      "FROM node_jobs WHERE " CHECK_IS_STAYING "AND NOT EXISTS (SELECT 1 FROM attempts CROSS JOIN members "  \
      "USING (epoch) WHERE attempts.epoch = node_jobs.epoch AND attempts.job_key = node_jobs.job_key "       \
      "AND members.node_rank = node_jobs.node_rank AND members.node = node_jobs.node)")                      \
    X(CHECK_SPECS, CHECKER,                                                                                  \
      "SELECT 'job ' || id || ': it has no spec' FROM jobs "                                                 \
      "WHERE coalesce(array_key, key) NOT IN (SELECT job_key FROM specs UNION ALL "                          \
      "SELECT job_key FROM removals)")                                                                       \
    X(CHECK_RESULTS, CHECKER,                                                                                \
      "SELECT 'job ' || id || ': it has ' || count(results.rank) || ' results of ' || gpus || ' ranks' "     \
      "FROM jobs JOIN specs ON specs.job_key = coalesce(array_key, key) "                                    \
      "JOIN attempts ON attempts.job_key = key AND number = attempt "                                        \
      "LEFT JOIN results ON results.epoch = attempts.epoch AND kind = 'value' "                              \
      "WHERE jobs.state = 'SUCCEEDED' AND spec ->> '$.function' IS NOT NULL "                                \
      "AND coalesce(spec ->> '$.launch_mode', 'process') = 'process' "                                       \
      "GROUP BY key HAVING count(results.rank) <> gpus")                                                     \
    X(CHECK_RESULT_BLOBS, CHECKER,                                                                           \
      "SELECT 'the result of rank ' || rank || ' of epoch ' || epoch || ' is not there: blob ' || "          \
      "lower(hex(hash)) FROM results WHERE hash IS NOT NULL AND hash NOT IN (SELECT hash FROM blobs)")       \
    X(CHECK_SPEC_BLOBS, CHECKER,                                                                             \
      "SELECT " CHECK_THE_JOB "'its spec names a blob that is not there: ' || named.name "                   \
      "FROM " CHECK_NAMED_BLOBS " AS named LEFT JOIN jobs ON jobs.key = job_key WHERE named.name IS NOT "    \
      "NULL AND lower(named.name) NOT IN (SELECT lower(hex(hash)) FROM blobs)")                              \
    X(CHECK_ARRAYS, CHECKER,                                                                                 \
      "SELECT 'array ' || jobs.id || ': it counts ' || placed || ' tasks placed, ' || running || ' live, "   \
      "' || arrays.succeeded || ' succeeded; there are ' || coalesce(n, 0) || ', ' || coalesce(live, 0) "    \
      "|| ' and ' || coalesce(good, 0) FROM arrays JOIN jobs ON jobs.key = whole "                           \
      "LEFT JOIN (SELECT array_key AS of, count(*) AS n, sum(state NOT IN " CHECK_TERMINAL ") AS live, "     \
      "sum(state = 'SUCCEEDED') AS good FROM jobs WHERE array_key IS NOT NULL GROUP BY array_key) "          \
      "ON of = whole "                                                                                       \
      "WHERE coalesce(n, 0) <> placed OR coalesce(live, 0) <> running OR coalesce(good, 0) <> succeeded")    \
    X(CHECK_DEPENDENCIES, CHECKER,                                                                           \
      "SELECT 'a dependency of job key ' || job_key || ' on job key ' || on_key || ', not both there' "      \
      "FROM dependencies WHERE job_key NOT IN (SELECT key FROM jobs) "                                       \
      "OR on_key NOT IN (SELECT key FROM jobs)")                                                             \
    X(CHECK_BLOBS, CHECKER, "SELECT {blobs} FROM blobs")                                                     \
    X(CHECK_COUNTS, CHECKER,                                                                                 \
      "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM events), "                                  \
      "(SELECT count(*) FROM attempts), (SELECT count(*) FROM blobs)")

#endif
