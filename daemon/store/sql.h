/* SPDX-License-Identifier: Apache-2.0 */
/* Every statement that runs after the start, once: all are prepared when a connection opens, so a typo ends
 * the program at its start. Parameters are numbered in the order in which the one caller binds them. */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include "daemon/store/checks.h"
#include "daemon/store/schema.h"

/* What columns.c reads, in its order. */
#define SQL_COLUMNS_JOB                                                                                      \
    "key, id, owner, name, project, gpus, gpu_type, created_ms, state, seq, attempt, "                       \
    "user_failures, infra_failures, pool, started_ms, ended_ms, exit_code, failed_rank, "                    \
    "failed_node, cause, reason, priority, time_limit_ms, ran_ms, array_key, task"
/* Of one job, and of jobs that are shown: with its array, where it has one, and the id of the one it is of.
 */
#define SQL_COLUMNS_SHOWN                                                                                    \
    SQL_COLUMNS_JOB ", (SELECT id FROM jobs AS top WHERE top.key = jobs.array_key), " SQL_COLUMNS_ARRAY
#define SQL_COLUMNS_ARRAY      "whole, tasks, parallel, placed, running, succeeded, failed, canceled, worst_code"
#define SQL_WITH_ARRAY         " LEFT JOIN arrays ON whole = key "
#define SQL_COLUMNS_EVENT      "job_key, seq, at_ms, kind, attempt, detail"
#define SQL_COLUMNS_DEPENDENCY "job_key, on_key, kind"
#define SQL_COLUMNS_ATTEMPT                                                                                  \
    "attempts.epoch, attempts.job_key, attempts.number, attempts.pool, attempts.created_ms, "                \
    "attempts.state, attempts.cause, attempts.cause_text, attempts.master_address, "                         \
    "attempts.master_port, attempts.started_ms, attempts.ended_ms, attempts.failed_rank, "                   \
    "attempts.failed_code, attempts.claim, attempts.warned_ms, attempts.checkpoint_ms, attempts.gpu_type, "  \
    "attempts.timing"
#define SQL_COLUMNS_MEMBER                                                                                   \
    "members.epoch, members.node_rank, members.node, members.first_rank, members.local_ranks, "              \
    "members.devices, members.state, members.timing, members.start, members.marks"
#define SQL_COLUMNS_RANK   "epoch, rank, code, signal, at_ms, out_bytes, err_bytes"
#define SQL_COLUMNS_RESULT "results.epoch, rank, kind, results.size, results.hash, json"
#define SQL_COLUMNS_NODE                                                                                     \
    "name, boot_id, host_id, version, address, pool, pool_kind, state, reason, isolation, slots, "           \
    "devices, registered_ms, labels, expires_at_ms, agent_expires_at_ms, agent_id"
#define SQL_COLUMNS_WINDOW  "id, nodes, pool, from_ms, until_ms, hard, reason, owner, created_ms"
#define SQL_COLUMNS_HISTORY "project, owner, name, gpus, limited, count, ran_ms, limit_ms, error_percent"
#define SQL_COLUMNS_USAGE   "project, owner, gpu_ms, spent_ms, at_ms"
#define SQL_COLUMNS_LIMITS  "kind, name, limits"
#define SQL_COLUMNS_TOKEN   "id, secret, role, owner, created_ms, expires_ms, revoked, node"
#define SQL_COLUMNS_JOIN    "id, secret, pool, reserved, owner, created_ms, expires_ms, node, token"
#define SQL_COLUMNS_BLOB    "hash, size, bytes, created_ms"
#define SQL_COLUMNS_LOST    "epoch, node, job_id, known, began_ms, ended_ms, code"

/* All parts of the keys of jobs, the newest first. The join that uses it says CROSS JOIN, which keeps it
 * lazy. */
#define SQL_WITH_PARTS                                                                                       \
    "WITH RECURSIVE part (n) AS "                                                                            \
    "(SELECT max(key) >> " SCHEMA_PART_BITS " FROM jobs UNION ALL SELECT n - 1 FROM part WHERE n > 0) "

/* Parameters of a list of jobs: before, limit, owner, name, project, since, prefix of the id, key of the
 * array whose tasks they are, then one a state: its name when it is wanted. '{' follows 'z', the last
 * character of ids. */
#define SQL_STATE_PARAMETER(...) ", ?"
#define SQL_PREFIX_FITS          "id >= ?7 AND id < ?7 || '{'"
#define SQL_JOBS_FILTER                                                                                      \
    "key < ?1 AND (?3 IS NULL OR owner = ?3) AND (?4 IS NULL OR name = ?4) "                                 \
    "AND (?5 IS NULL OR project = ?5) AND created_ms >= ?6 "                                                 \
    "AND (?7 IS NULL OR (" SQL_PREFIX_FITS ")) AND (?8 = 0 OR array_key = ?8) "                              \
    "AND state IN (NULL" JOB_STATES(SQL_STATE_PARAMETER)                                                     \
    ") "
#define SQL_JOBS_PAGE "ORDER BY key DESC LIMIT ?2"
#define SQL_JOBS_TOP  SQL_JOBS_FILTER "AND " SCHEMA_JOB_IS_NO_TASK " " SQL_JOBS_PAGE

/* Rows (node, devices) of all live attempts. */
#define SQL_LIVE_MEMBERS                                                                                     \
    "(SELECT node, devices FROM attempts INDEXED BY attempts_live JOIN members USING (epoch) "               \
    "WHERE attempts." SCHEMA_ATTEMPT_IS_LIVE ") "
/* How many devices a list like "0,1,5" names. */
#define SQL_DEVICE_COUNT "length(devices) - length(replace(devices, ',', '')) + (devices <> '')"

/* X(name, writer or reader, text) */
#define SQL_STATEMENTS(X)                                                                                    \
    X(BEGIN, WRITER, "BEGIN IMMEDIATE")                                                                      \
    X(COMMIT, WRITER, "COMMIT")                                                                              \
    STORE_CHECKS(X)                                                                                          \
    X(BUMP, WRITER, "UPDATE meta SET value = max(value, ?) + 1 WHERE name = 'incarnation' RETURNING value")  \
    X(INCARNATION, WRITER, "SELECT value FROM meta WHERE name = 'incarnation'")                              \
    X(PUT_LOST, WRITER,                                                                                      \
      "INSERT INTO lost (epoch, node, job_id, known, began_ms, ended_ms, code) "                             \
      "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE coalesce((SELECT max(key) FROM lost), 0) < ?8 "               \
      "ON CONFLICT (epoch, node) DO UPDATE SET ended_ms = excluded.ended_ms, code = excluded.code")          \
    X(NEXT_KEY, WRITER, "SELECT coalesce(max(key), 0) + 1 FROM jobs")                                        \
    X(INSERT_JOB, WRITER,                                                                                    \
      "INSERT INTO jobs (" SQL_COLUMNS_JOB ") "                                                              \
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)")         \
    X(INSERT_TASK, WRITER,                                                                                   \
      "INSERT INTO jobs (" SQL_COLUMNS_JOB ") "                                                              \
      "SELECT ?1, ?2, owner, name, project, gpus, gpu_type, ?3, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "   \
      "?15, ?16, ?17, ?18, ?19, ?20, ?21, ?4, ?5 FROM jobs WHERE key = ?4")                                  \
    X(PUT_ARRAY, WRITER,                                                                                     \
      "INSERT INTO arrays (" SQL_COLUMNS_ARRAY ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "                       \
      "ON CONFLICT (whole) DO UPDATE SET placed = excluded.placed, running = excluded.running, "             \
      "succeeded = excluded.succeeded, failed = excluded.failed, canceled = excluded.canceled, "             \
      "worst_code = excluded.worst_code")                                                                    \
    X(INSERT_SPEC, WRITER, "INSERT INTO specs (job_key, shown, spec) VALUES (?, ?, ?)")                      \
    X(UPDATE_JOB, WRITER,                                                                                    \
      "UPDATE jobs SET state = ?2, seq = ?3, attempt = ?4, user_failures = ?5, infra_failures = ?6, "        \
      "pool = ?7, started_ms = ?8, ended_ms = ?9, exit_code = ?10, failed_rank = ?11, "                      \
      "failed_node = ?12, cause = ?13, reason = ?14, priority = ?15, time_limit_ms = ?16, "                  \
      "ran_ms = ?17 WHERE key = ?1")                                                                         \
    X(INSERT_EVENT, WRITER, "INSERT INTO events (" SQL_COLUMNS_EVENT ") VALUES (?, ?, ?, ?, ?, ?)")          \
    X(INSERT_DEPENDENCY, WRITER, "INSERT INTO dependencies (" SQL_COLUMNS_DEPENDENCY ") VALUES (?, ?, ?)")   \
    X(INSERT_ATTEMPT, WRITER,                                                                                \
      "INSERT INTO attempts (epoch, job_key, number, pool, gpu_type, created_ms, state, cause, cause_text, " \
      "master_address, master_port, started_ms, ended_ms, failed_rank, failed_code, claim, "                 \
      "warned_ms, checkpoint_ms, timing) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")  \
    X(UPDATE_ATTEMPT, WRITER,                                                                                \
      "UPDATE attempts SET state = ?2, cause = ?3, cause_text = ?4, master_address = ?5, "                   \
      "master_port = ?6, started_ms = ?7, ended_ms = ?8, failed_rank = ?9, failed_code = ?10, "              \
      "claim = ?11, warned_ms = ?12, checkpoint_ms = ?13, timing = ?14 WHERE epoch = ?1")                    \
    X(INSERT_MEMBER, WRITER,                                                                                 \
      "INSERT INTO members (epoch, node_rank, node, first_rank, local_ranks, devices, state, timing, "       \
      "start, "                                                                                              \
      "marks) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                                                        \
    X(UPDATE_MEMBER, WRITER,                                                                                 \
      "UPDATE members SET state = ?3, timing = ?4, start = ?5, marks = ?6 "                                  \
      "WHERE epoch = ?1 AND node_rank = ?2")                                                                 \
    X(PUT_RANK, WRITER,                                                                                      \
      "INSERT INTO ranks (" SQL_COLUMNS_RANK ") VALUES (?, ?, ?, ?, ?, ?, ?) "                               \
      "ON CONFLICT (epoch, rank) DO UPDATE SET code = excluded.code, signal = excluded.signal, "             \
      "at_ms = excluded.at_ms, out_bytes = excluded.out_bytes, err_bytes = excluded.err_bytes")              \
    X(PUT_RESULT, WRITER,                                                                                    \
      "INSERT INTO results (epoch, rank, kind, size, hash, json) VALUES (?, ?, ?, ?, ?, ?) "                 \
      "ON CONFLICT (epoch, rank) DO UPDATE SET kind = excluded.kind, size = excluded.size, "                 \
      "hash = excluded.hash, json = excluded.json")                                                          \
    X(PUT_NODE, WRITER,                                                                                      \
      "INSERT INTO nodes (" SQL_COLUMNS_NODE ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) " \
      "ON CONFLICT (name) DO UPDATE SET boot_id = excluded.boot_id, host_id = excluded.host_id, "            \
      "version = excluded.version, address = excluded.address, pool = excluded.pool, "                       \
      "pool_kind = excluded.pool_kind, state = excluded.state, reason = excluded.reason, "                   \
      "isolation = excluded.isolation, slots = excluded.slots, devices = excluded.devices, "                 \
      "registered_ms = excluded.registered_ms, labels = excluded.labels, "                                   \
      "expires_at_ms = excluded.expires_at_ms, agent_expires_at_ms = excluded.agent_expires_at_ms, "         \
      "agent_id = excluded.agent_id")                                                                        \
    X(INSERT_WINDOW, WRITER,                                                                                 \
      "INSERT INTO windows (" SQL_COLUMNS_WINDOW ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")                     \
    X(DELETE_WINDOW, WRITER, "DELETE FROM windows WHERE id = ?")                                             \
    X(LOAD_WINDOWS, WRITER, "SELECT " SQL_COLUMNS_WINDOW " FROM windows ORDER BY from_ms, id")               \
    X(INSERT_REPLY, WRITER,                                                                                  \
      "INSERT INTO replies (key, scope, body, job_key, status, at_ms, answer) "                              \
      "VALUES (?, ?, ?, ?, ?, ?, ?)")                                                                        \
    X(FIND_REPLY, WRITER, "SELECT scope, body, status, answer FROM replies WHERE key = ?")                   \
    X(LOAD_SCOPES, WRITER, "SELECT key, scope FROM replies ORDER BY key")                                    \
    X(INSERT_TOKEN, WRITER, "INSERT INTO tokens (" SQL_COLUMNS_TOKEN ") VALUES (?, ?, ?, ?, ?, ?, ?, ?)")    \
    X(REVOKE_TOKEN, WRITER, "UPDATE tokens SET revoked = 1 WHERE id = ?")                                    \
    X(REVOKE_TOKENS_OF_NODE, WRITER, "UPDATE tokens SET revoked = 1 WHERE node = ?")                         \
    X(DELETE_NODE, WRITER, "DELETE FROM nodes WHERE name = ?")                                               \
    X(INSERT_JOIN, WRITER,                                                                                   \
      "INSERT INTO joins (" SQL_COLUMNS_JOIN ") VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL)")                   \
    X(DELETE_OLD_JOINS, WRITER, "DELETE FROM joins WHERE expires_ms < ?")                                    \
    X(USE_JOIN, WRITER, "UPDATE joins SET node = ?2, token = ?3 WHERE id = ?1 AND node IS NULL")             \
    X(PUT_BLOB, WRITER,                                                                                      \
      "INSERT INTO blobs (" SQL_COLUMNS_BLOB ") VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING")          \
    X(PUT_HISTORY, WRITER,                                                                                   \
      "INSERT INTO history (" SQL_COLUMNS_HISTORY ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "                    \
      "ON CONFLICT (project, owner, name, gpus, limited) DO UPDATE SET count = excluded.count, "             \
      "ran_ms = excluded.ran_ms, limit_ms = excluded.limit_ms, error_percent = excluded.error_percent")      \
    X(PUT_USAGE, WRITER,                                                                                     \
      "INSERT INTO usage (" SQL_COLUMNS_USAGE ") VALUES (?, ?, ?, ?, ?) "                                    \
      "ON CONFLICT (project, owner) DO UPDATE SET gpu_ms = excluded.gpu_ms, "                                \
      "spent_ms = excluded.spent_ms, at_ms = excluded.at_ms")                                                \
    X(DELETE_USAGE, WRITER, "DELETE FROM usage WHERE project = ? AND owner = ?")                             \
    X(PUT_LIMITS, WRITER,                                                                                    \
      "INSERT INTO limits (" SQL_COLUMNS_LIMITS ") VALUES (?, ?, ?) "                                        \
      "ON CONFLICT (kind, name) DO UPDATE SET limits = excluded.limits")                                     \
    X(DELETE_LIMITS, WRITER, "DELETE FROM limits WHERE kind = ? AND name = ?")                               \
    X(LOAD_HISTORY, WRITER, "SELECT " SQL_COLUMNS_HISTORY " FROM history ORDER BY rowid")                    \
    X(LOAD_USAGE, WRITER, "SELECT " SQL_COLUMNS_USAGE " FROM usage ORDER BY project, owner")                 \
    X(LOAD_LIMITS, WRITER, "SELECT " SQL_COLUMNS_LIMITS " FROM limits ORDER BY kind, name")                  \
    X(LOAD_NODES, WRITER, "SELECT " SQL_COLUMNS_NODE " FROM nodes ORDER BY name")                            \
    X(LOAD_JOBS, WRITER,                                                                                     \
      "SELECT " SQL_COLUMNS_JOB ", spec, "                                                                   \
      "(SELECT at_ms FROM events WHERE events.job_key = key AND events.seq = jobs.seq) "                     \
      "FROM jobs INDEXED BY jobs_live "                                                                      \
      "JOIN specs ON job_key = coalesce(array_key, key) WHERE " SCHEMA_JOB_IS_LIVE " ORDER BY key")          \
    X(LOAD_ARRAYS, WRITER,                                                                                   \
      "SELECT " SQL_COLUMNS_ARRAY " FROM jobs INDEXED BY jobs_live "                                         \
      "JOIN arrays ON whole = key WHERE " SCHEMA_JOB_IS_LIVE " ORDER BY key")                                \
    X(LOAD_DEPENDENCIES, WRITER,                                                                             \
      "SELECT " SQL_COLUMNS_DEPENDENCY " FROM jobs INDEXED BY jobs_live "                                    \
      "CROSS JOIN dependencies ON job_key = key WHERE " SCHEMA_JOB_IS_LIVE " ORDER BY key, on_key")          \
    X(LOAD_ATTEMPTS, WRITER,                                                                                 \
      "SELECT " SQL_COLUMNS_ATTEMPT " FROM jobs INDEXED BY jobs_live "                                       \
      "JOIN attempts ON job_key = key AND number = attempt WHERE " SCHEMA_JOB_IS_LIVE " ORDER BY key")       \
    X(LOAD_MEMBERS, WRITER,                                                                                  \
      "SELECT " SQL_COLUMNS_MEMBER " FROM jobs INDEXED BY jobs_live "                                        \
      "JOIN attempts ON job_key = key AND number = attempt JOIN members USING (epoch) "                      \
      "WHERE " SCHEMA_JOB_IS_LIVE " ORDER BY key, node_rank")                                                \
    X(JOB, READER,                                                                                           \
      SQL_WITH_PARTS "SELECT " SQL_COLUMNS_SHOWN ", coalesce(shown, spec) FROM part "                        \
                     "CROSS JOIN jobs INDEXED BY jobs_id ON " SCHEMA_JOB_PART " = n AND id = ? "             \
                     "CROSS JOIN specs ON job_key = coalesce(array_key, key)" SQL_WITH_ARRAY "LIMIT 1")      \
    X(JOB_BY_KEY, READER,                                                                                    \
      "SELECT " SQL_COLUMNS_SHOWN ", spec FROM jobs "                                                        \
      "JOIN specs ON job_key = coalesce(array_key, key)" SQL_WITH_ARRAY "WHERE key = ?")                     \
    X(JOBS, READER,                                                                                          \
      "SELECT " SQL_COLUMNS_SHOWN " FROM jobs INDEXED BY jobs_top" SQL_WITH_ARRAY "WHERE " SQL_JOBS_TOP)     \
    X(JOBS_OF_OWNER, READER,                                                                                 \
      "SELECT " SQL_COLUMNS_SHOWN " FROM jobs INDEXED BY jobs_owner" SQL_WITH_ARRAY                          \
      "WHERE owner = ?3 AND " SQL_JOBS_TOP)                                                                  \
    X(JOBS_LIVE, READER,                                                                                     \
      "SELECT " SQL_COLUMNS_SHOWN " FROM jobs INDEXED BY jobs_live" SQL_WITH_ARRAY                           \
      "WHERE " SCHEMA_JOB_IS_LIVE " AND " SQL_JOBS_TOP)                                                      \
    X(JOBS_OF_ARRAY, READER,                                                                                 \
      "SELECT " SQL_COLUMNS_SHOWN " FROM jobs INDEXED BY jobs_array" SQL_WITH_ARRAY                          \
      "WHERE array_key = ?8 AND " SQL_JOBS_FILTER SQL_JOBS_PAGE)                                             \
    X(JOBS_BY_PREFIX, READER,                                                                                \
      SQL_WITH_PARTS "SELECT " SQL_COLUMNS_SHOWN " FROM part "                                               \
                     "CROSS JOIN jobs INDEXED BY jobs_id ON " SCHEMA_JOB_PART                                \
                     " = n AND " SQL_PREFIX_FITS SQL_WITH_ARRAY "WHERE " SQL_JOBS_FILTER SQL_JOBS_PAGE)      \
    X(EVENTS, READER,                                                                                        \
      "SELECT " SQL_COLUMNS_EVENT " FROM events WHERE job_key = ? AND seq > ? ORDER BY seq LIMIT ?")         \
    X(NEWEST_EVENT, READER,                                                                                  \
      "SELECT " SQL_COLUMNS_EVENT " FROM events WHERE job_key = ? AND kind = ? ORDER BY seq DESC LIMIT 1")   \
    X(DEPENDENCIES, READER,                                                                                  \
      "SELECT " SQL_COLUMNS_DEPENDENCY ", id, state, started_ms FROM dependencies "                          \
      "CROSS JOIN jobs ON key = on_key WHERE job_key = ? ORDER BY on_key")                                   \
    X(ATTEMPTS, READER,                                                                                      \
      "SELECT " SQL_COLUMNS_ATTEMPT " FROM attempts WHERE job_key = ? ORDER BY number DESC")                 \
    X(MEMBERS, READER, "SELECT " SQL_COLUMNS_MEMBER " FROM members WHERE epoch = ? ORDER BY node_rank")      \
    X(RANKS, READER, "SELECT " SQL_COLUMNS_RANK " FROM ranks WHERE epoch = ? ORDER BY rank")                 \
    X(RESULTS, READER,                                                                                       \
      "SELECT " SQL_COLUMNS_RESULT ", bytes FROM results LEFT JOIN blobs ON blobs.hash = results.hash "      \
      "WHERE epoch = ? AND rank > ? ORDER BY rank LIMIT ?")                                                  \
    X(EPOCH, READER,                                                                                         \
      "SELECT id, job_key, number, attempts.state FROM attempts JOIN jobs ON jobs.key = job_key "            \
      "WHERE epoch = ?")                                                                                     \
    X(NODE, READER,                                                                                          \
      "SELECT " SQL_COLUMNS_NODE ", "                                                                        \
      "(SELECT coalesce(sum(" SQL_DEVICE_COUNT "), 0) FROM " SQL_LIVE_MEMBERS "WHERE node = ?1) "            \
      "FROM nodes WHERE name = ?1")                                                                          \
    X(NODES, READER,                                                                                         \
      "SELECT " SQL_COLUMNS_NODE ", coalesce(used, 0) FROM nodes LEFT JOIN "                                 \
      "(SELECT node, sum(" SQL_DEVICE_COUNT ") AS used FROM " SQL_LIVE_MEMBERS "GROUP BY node) "             \
      "ON node = name ORDER BY name")                                                                        \
    X(WINDOWS, READER, "SELECT " SQL_COLUMNS_WINDOW " FROM windows ORDER BY from_ms, id")                    \
    X(LOST, READER, "SELECT key, " SQL_COLUMNS_LOST " FROM lost WHERE key > ? ORDER BY key LIMIT ?")         \
    X(TOKEN, READER, "SELECT " SQL_COLUMNS_TOKEN " FROM tokens WHERE id = ?")                                \
    X(JOIN, READER, "SELECT " SQL_COLUMNS_JOIN " FROM joins WHERE id = ?")                                   \
    X(TOKENS, READER, "SELECT " SQL_COLUMNS_TOKEN " FROM tokens ORDER BY created_ms, id")                    \
    X(BLOB, READER, "SELECT " SQL_COLUMNS_BLOB " FROM blobs WHERE hash = ?")                                 \
    X(QUEUE_FACTS, READER,                                                                                   \
      "WITH gpu AS MATERIALIZED (SELECT name AS node, state, value ->> 'index' AS device "                   \
      "FROM nodes, json_each(nodes.devices) "                                                                \
      "WHERE state <> 'LOST' AND (?2 IS NULL OR instr('|' || lower(?2) || '|', '|' || lower(value ->> "      \
      "'type') || '|') > 0)), "                                                                              \
      "held AS MATERIALIZED (SELECT node, value AS device "                                                  \
      "FROM " SQL_LIVE_MEMBERS "JOIN json_each('[' || devices || ']')) "                                     \
      "SELECT (SELECT count(*) FROM jobs INDEXED BY jobs_live "                                              \
      "WHERE " SCHEMA_JOB_IS_LIVE " AND key < ?1 AND state = 'QUEUED'), "                                    \
      "(SELECT count(*) FROM gpu), "                                                                         \
      "(SELECT count(*) FROM gpu JOIN held USING (node, device)), "                                          \
      "(SELECT count(*) FROM gpu WHERE state <> 'READY')")

enum sql {
#define SQL_AS_ENUM(name, kind, text) SQL_##name,
    SQL_STATEMENTS(SQL_AS_ENUM)
#undef SQL_AS_ENUM
        SQL_COUNT
};

#endif
