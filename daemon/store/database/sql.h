/* SPDX-License-Identifier: Apache-2.0 */
/* Every statement that runs after the start, once: all are prepared when a connection opens, so a typo ends
 * the program at its start. What stands in braces follows from the tables: see table_sql. Other parameters
 * are numbered in the order in which the one caller binds them. */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include "daemon/store/database/checks.h"
#include "daemon/store/database/schema.h"

/* Of a table: a row, the same in the place of one with its key, what of it changes, a row less. */
#define SQL_INSERT(table)  "INSERT INTO " table " ({columns " table "}) VALUES ({values " table "})"
#define SQL_REPLACE(table) " ON CONFLICT ({keys " table "}) DO UPDATE SET {replace " table "}"
#define SQL_PUT(table)     SQL_INSERT(table) SQL_REPLACE(table)
#define SQL_UPDATE(table)  "UPDATE " table " SET {set " table "} WHERE {where " table "}"
#define SQL_DELETE(table)  "DELETE FROM " table " WHERE {where " table "}"

/* Of one job, and of jobs that are shown: with the id of the array that it is a task of, and its array, where
 * it is one. */
#define SQL_SHOWN      "{jobs}, (SELECT id FROM jobs AS top WHERE top.key = jobs.array_key), {arrays}"
#define SQL_WITH_ARRAY " LEFT JOIN arrays ON whole = key "

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
      "INSERT INTO lost ({columns lost}) SELECT {values lost} "                                              \
      "WHERE coalesce((SELECT max(key) FROM lost), 0) < ?8" SQL_REPLACE("lost"))                             \
    X(NEXT_KEY, WRITER, "SELECT coalesce(max(key), 0) + 1 FROM jobs")                                        \
    X(INSERT_JOB, WRITER, SQL_INSERT("jobs"))                                                                \
    X(INSERT_TASK, WRITER,                                                                                   \
      "INSERT INTO jobs ({own columns jobs}, {shared columns jobs}) "                                        \
      "SELECT {own values jobs}, {shared columns jobs} FROM jobs WHERE key = ?1")                            \
    X(UPDATE_JOB, WRITER, SQL_UPDATE("jobs"))                                                                \
    X(INSERT_SPEC, WRITER, SQL_INSERT("specs"))                                                              \
    X(PUT_ARRAY, WRITER, SQL_PUT("arrays"))                                                                  \
    X(INSERT_EVENT, WRITER, SQL_INSERT("events"))                                                            \
    X(INSERT_DEPENDENCY, WRITER, SQL_INSERT("dependencies"))                                                 \
    X(INSERT_ATTEMPT, WRITER, SQL_INSERT("attempts"))                                                        \
    X(UPDATE_ATTEMPT, WRITER, SQL_UPDATE("attempts"))                                                        \
    X(INSERT_MEMBER, WRITER, SQL_INSERT("members"))                                                          \
    X(UPDATE_MEMBER, WRITER, SQL_UPDATE("members"))                                                          \
    X(PUT_RANK, WRITER, SQL_PUT("ranks"))                                                                    \
    X(PUT_RESULT, WRITER, SQL_PUT("results"))                                                                \
    X(PUT_NODE, WRITER, SQL_PUT("nodes"))                                                                    \
    X(DELETE_NODE, WRITER, SQL_DELETE("nodes"))                                                              \
    X(INSERT_WINDOW, WRITER, SQL_INSERT("windows"))                                                          \
    X(DELETE_WINDOW, WRITER, SQL_DELETE("windows"))                                                          \
    X(INSERT_REPLY, WRITER, SQL_INSERT("replies"))                                                           \
    X(FIND_REPLY, WRITER, "SELECT {replies} FROM replies WHERE key = ?")                                     \
    X(LOAD_SCOPES, WRITER, "SELECT key, scope FROM replies ORDER BY key")                                    \
    X(INSERT_TOKEN, WRITER, SQL_INSERT("tokens"))                                                            \
    X(REVOKE_TOKEN, WRITER, "UPDATE tokens SET revoked = 1 WHERE {where tokens}")                            \
    X(REVOKE_TOKENS_OF_NODE, WRITER, "UPDATE tokens SET revoked = 1 WHERE node = ?")                         \
    X(INSERT_JOIN, WRITER, SQL_INSERT("joins"))                                                              \
    X(DELETE_OLD_JOINS, WRITER, "DELETE FROM joins WHERE expires_ms < ?")                                    \
    X(USE_JOIN, WRITER, SQL_UPDATE("joins") " AND node IS NULL")                                             \
    X(PUT_BLOB, WRITER, SQL_INSERT("blobs") " ON CONFLICT (hash) DO NOTHING")                                \
    X(PUT_HISTORY, WRITER, SQL_PUT("history"))                                                               \
    X(PUT_USAGE, WRITER, SQL_PUT("usage"))                                                                   \
    X(DELETE_USAGE, WRITER, SQL_DELETE("usage"))                                                             \
    X(PUT_LIMITS, WRITER, SQL_PUT("limits"))                                                                 \
    X(DELETE_LIMITS, WRITER, SQL_DELETE("limits"))                                                           \
    X(LOAD_WINDOWS, WRITER, "SELECT {windows} FROM windows ORDER BY from_ms, id")                            \
    X(LOAD_HISTORY, WRITER, "SELECT {history} FROM history ORDER BY rowid")                                  \
    X(LOAD_USAGE, WRITER, "SELECT {usage} FROM usage ORDER BY project, owner")                               \
    X(LOAD_LIMITS, WRITER, "SELECT {limits} FROM limits ORDER BY kind, name")                                \
    X(LOAD_NODES, WRITER, "SELECT {nodes} FROM nodes ORDER BY name")                                         \
    X(LOAD_JOBS, WRITER,                                                                                     \
      "SELECT {jobs}, spec, "                                                                                \
      "(SELECT at_ms FROM events WHERE events.job_key = key AND events.seq = jobs.seq) "                     \
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
      SQL_WITH_PARTS "SELECT " SQL_SHOWN ", coalesce(shown, spec) FROM part "                                \
                     "CROSS JOIN jobs INDEXED BY jobs_id ON " SCHEMA_JOB_PART " = n AND id = ? "             \
                     "CROSS JOIN specs ON job_key = coalesce(array_key, key)" SQL_WITH_ARRAY "LIMIT 1")      \
    X(JOB_BY_KEY, READER,                                                                                    \
      "SELECT " SQL_SHOWN ", spec FROM jobs "                                                                \
      "JOIN specs ON job_key = coalesce(array_key, key)" SQL_WITH_ARRAY "WHERE key = ?")                     \
    X(JOBS, READER,                                                                                          \
      "SELECT " SQL_SHOWN " FROM jobs INDEXED BY jobs_top" SQL_WITH_ARRAY "WHERE " SQL_JOBS_TOP)             \
    X(JOBS_OF_OWNER, READER,                                                                                 \
      "SELECT " SQL_SHOWN " FROM jobs INDEXED BY jobs_owner" SQL_WITH_ARRAY                                  \
      "WHERE owner = ?3 AND " SQL_JOBS_TOP)                                                                  \
    X(JOBS_LIVE, READER,                                                                                     \
      "SELECT " SQL_SHOWN " FROM jobs INDEXED BY jobs_live" SQL_WITH_ARRAY "WHERE " SCHEMA_JOB_IS_LIVE       \
      " AND " SQL_JOBS_TOP)                                                                                  \
    X(JOBS_OF_ARRAY, READER,                                                                                 \
      "SELECT " SQL_SHOWN " FROM jobs INDEXED BY jobs_array" SQL_WITH_ARRAY                                  \
      "WHERE array_key = ?8 AND " SQL_JOBS_FILTER SQL_JOBS_PAGE)                                             \
    X(JOBS_BY_PREFIX, READER,                                                                                \
      SQL_WITH_PARTS "SELECT " SQL_SHOWN " FROM part "                                                       \
                     "CROSS JOIN jobs INDEXED BY jobs_id ON " SCHEMA_JOB_PART                                \
                     " = n AND " SQL_PREFIX_FITS SQL_WITH_ARRAY "WHERE " SQL_JOBS_FILTER SQL_JOBS_PAGE)      \
    X(EVENTS, READER, "SELECT {events} FROM events WHERE job_key = ? AND seq > ? ORDER BY seq LIMIT ?")      \
    X(NEWEST_EVENT, READER,                                                                                  \
      "SELECT {events} FROM events WHERE job_key = ? AND kind = ? ORDER BY seq DESC LIMIT 1")                \
    X(DEPENDENCIES, READER,                                                                                  \
      "SELECT {dependencies}, id, state, started_ms FROM dependencies "                                      \
      "CROSS JOIN jobs ON key = on_key WHERE job_key = ? ORDER BY on_key")                                   \
    X(ATTEMPTS, READER, "SELECT {attempts} FROM attempts WHERE job_key = ? ORDER BY number DESC")            \
    X(MEMBERS, READER, "SELECT {members} FROM members WHERE epoch = ? ORDER BY node_rank")                   \
    X(RANKS, READER, "SELECT {ranks} FROM ranks WHERE epoch = ? ORDER BY rank")                              \
    X(RESULTS, READER,                                                                                       \
      "SELECT {results}, bytes FROM results LEFT JOIN blobs ON blobs.hash = results.hash "                   \
      "WHERE epoch = ? AND rank > ? ORDER BY rank LIMIT ?")                                                  \
    X(ATTEMPT_ID, READER,                                                                                    \
      "SELECT id, job_key, number, attempts.state FROM attempts JOIN jobs ON jobs.key = job_key "            \
      "WHERE epoch = ?")                                                                                     \
    X(NODE, READER,                                                                                          \
      "SELECT {nodes}, "                                                                                     \
      "(SELECT coalesce(sum(" SQL_DEVICE_COUNT "), 0) FROM " SQL_LIVE_MEMBERS "WHERE node = ?1) "            \
      "FROM nodes WHERE name = ?1")                                                                          \
    X(NODES, READER,                                                                                         \
      "SELECT {nodes}, coalesce(used, 0) FROM nodes LEFT JOIN "                                              \
      "(SELECT node, sum(" SQL_DEVICE_COUNT ") AS used FROM " SQL_LIVE_MEMBERS "GROUP BY node) "             \
      "ON node = name ORDER BY name")                                                                        \
    X(WINDOWS, READER, "SELECT {windows} FROM windows ORDER BY from_ms, id")                                 \
    X(LOST, READER, "SELECT key, {lost} FROM lost WHERE key > ? ORDER BY key LIMIT ?")                       \
    X(TOKEN, READER, "SELECT {tokens} FROM tokens WHERE id = ?")                                             \
    X(JOIN, READER, "SELECT {joins} FROM joins WHERE id = ?")                                                \
    X(TOKENS, READER, "SELECT {tokens} FROM tokens ORDER BY created_ms, id")                                 \
    X(BLOB, READER, "SELECT {blobs} FROM blobs WHERE hash = ?")

enum sql {
#define SQL_AS_ENUM(name, kind, text) SQL_##name,
    SQL_STATEMENTS(SQL_AS_ENUM)
#undef SQL_AS_ENUM
        SQL_COUNT
};

#endif
