/* SPDX-License-Identifier: Apache-2.0 */
/* Every statement that runs after the start, once: all are prepared when a connection opens, so a typo ends
 * the program at its start. What stands in braces follows from the tables: see table_sql. Other parameters
 * are numbered in the order in which the one caller binds them. */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include "daemon/store/database/checks.h"
#include "daemon/store/database/schema.h"

/* Of a table: a row, the same in the place of one with its key, what of it changes, a row less. */
#define SQL_INSERT(table) "INSERT INTO " table " ({columns " table "}) VALUES ({values " table "})"
/* A failure leaves the rows before it, for it ends the transaction: else SQLite would copy every page first.
 */
#define SQL_INSERT_ROWS(table) "INSERT OR FAIL INTO " table " ({columns " table "}) VALUES {rows " table "}"
#define SQL_REPLACE(table)     " ON CONFLICT ({keys " table "}) DO UPDATE SET {replace " table "}"
#define SQL_PUT(table)         SQL_INSERT(table) SQL_REPLACE(table)
#define SQL_UPDATE(table)      "UPDATE " table " SET {set " table "} WHERE {where " table "}"
#define SQL_DELETE(table)      "DELETE FROM " table " WHERE {where " table "}"

/* Of one job, and of jobs that are shown: with the id of the array that it is a task of, and its array, where
 * it is one. */
#define SQL_SHOWN      "{jobs}, (SELECT id FROM jobs AS top WHERE top.key = jobs.array_key), {arrays}"
#define SQL_WITH_ARRAY " LEFT JOIN arrays ON whole = key "

/* Parts of the keys of jobs, the newest first: from that of a key down to `oldest`. A join that uses them
 * says CROSS JOIN, which keeps it lazy. */
#define SQL_WITH_PARTS(newest, oldest)                                                                       \
    "WITH RECURSIVE part (n) AS (SELECT (" newest ") >> " SCHEMA_PART_BITS                                   \
    " UNION ALL SELECT n - 1 FROM part WHERE n > " oldest ") "
#define SQL_NEWEST_BEFORE      "SELECT max(key) FROM jobs WHERE key < ?1"
#define SQL_WITH_PARTS_OF_PAGE SQL_WITH_PARTS(SQL_NEWEST_BEFORE, "(?9 >> " SCHEMA_PART_BITS ")")
#define SQL_WITH_PARTS_OF_SCAN                                                                               \
    SQL_WITH_PARTS(SQL_NEWEST_BEFORE, "0 LIMIT ?2 / 2") /* each costs as two jobs */

/* Keys of jobs whose ids fit a condition: those that are in no run of job_ids, the newest first, then those
 * of each run. */
#define SQL_KEYS(condition)                                                                                  \
    "(" SQL_WITH_PARTS("SELECT max(key) FROM jobs",                                                          \
                       "(SELECT value * " SCHEMA_RUN_PARTS                                                   \
                       " FROM meta WHERE name = 'indexed')") ", " SQL_RUNS                                   \
                                                             "SELECT key AS found FROM part CROSS JOIN "     \
                                                             "jobs INDEXED BY jobs_id "                      \
                                                             "ON " SCHEMA_JOB_PART " = n AND " condition     \
                                                             " UNION ALL SELECT key FROM run CROSS JOIN "    \
                                                             "job_ids ON run = number AND " condition ") "
#define SQL_RUNS                                                                                             \
    "run (number) AS (SELECT min(run) FROM job_ids UNION ALL SELECT "                                        \
    "(SELECT min(run) FROM job_ids WHERE run > number) FROM run WHERE number IS NOT NULL) "

/* job_index.c fills a run ?5 with ids above ?3, up to ?4, of the sources with numbers from ?1 to ?2: parts of
 * jobs_id, or runs. The id at which a step ends is the least that has ?4 behind it in its source; NULL: each
 * source has fewer. */
#define SQL_WITH_SOURCES                                                                                     \
    "WITH RECURSIVE source (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM source WHERE n < ?2) "
#define SQL_PARTS_OF_RUN "jobs INDEXED BY jobs_id ON " SCHEMA_JOB_PART " = n AND id > ?3 "
#define SQL_RUNS_OF_RUN  "job_ids ON run = n AND id > ?3 "
#define SQL_STEP_END(ids)                                                                                    \
    SQL_WITH_SOURCES                                                                                         \
    "SELECT min((SELECT id FROM (SELECT n) CROSS JOIN " ids "ORDER BY id LIMIT 1 OFFSET ?4)) FROM source"
#define SQL_STEP(ids)                                                                                        \
    SQL_WITH_SOURCES "INSERT INTO job_ids SELECT ?5, id, key FROM source CROSS JOIN " ids                    \
                     "AND id <= coalesce(?4, '{') ORDER BY id"

/* Parameters of a list of jobs: before, limit, prefix of the id, name, project, since, owner, key of the
 * array whose tasks they are, behind, node, name and value of a label, then one a state: its name when it is
 * wanted. '{' follows 'z', the last character of ids. */
#define SQL_STATE_PARAMETER(...) ", ?"
#define SQL_PREFIX_FITS          "id >= ?3 AND id < ?3 || '{'"
#define SQL_JOBS_FILTER                                                                                      \
    "key < ?1 AND key > ?9 AND (?3 IS NULL OR (" SQL_PREFIX_FITS ")) AND (?4 IS NULL OR name = ?4) "         \
    "AND (?5 IS NULL OR project = ?5) AND created_ms >= ?6 "                                                 \
    "AND (?7 IS NULL OR owner = ?7) AND (?8 = 0 OR array_key = ?8) "                                         \
    "AND (?10 IS NULL OR EXISTS (SELECT 1 FROM node_jobs WHERE node = ?10 AND job_key = key)) "              \
    "AND (?11 IS NULL OR EXISTS (SELECT 1 FROM json_each(labels) AS label WHERE label.key = ?11 "            \
    "AND label.value = ?12)) "                                                                               \
    "AND state IN (NULL" JOB_STATES(SQL_STATE_PARAMETER)                                                     \
    ") "
#define SQL_JOBS_PAGE "ORDER BY key DESC LIMIT ?2"
#define SQL_JOBS_TOP  SQL_JOBS_FILTER "AND " SCHEMA_JOB_IS_NO_TASK " " SQL_JOBS_PAGE

/* The first job that a list passes over, which begins before ?1 and looks at ?2 jobs of the index. */
#define SQL_BEHIND(index, condition)                                                                         \
    "SELECT key, created_ms FROM jobs INDEXED BY " index " WHERE key < ?1 AND " condition                    \
    " ORDER BY key DESC LIMIT 1 OFFSET ?2"

/* Rows (node, devices, millicpus, memory_bytes) of all live attempts. */
#define SQL_LIVE_MEMBERS                                                                                     \
    "(SELECT node, devices, millicpus, memory_bytes FROM attempts INDEXED BY attempts_live JOIN members "    \
    "USING (epoch) "                                                                                         \
    "WHERE attempts." SCHEMA_ATTEMPT_IS_LIVE ") "
/* How many devices a list like "0,1,5" names. */
#define SQL_DEVICE_COUNT "length(devices) - length(replace(devices, ',', '')) + (devices <> '')"

/* What is held of a node. */
#define SQL_USED                                                                                             \
    "sum(" SQL_DEVICE_COUNT ") AS used, sum(millicpus) AS used_cpus, sum(memory_bytes) AS used_memory"

/* At most ?2 parts of attempts of the job ?1: the first of them, whatever is asked of them. */
#define SQL_PARTS(columns, table)                                                                            \
    "(SELECT " columns " FROM attempts CROSS JOIN " table " USING (epoch) WHERE job_key = ?1 LIMIT ?2)"
#define SQL_DELETE_PARTS(table, number)                                                                      \
    "DELETE FROM " table " WHERE (epoch, " number ") IN " SQL_PARTS("epoch, " table "." number, table)

/* The first ?2 tasks of the array ?1. */
#define SQL_TASKS_OF_ARRAY                                                                                   \
    "SELECT key FROM jobs INDEXED BY jobs_array WHERE array_key = ?1 ORDER BY key LIMIT ?2"

/* The rows that job_ids may have of these keys, one of each level. The terms are apart because SQLite
 * compares only the first number of (run, id, key) in the index, and would read whole runs. */
#define SQL_JOB_IDS(keys)                                                                                    \
    "run IN (SELECT (column1 << 40) + (key >> (15 + 5 * column1)) FROM jobs, (VALUES (0), (1), (2), (3)) "   \
    "WHERE key IN (" keys ")) AND id IN (SELECT id FROM jobs WHERE key IN (" keys ")) AND +key IN (" keys    \
    ")"

/* Deliveries, with the id of the job and the kind of the event, where these are still there. */
#define SQL_SHOWN_DELIVERIES                                                                                 \
    "SELECT {deliveries}, jobs.id, kind FROM deliveries LEFT JOIN jobs ON jobs.key = deliveries.job_key "    \
    "LEFT JOIN events ON events.job_key = deliveries.job_key AND events.seq = deliveries.seq "

/* X(name, writer or reader, text) */
#define SQL_STATEMENTS(X)                                                                                    \
    X(BEGIN, WRITER, "BEGIN IMMEDIATE")                                                                      \
    X(COMMIT, WRITER, "COMMIT")                                                                              \
    STORE_CHECKS(X)                                                                                          \
    X(BUMP, WRITER, "UPDATE meta SET value = max(value, ?) + 1 WHERE name = 'incarnation' RETURNING value")  \
    X(INCARNATION, WRITER, "SELECT value FROM meta WHERE name = 'incarnation'")                              \
    X(PUT_LOST, WRITER,                                                                                      \
      "INSERT INTO lost ({columns lost}) SELECT {values lost} "                                              \
      "WHERE coalesce((SELECT max(key) FROM lost), 0) < ?8" SQL_REPLACE("lost"))                             \
    X(NEXT_KEY, WRITER,                                                                                      \
      "SELECT max(coalesce((SELECT max(key) FROM jobs), 0), "                                                \
      "(SELECT value FROM meta WHERE name = 'removed')) + 1")                                                \
    X(INSERT_JOB, WRITER, SQL_INSERT("jobs"))                                                                \
    X(INSERT_JOBS, WRITER, SQL_INSERT_ROWS("jobs"))                                                          \
    X(INSERT_TASK, WRITER,                                                                                   \
      "INSERT INTO jobs ({own columns jobs}, {shared columns jobs}) "                                        \
      "SELECT {own values jobs}, {shared columns jobs} FROM jobs WHERE key = ?1")                            \
    X(UPDATE_JOB, WRITER, SQL_UPDATE("jobs"))                                                                \
    X(INSERT_SPEC, WRITER, SQL_INSERT("specs"))                                                              \
    X(INSERT_SPECS, WRITER, SQL_INSERT_ROWS("specs"))                                                        \
    X(PUT_ARRAY, WRITER, SQL_PUT("arrays"))                                                                  \
    X(INSERT_EVENT, WRITER, SQL_INSERT("events"))                                                            \
    X(INSERT_EVENTS, WRITER, SQL_INSERT_ROWS("events"))                                                      \
    X(INSERT_DEPENDENCY, WRITER, SQL_INSERT("dependencies"))                                                 \
    X(INSERT_ATTEMPT, WRITER, SQL_INSERT("attempts"))                                                        \
    X(UPDATE_ATTEMPT, WRITER, SQL_UPDATE("attempts"))                                                        \
    X(INSERT_MEMBER, WRITER, SQL_INSERT("members"))                                                          \
    X(UPDATE_MEMBER, WRITER, SQL_UPDATE("members"))                                                          \
    X(PUT_NODE_JOB, WRITER,                                                                                  \
      "INSERT INTO node_jobs SELECT ?1, job_key, epoch, ?2 FROM attempts WHERE epoch = ?3 "                  \
      "ON CONFLICT DO UPDATE SET epoch = excluded.epoch, node_rank = excluded.node_rank")                    \
    X(PUT_RANK, WRITER, SQL_PUT("ranks"))                                                                    \
    X(PUT_RESULT, WRITER, SQL_PUT("results"))                                                                \
    X(PUT_NODE, WRITER, SQL_PUT("nodes"))                                                                    \
    X(DELETE_NODE, WRITER, SQL_DELETE("nodes"))                                                              \
    X(INSERT_WINDOW, WRITER, SQL_INSERT("windows"))                                                          \
    X(DELETE_WINDOW, WRITER, SQL_DELETE("windows"))                                                          \
    X(INSERT_REPLY, WRITER, SQL_INSERT("replies"))                                                           \
    X(INSERT_REPLIES, WRITER, SQL_INSERT_ROWS("replies"))                                                    \
    X(FIND_REPLY, WRITER, "SELECT {replies} FROM replies WHERE key = ?")                                     \
    X(LOAD_SCOPES, WRITER, "SELECT key, scope FROM replies WHERE key > ? ORDER BY key")                      \
    X(LOAD_META, WRITER, "SELECT value FROM meta WHERE name = ?")                                            \
    X(PUT_META, WRITER, "UPDATE meta SET value = ? WHERE name = ?")                                          \
    X(INSERT_TOKEN, WRITER, SQL_INSERT("tokens"))                                                            \
    X(REVOKE_TOKEN, WRITER, "UPDATE tokens SET revoked = 1 WHERE {where tokens}")                            \
    X(END_TOKEN, WRITER, "UPDATE tokens SET expires_ms = ?1 WHERE id = ?2")                                  \
    X(DELETE_ENDED_LOGINS, WRITER, "DELETE FROM tokens WHERE subject = ? AND expires_ms < ?")                \
    X(USE_TOKEN, WRITER, "UPDATE tokens SET used_ms = max(used_ms, ?1) WHERE id = ?2")                       \
    X(RETIRE_TOKENS, WRITER, "UPDATE tokens SET revoked = 1 WHERE node = ?1 AND id <> ?2")                   \
    X(REVOKE_TOKENS_OF_NODE, WRITER, "UPDATE tokens SET revoked = 1 WHERE node = ?")                         \
    X(INSERT_JOIN, WRITER, SQL_INSERT("joins"))                                                              \
    X(DELETE_OLD_JOINS, WRITER, "DELETE FROM joins WHERE expires_ms < ?")                                    \
    X(USE_JOIN, WRITER, SQL_UPDATE("joins") " AND node IS NULL")                                             \
    X(PUT_BLOB, WRITER,                                                                                      \
      SQL_INSERT("blobs") " ON CONFLICT (hash) DO UPDATE SET created_ms = excluded.created_ms")              \
    X(DELETE_BLOB, WRITER,                                                                                   \
      "DELETE FROM blobs WHERE hash = ?1 AND created_ms <= ?4 AND " SCHEMA_BLOB_IS_UNUSED)                   \
    X(PUT_USE, WRITER, SQL_INSERT("uses") " ON CONFLICT DO NOTHING")                                         \
    X(DELETE_UPLOAD, WRITER,                                                                                 \
      "DELETE FROM uploads WHERE owner = (SELECT owner FROM jobs WHERE key = ?1) AND hash = ?2")             \
    X(PUT_UPLOAD, WRITER, SQL_PUT("uploads"))                                                                \
    X(TRIM_UPLOADS, WRITER,                                                                                  \
      "DELETE FROM uploads WHERE (owner, hash) IN (SELECT owner, hash FROM uploads WHERE at_ms <= ?1 "       \
      "ORDER BY at_ms LIMIT ?2)")                                                                            \
    X(NOTE_REMOVED, WRITER, "UPDATE meta SET value = max(value, ?) WHERE name = 'removed'")                  \
    X(DELETE_JOB, WRITER, "DELETE FROM jobs WHERE key = ?")                                                  \
    X(DELETE_JOB_ID, WRITER, "DELETE FROM job_ids WHERE " SQL_JOB_IDS("?1"))                                 \
    X(DELETE_TASK_IDS, WRITER, "DELETE FROM job_ids WHERE " SQL_JOB_IDS(SQL_TASKS_OF_ARRAY))                 \
    X(DELETE_SPEC, WRITER, "DELETE FROM specs WHERE job_key = ?")                                            \
    X(DELETE_ARRAY, WRITER, "DELETE FROM arrays WHERE whole = ?")                                            \
    X(DELETE_USES, WRITER, "DELETE FROM uses WHERE job_key = ?")                                             \
    X(DELETE_DEPENDENCIES, WRITER, "DELETE FROM dependencies WHERE job_key = ?1 OR on_key = ?1")             \
    X(INSERT_REMOVAL, WRITER, "INSERT INTO removals SELECT key, id FROM jobs WHERE key = ?")                 \
    X(REMOVE_TASKS, WRITER,                                                                                  \
      "INSERT INTO removals SELECT key, id FROM jobs WHERE key IN (" SQL_TASKS_OF_ARRAY ")")                 \
    X(DELETE_TASKS, WRITER, "DELETE FROM jobs WHERE key IN (" SQL_TASKS_OF_ARRAY ")")                        \
    X(DELETE_RESULTS, WRITER, SQL_DELETE_PARTS("results", "rank"))                                           \
    X(DELETE_RANKS, WRITER, SQL_DELETE_PARTS("ranks", "rank"))                                               \
    X(DELETE_NODE_JOBS, WRITER,                                                                              \
      "DELETE FROM node_jobs WHERE job_key = ?1 AND node IN " SQL_PARTS("node", "members"))                  \
    X(DELETE_MEMBERS, WRITER, SQL_DELETE_PARTS("members", "node_rank"))                                      \
    X(DELETE_ATTEMPTS, WRITER,                                                                               \
      "DELETE FROM attempts WHERE epoch IN (SELECT epoch FROM attempts WHERE job_key = ?1 "                  \
      "AND NOT EXISTS (SELECT 1 FROM results WHERE results.epoch = attempts.epoch) "                         \
      "AND NOT EXISTS (SELECT 1 FROM ranks WHERE ranks.epoch = attempts.epoch) "                             \
      "AND NOT EXISTS (SELECT 1 FROM members WHERE members.epoch = attempts.epoch) LIMIT ?2)")               \
    X(DELETE_EVENTS, WRITER,                                                                                 \
      "DELETE FROM events WHERE job_key = ?1 "                                                               \
      "AND seq < (SELECT min(seq) + ?2 FROM events WHERE job_key = ?1)")                                     \
    X(DELETE_REMOVAL, WRITER,                                                                                \
      "DELETE FROM removals WHERE job_key = ?1 AND NOT EXISTS (SELECT 1 FROM events WHERE job_key = ?1) "    \
      "AND NOT EXISTS (SELECT 1 FROM attempts WHERE job_key = ?1) "                                          \
      "AND NOT EXISTS (SELECT 1 FROM jobs WHERE array_key = ?1)")                                            \
    X(TRIM_REPLIES, WRITER, "DELETE FROM replies WHERE key <= ?")                                            \
    X(FIRST_RUN, WRITER, "SELECT min(run) FROM job_ids WHERE run >= ? AND run < ?")                          \
    X(LAST_ID, WRITER, "SELECT max(id) FROM job_ids WHERE run = ?")                                          \
    X(PARTS_STEP_END, WRITER, SQL_STEP_END(SQL_PARTS_OF_RUN))                                                \
    X(PARTS_STEP, WRITER, SQL_STEP(SQL_PARTS_OF_RUN))                                                        \
    X(RUNS_STEP_END, WRITER, SQL_STEP_END(SQL_RUNS_OF_RUN))                                                  \
    X(RUNS_STEP, WRITER, SQL_STEP(SQL_RUNS_OF_RUN))                                                          \
    X(DELETE_MOVED, WRITER,                                                                                  \
      SQL_WITH_SOURCES                                                                                       \
      "DELETE FROM job_ids WHERE run IN (SELECT n FROM source) AND id > ?3 AND id <= coalesce(?4, '{')")     \
    X(NOTE_INDEXED, WRITER, "UPDATE meta SET value = value + 1 WHERE name = 'indexed'")                      \
    X(SHRINK, WRITER, "PRAGMA incremental_vacuum")                                                           \
    X(PUT_HISTORY, WRITER, SQL_PUT("history"))                                                               \
    X(PUT_USAGE, WRITER, SQL_PUT("usage"))                                                                   \
    X(DELETE_USAGE, WRITER, SQL_DELETE("usage"))                                                             \
    X(ADD_HOUR, WRITER,                                                                                      \
      SQL_INSERT(                                                                                            \
          "hours") " ON CONFLICT ({keys hours}) DO UPDATE SET attempts = attempts + excluded.attempts, "     \
                   "gpu_ms = gpu_ms + excluded.gpu_ms, measured_ms = measured_ms + excluded.measured_ms, "   \
                   "idle_ms = idle_ms + excluded.idle_ms, energy_mj = energy_mj + excluded.energy_mj")       \
    X(TRIM_HOURS, WRITER,                                                                                    \
      "DELETE FROM hours WHERE hour_ms = (SELECT min(hour_ms) FROM hours) AND hour_ms <= ?")                 \
    X(PUT_WEBHOOK, WRITER, SQL_PUT("webhooks"))                                                              \
    X(DELETE_WEBHOOK, WRITER, SQL_DELETE("webhooks"))                                                        \
    X(INSERT_SCHEDULE, WRITER, SQL_INSERT("schedules"))                                                      \
    X(UPDATE_SCHEDULE, WRITER, SQL_UPDATE("schedules"))                                                      \
    X(RUN_SCHEDULE, WRITER,                                                                                  \
      "UPDATE schedules SET due_ms = ?2, ran_ms = ?3, outcome = ?4, job = coalesce(?5, job), error = ?6, "   \
      "paused = paused OR ?7, reason = coalesce(?8, reason), next_ms = coalesce(nullif(?9, 0), next_ms) "    \
      "WHERE "                                                                                               \
      "id = ?1")                                                                                             \
    X(DELETE_SCHEDULE, WRITER, SQL_DELETE("schedules"))                                                      \
    X(PUT_SCHEDULE_USE, WRITER, SQL_INSERT("schedule_uses") " ON CONFLICT DO NOTHING")                       \
    X(DELETE_SCHEDULE_USES, WRITER, "DELETE FROM schedule_uses WHERE schedule = ?")                          \
    X(PUT_SECRET, WRITER, SQL_PUT("secrets"))                                                                \
    X(UPDATE_SECRET, WRITER, SQL_UPDATE("secrets"))                                                          \
    X(DELETE_SECRET, WRITER, SQL_DELETE("secrets"))                                                          \
    X(DELETE_SECRETS_OF_PROJECT, WRITER, "DELETE FROM secrets WHERE owner = '' AND project = ?")             \
    X(DELETE_DELIVERIES, WRITER, "DELETE FROM deliveries WHERE webhook = ?")                                 \
    X(INSERT_DELIVERY, WRITER, SQL_INSERT("deliveries"))                                                     \
    X(UPDATE_DELIVERY, WRITER, SQL_UPDATE("deliveries"))                                                     \
    X(GIVE_UP_DELIVERIES, WRITER,                                                                            \
      "UPDATE deliveries SET state = 'FAILED', error = ?3 WHERE webhook = ?1 AND key <= ?2 "                 \
      "AND state = 'PENDING'")                                                                               \
    X(TRIM_DELIVERIES, WRITER,                                                                               \
      "DELETE FROM deliveries WHERE key IN (SELECT key FROM (SELECT key, created_ms FROM deliveries "        \
      "WHERE state <> 'PENDING' ORDER BY key LIMIT ?2) WHERE created_ms <= ?1)")                             \
    X(INSERT_AUDIT, WRITER, SQL_INSERT("audit"))                                                             \
    X(INSERT_AUDITS, WRITER, SQL_INSERT_ROWS("audit"))                                                       \
    X(LAST_AUDIT, WRITER, "SELECT {audit} FROM audit ORDER BY seq DESC LIMIT 1")                             \
    X(TRIM_AUDIT, WRITER,                                                                                    \
      "DELETE FROM audit WHERE seq < (SELECT coalesce(min(CASE WHEN at_ms > ?1 AND seq > "                   \
      "(SELECT max(seq) FROM audit) - ?3 THEN seq END), max(seq)) "                                          \
      "FROM (SELECT seq, at_ms FROM audit ORDER BY seq LIMIT ?2))")                                          \
    X(LOAD_WEBHOOKS, WRITER, "SELECT {webhooks} FROM webhooks ORDER BY created_ms, id")                      \
    X(LOAD_DELIVERIES, WRITER,                                                                               \
      "SELECT {deliveries} FROM deliveries INDEXED BY deliveries_next WHERE state = 'PENDING' ORDER BY key") \
    X(PUT_LIMITS, WRITER, SQL_PUT("limits"))                                                                 \
    X(DELETE_LIMITS, WRITER, SQL_DELETE("limits"))                                                           \
    X(LOAD_WINDOWS, WRITER, "SELECT {windows} FROM windows ORDER BY from_ms, id")                            \
    X(LOAD_HISTORY, WRITER, "SELECT {history} FROM history ORDER BY rowid")                                  \
    X(LOAD_USAGE, WRITER, "SELECT {usage} FROM usage ORDER BY project, owner")                               \
    X(LOAD_LIMITS, WRITER, "SELECT {limits} FROM limits ORDER BY kind, name")                                \
    X(LOAD_NODES, WRITER, "SELECT {nodes} FROM nodes ORDER BY name")                                         \
    X(LOAD_JOBS, WRITER,                                                                                     \
      "SELECT {jobs}, spec, "                                                                                \
      "(SELECT at_ms FROM events WHERE events.job_key = key AND events.seq = jobs.seq), "                    \
      "iif(kept_until_ms = 0, 0, (SELECT at_ms FROM events WHERE events.job_key = key "                      \
      "AND kind = 'kept' ORDER BY events.seq DESC LIMIT 1)) "                                                \
      "FROM jobs INDEXED BY jobs_live "                                                                      \
      "JOIN specs ON job_key = coalesce(array_key, key) WHERE " SCHEMA_JOB_IS_LIVE " ORDER BY key")          \
    X(LOAD_ARRAYS, WRITER,                                                                                   \
      "SELECT {arrays} FROM jobs INDEXED BY jobs_live "                                                      \
      "JOIN arrays ON whole = key WHERE " SCHEMA_JOB_IS_LIVE " ORDER BY key")                                \
    X(LOAD_DEPENDENCIES, WRITER,                                                                             \
      "SELECT {dependencies} FROM jobs INDEXED BY jobs_live "                                                \
      "CROSS JOIN dependencies ON job_key = key WHERE " SCHEMA_JOB_IS_LIVE " ORDER BY key, on_key")          \
    X(LOAD_ATTEMPTS, WRITER,                                                                                 \
      "SELECT {attempts} FROM jobs INDEXED BY jobs_live "                                                    \
      "JOIN attempts ON job_key = key AND number = attempt WHERE " SCHEMA_JOB_IS_LIVE " ORDER BY key")       \
    X(LOAD_MEMBERS, WRITER,                                                                                  \
      "SELECT {members} FROM jobs INDEXED BY jobs_live "                                                     \
      "JOIN attempts ON job_key = key AND number = attempt JOIN members USING (epoch) "                      \
      "WHERE " SCHEMA_JOB_IS_LIVE " ORDER BY key, node_rank")                                                \
    X(JOB, READER,                                                                                           \
      "SELECT " SQL_SHOWN ", coalesce(shown, spec) FROM " SQL_KEYS(                                          \
          "id = ?1") "CROSS JOIN jobs ON key = found "                                                       \
                     "CROSS JOIN specs ON job_key = coalesce(array_key, key)" SQL_WITH_ARRAY "LIMIT 1")      \
    X(JOB_BY_KEY, READER,                                                                                    \
      "SELECT " SQL_SHOWN ", spec FROM jobs "                                                                \
      "JOIN specs ON job_key = coalesce(array_key, key)" SQL_WITH_ARRAY "WHERE key = ?")                     \
    X(JOBS, READER,                                                                                          \
      "SELECT " SQL_SHOWN " FROM jobs INDEXED BY jobs_top" SQL_WITH_ARRAY "WHERE " SQL_JOBS_TOP)             \
    X(JOBS_OF_OWNER, READER,                                                                                 \
      "SELECT " SQL_SHOWN " FROM jobs INDEXED BY jobs_owner" SQL_WITH_ARRAY                                  \
      "WHERE owner = ?7 AND " SQL_JOBS_TOP)                                                                  \
    X(JOBS_LIVE, READER,                                                                                     \
      "SELECT " SQL_SHOWN " FROM jobs INDEXED BY jobs_live" SQL_WITH_ARRAY "WHERE " SCHEMA_JOB_IS_LIVE       \
      " AND " SQL_JOBS_FILTER "AND (?10 IS NOT NULL OR " SCHEMA_JOB_IS_NO_TASK ") " SQL_JOBS_PAGE)           \
    X(JOBS_OF_NODE, READER,                                                                                  \
      "SELECT " SQL_SHOWN " FROM node_jobs CROSS JOIN jobs ON key = job_key" SQL_WITH_ARRAY                  \
      "WHERE node = ?10 AND job_key < ?1 AND job_key > ?9 AND " SQL_JOBS_FILTER                              \
      "ORDER BY job_key DESC LIMIT ?2")                                                                      \
    X(JOBS_OF_ARRAY, READER,                                                                                 \
      "SELECT " SQL_SHOWN " FROM jobs INDEXED BY jobs_array" SQL_WITH_ARRAY                                  \
      "WHERE array_key = ?8 AND " SQL_JOBS_FILTER SQL_JOBS_PAGE)                                             \
    X(JOBS_BY_PREFIX, READER,                                                                                \
      SQL_WITH_PARTS_OF_PAGE "SELECT " SQL_SHOWN " FROM part "                                               \
                             "CROSS JOIN jobs INDEXED BY jobs_id ON " SCHEMA_JOB_PART                        \
                             " = n AND " SQL_PREFIX_FITS SQL_WITH_ARRAY                                      \
                             "WHERE " SQL_JOBS_FILTER SQL_JOBS_PAGE)                                         \
    X(JOBS_BY_LONG_PREFIX, READER,                                                                           \
      "SELECT " SQL_SHOWN " FROM jobs" SQL_WITH_ARRAY                                                        \
      "WHERE key IN (SELECT found FROM " SQL_KEYS(SQL_PREFIX_FITS) ") AND " SQL_JOBS_FILTER SQL_JOBS_PAGE)   \
    X(BEHIND, READER, SQL_BEHIND("jobs_top", SCHEMA_JOB_IS_NO_TASK))                                         \
    X(BEHIND_OF_OWNER, READER, SQL_BEHIND("jobs_owner", "owner = ?3 AND " SCHEMA_JOB_IS_NO_TASK))            \
    X(BEHIND_LIVE, READER, SQL_BEHIND("jobs_live", SCHEMA_JOB_IS_LIVE))                                      \
    X(BEHIND_OF_NODE, READER,                                                                                \
      "SELECT job_key, (SELECT created_ms FROM jobs WHERE key <= job_key ORDER BY key DESC LIMIT 1) "        \
      "FROM node_jobs WHERE node = ?3 AND job_key < ?1 ORDER BY job_key DESC LIMIT 1 OFFSET ?2")             \
    X(BEHIND_OF_ARRAY, READER, SQL_BEHIND("jobs_array", "array_key = ?3"))                                   \
    X(BEHIND_BY_PREFIX, READER,                                                                              \
      SQL_WITH_PARTS_OF_SCAN                                                                                 \
      "SELECT key, created_ms FROM jobs WHERE key < coalesce("                                               \
      "(SELECT n FROM part CROSS JOIN jobs INDEXED BY jobs_id ON " SCHEMA_JOB_PART " = n "                   \
      "AND " SQL_PREFIX_FITS " LIMIT 1 OFFSET ?2), (SELECT min(n) FROM part)) << " SCHEMA_PART_BITS          \
      " ORDER BY key DESC LIMIT 1")                                                                          \
    X(EVENTS, READER, "SELECT {events} FROM events WHERE job_key = ? AND seq > ? ORDER BY seq LIMIT ?")      \
    X(NEWEST_EVENT, READER,                                                                                  \
      "SELECT {events} FROM events WHERE job_key = ? AND kind = ? ORDER BY seq DESC LIMIT 1")                \
    X(DEPENDENCIES, READER,                                                                                  \
      "SELECT {dependencies}, id, state, started_ms FROM dependencies "                                      \
      "CROSS JOIN jobs ON key = on_key WHERE job_key = ? ORDER BY on_key")                                   \
    X(ATTEMPTS, READER,                                                                                      \
      "SELECT {attempts} FROM attempts WHERE job_key = ? AND number < ? ORDER BY number DESC")               \
    X(ON_NODE, READER,                                                                                       \
      "SELECT {attempts}, {members} FROM node_jobs CROSS JOIN attempts USING (epoch) "                       \
      "CROSS JOIN members USING (epoch, node_rank) WHERE node_jobs.node = ? AND node_jobs.job_key = ?")      \
    X(MEMBERS, READER, "SELECT {members} FROM members WHERE epoch = ? ORDER BY node_rank")                   \
    X(RANKS, READER, "SELECT {ranks} FROM ranks WHERE epoch = ? ORDER BY rank")                              \
    X(RESULTS, READER,                                                                                       \
      "SELECT {results}, bytes FROM results LEFT JOIN blobs ON blobs.hash = results.hash "                   \
      "WHERE epoch = ? AND rank > ? ORDER BY rank LIMIT ?")                                                  \
    X(ATTEMPT_ID, READER,                                                                                    \
      "SELECT id, job_key, number, attempts.state FROM attempts JOIN jobs ON jobs.key = job_key "            \
      "WHERE epoch = ?")                                                                                     \
    X(NODE, READER,                                                                                          \
      "SELECT {nodes}, coalesce(used, 0), coalesce(used_cpus, 0), coalesce(used_memory, 0) FROM nodes "      \
      "CROSS JOIN (SELECT " SQL_USED " FROM " SQL_LIVE_MEMBERS "WHERE node = ?1) WHERE name = ?1")           \
    X(NODES, READER,                                                                                         \
      "SELECT {nodes}, coalesce(used, 0), coalesce(used_cpus, 0), coalesce(used_memory, 0) FROM nodes "      \
      "LEFT JOIN (SELECT node, " SQL_USED " FROM " SQL_LIVE_MEMBERS "GROUP BY node) "                        \
      "ON node = name WHERE name > ? ORDER BY name LIMIT ?")                                                 \
    X(NODE_GPUS, READER, "SELECT iif(slots, '[]', devices) FROM nodes WHERE name = ?")                       \
    X(NODES_FROM, READER,                                                                                    \
      "SELECT {nodes}, 0, 0, 0 FROM nodes WHERE name >= ?1 AND (?2 OR name > ?1) ORDER BY name LIMIT ?3")    \
    X(ALLOCATIONS, READER,                                                                                   \
      "SELECT job_key, node_rank, id, jobs.name, owner, project, node, devices, " SQL_DEVICE_COUNT ", "      \
      "first_rank, local_ranks, attempts.created_ms "                                                        \
      "FROM attempts INDEXED BY attempts_live CROSS JOIN members USING (epoch) "                             \
      "CROSS JOIN jobs ON key = job_key "                                                                    \
      "WHERE attempts." SCHEMA_ATTEMPT_IS_LIVE " AND (job_key, node_rank) > (?, ?) "                         \
      "ORDER BY job_key, node_rank LIMIT ?")                                                                 \
    X(USE, READER,                                                                                           \
      "SELECT 0, max(hour_ms - hour_ms % ?3, ?1) AS step_ms, iif(?4, project, '') AS a_project, "            \
      "iif(?5, owner, '') AS an_owner, pool, gpu_type, iif(?6, reserved, 0) AS is_reserved, "                \
      "sum(attempts), sum(gpu_ms), sum(measured_ms), sum(idle_ms), sum(energy_mj) "                          \
      "FROM hours WHERE hour_ms >= ?1 AND hour_ms < ?2 AND (?7 IS NULL OR project = ?7) "                    \
      "AND (?8 IS NULL OR owner = ?8) "                                                                      \
      "GROUP BY step_ms, a_project, an_owner, pool, gpu_type, is_reserved "                                  \
      "UNION ALL "                                                                                           \
      "SELECT gpus, attempts.created_ms, iif(?4, project, ''), iif(?5, owner, ''), attempts.pool, "          \
      "coalesce(attempts.gpu_type, ''), iif(?6, pool_kind IS 'reserved', 0), 0, 0, 0, 0, 0 "                 \
      "FROM attempts INDEXED BY attempts_live CROSS JOIN jobs ON key = job_key "                             \
      "LEFT JOIN members ON members.epoch = attempts.epoch AND node_rank = 0 "                               \
      "LEFT JOIN nodes ON nodes.name = node "                                                                \
      "WHERE attempts." SCHEMA_ATTEMPT_IS_LIVE " AND (?7 IS NULL OR project = ?7) "                          \
      "AND (?8 IS NULL OR owner = ?8)")                                                                      \
    X(OLD_HOURS, READER, "SELECT 1 FROM hours WHERE hour_ms <= ? LIMIT 1")                                   \
    X(JOB_NAME, READER, "SELECT name FROM jobs WHERE id = ?")                                                \
    X(OLDEST_WAITING, READER,                                                                                \
      "SELECT created_ms FROM jobs INDEXED BY jobs_live WHERE " SCHEMA_JOB_IS_LIVE                           \
      " AND state IN ('QUEUED', 'STAGING') ORDER BY key LIMIT 1")                                            \
    X(SECRET, READER, "SELECT {secrets} FROM secrets WHERE owner = ?1 AND project = ?2 AND name = ?3")       \
    X(SECRETS, READER, "SELECT {secrets} FROM secrets WHERE owner = ?1 AND project = ?2 ORDER BY name")      \
    X(ALL_SECRETS, READER, "SELECT {secrets} FROM secrets ORDER BY owner, project, name")                    \
    X(SECRET_COUNTS, READER,                                                                                 \
      "SELECT count(*), count(*) FILTER (WHERE owner = ?1 AND project = ?2) FROM secrets")                   \
    X(SCHEDULE, READER, "SELECT {schedules} FROM schedules WHERE id = ?")                                    \
    X(SCHEDULES, READER,                                                                                     \
      "SELECT {schedules} FROM schedules WHERE (?1 IS NULL OR owner = ?1) AND id > ?2 ORDER BY id LIMIT ?3") \
    X(SCHEDULE_COUNTS, READER,                                                                               \
      "SELECT count(*), count(*) FILTER (WHERE owner = ?1), count(*) FILTER (WHERE owner = ?1 AND name = "   \
      "?2) FROM schedules")                                                                                  \
    X(DUE_SCHEDULES, READER,                                                                                 \
      "SELECT {schedules} FROM schedules INDEXED BY schedules_next WHERE NOT paused ORDER BY next_ms, id "   \
      "LIMIT ?")                                                                                             \
    X(WEBHOOK, READER, "SELECT {webhooks} FROM webhooks WHERE id = ?")                                       \
    X(WEBHOOKS, READER,                                                                                      \
      "SELECT {webhooks} FROM webhooks WHERE (?1 IS NULL OR owner = ?1) AND id > ?2 ORDER BY id LIMIT ?3")   \
    X(DELIVERY, READER, SQL_SHOWN_DELIVERIES "WHERE deliveries.key = ?")                                     \
    X(DELIVERIES, READER,                                                                                    \
      SQL_SHOWN_DELIVERIES                                                                                   \
      "WHERE webhook = ?1 AND deliveries.key < ?2 AND (?3 IS NULL OR deliveries.state = ?3) "                \
      "ORDER BY deliveries.key DESC LIMIT ?4")                                                               \
    X(NEXT_DELIVERIES, READER,                                                                               \
      "SELECT {deliveries}, {webhooks} FROM webhooks CROSS JOIN deliveries ON deliveries.key = "             \
      "(SELECT key FROM deliveries AS d INDEXED BY deliveries_next WHERE d.webhook = webhooks.id "           \
      "AND d.state = 'PENDING' AND (d.job_key = 0 OR NOT EXISTS "                                            \
      "(SELECT 1 FROM deliveries AS e INDEXED BY deliveries_order WHERE e.webhook = d.webhook "              \
      "AND e.job_key = d.job_key AND e.key < d.key AND e.state = 'PENDING')) "                               \
      "ORDER BY next_ms, key LIMIT 1) WHERE enabled ORDER BY next_ms, deliveries.key")                       \
    X(OLD_DELIVERIES, READER,                                                                                \
      "SELECT created_ms <= ? FROM deliveries WHERE state <> 'PENDING' ORDER BY key LIMIT 1")                \
    X(AUDIT, READER,                                                                                         \
      "SELECT {audit} FROM audit WHERE seq < ?1 AND seq >= ?1 - ?2 AND (?3 IS NULL OR owner = ?3) "          \
      "AND (?4 IS NULL OR substr(path, 1, length(?4)) = ?4) ORDER BY seq DESC LIMIT ?5")                     \
    X(AUDIT_ENDS, READER,                                                                                    \
      "SELECT coalesce((SELECT max(seq) FROM audit), 0), coalesce((SELECT min(seq) FROM audit), 0)")         \
    X(OLD_AUDIT, READER,                                                                                     \
      "SELECT seq < last AND (at_ms <= ?1 OR seq <= last - ?2) FROM audit, "                                 \
      "(SELECT max(seq) AS last FROM audit) ORDER BY seq LIMIT 1")                                           \
    X(WINDOWS, READER, "SELECT {windows} FROM windows ORDER BY from_ms, id")                                 \
    X(LOST, READER, "SELECT key, {lost} FROM lost WHERE key > ? ORDER BY key LIMIT ?")                       \
    X(TOKEN, READER, "SELECT {tokens} FROM tokens WHERE id = ?")                                             \
    X(JOIN, READER, "SELECT {joins} FROM joins WHERE id = ?")                                                \
    X(TOKENS, READER,                                                                                        \
      "SELECT {tokens} FROM tokens WHERE (created_ms, id) > "                                                \
      "(coalesce((SELECT created_ms FROM tokens WHERE id = ?1), -1), ?1) ORDER BY created_ms, id LIMIT ?2")  \
    X(OLD_JOBS, READER,                                                                                      \
      "SELECT " SQL_SHOWN " FROM jobs INDEXED BY jobs_top" SQL_WITH_ARRAY                                    \
      "WHERE key > ? AND " SCHEMA_JOB_IS_NO_TASK " ORDER BY key LIMIT ?")                                    \
    X(REMOVALS, READER, "SELECT {removals} FROM removals ORDER BY job_key LIMIT ?")                          \
    X(OLD_REPLIES, READER,                                                                                   \
      "SELECT max(key) FROM (SELECT key FROM replies WHERE key <= "                                          \
      "(SELECT value FROM meta WHERE name = 'replies_forgotten') ORDER BY key LIMIT ?)")                     \
    X(FILE_USE, READER,                                                                                      \
      "SELECT freelist_count * page_size, page_count * page_size "                                           \
      "FROM pragma_freelist_count, pragma_page_count, pragma_page_size")                                     \
    X(BLOB_USES, READER,                                                                                     \
      "SELECT rowid, hash, size, bytes IS NULL, created_ms <= ?3 AND " SCHEMA_BLOB_IS_UNUSED                 \
      " FROM blobs WHERE rowid > ?1 ORDER BY rowid LIMIT ?2")                                                \
    X(LIMITS, READER, "SELECT {limits} FROM limits ORDER BY kind, name")                                     \
    X(BLOB_THAT_STAYS, READER,                                                                               \
      "SELECT {blobs} FROM blobs WHERE hash = ?1 AND (created_ms > ?2 OR NOT (" SCHEMA_BLOB_IS_UNUSED ")) "  \
      "AND (?3 IS NULL OR EXISTS (SELECT 1 FROM uses CROSS JOIN jobs ON jobs.key = uses.job_key "            \
      "WHERE uses.hash = lower(hex(?1)) AND owner = ?3) OR EXISTS (SELECT 1 FROM schedule_uses "             \
      "CROSS JOIN schedules ON schedules.id = schedule WHERE schedule_uses.hash = lower(hex(?1)) "           \
      "AND owner = ?3) OR EXISTS (SELECT 1 FROM results "                                                    \
      "CROSS JOIN attempts ON attempts.epoch = results.epoch CROSS JOIN jobs ON jobs.key = job_key "         \
      "WHERE results.hash = ?1 AND owner = ?3))")                                                            \
    X(BLOB_OF_LIVE_JOB, READER,                                                                              \
      "SELECT {blobs} FROM blobs WHERE hash = ?1 AND EXISTS (SELECT 1 FROM uses CROSS JOIN jobs "            \
      "ON jobs.key = uses.job_key WHERE uses.hash = lower(hex(?1)) AND " SCHEMA_JOB_IS_LIVE ")")             \
    X(JOB_USES, READER, "SELECT 1 FROM uses WHERE job_key = ?1 AND hash = lower(hex(?2))")                   \
    X(UPLOADS, READER, "SELECT {uploads} FROM uploads WHERE at_ms > ? ORDER BY at_ms LIMIT ?")               \
    X(BLOB, READER, "SELECT {blobs} FROM blobs WHERE hash = ?")

enum sql {
#define SQL_AS_ENUM(name, kind, text) SQL_##name,
    SQL_STATEMENTS(SQL_AS_ENUM)
#undef SQL_AS_ENUM
        SQL_COUNT
};

#endif
