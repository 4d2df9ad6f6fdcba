/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, version by version; schema_version.c makes and migrates them.
 * daemon/core/model/change.h says what the rows mean, sql.h has the queries.
 *
 * Submissions limit the speed of the whole, and their cost is the number of pages that they touch: each page
 * goes whole into the WAL and later into the file. A row at the end of a table or index shares its page with
 * its neighbours of the same transaction; a row at a random place has a page for itself. Therefore no index
 * here is in order of a random value:
 * - jobs_id is in order of id only within 1,024 jobs. It serves the newest ones; the ids of older ones are in
 *   job_ids, too, in few large runs, which job_index.c makes.
 * - replies has no index by scope: scopes.c keeps that in memory.
 * The jobs of a node are rows of node_jobs, which costs a start one more page a node: the newest of that
 * node. An index of members would cost the same, and have them in the order of attempts, which no list of
 * jobs has. The text of a job's spec has a table of its own because a job's row is written again with each
 * change of state. */
#include "daemon/store/database/schema.h"

#include <stddef.h>

#include "proto/limits.h"

/* "CASE column WHEN 'A' THEN 1 ... ELSE 0 END": one of the words of a list of proto/states.h. A list that
 * grows needs a migration that makes the table anew. */
#define IS_NAME(name, ...)               " WHEN '" #name "' THEN 1"
#define IS_SPELLING(name, spelling, ...) " WHEN '" spelling "' THEN 1"
#define ONE_OF(column, words)            "CHECK (CASE " column words " ELSE 0 END)"

#define A_JOB_STATE      ONE_OF("state", JOB_STATES(IS_NAME))
#define AN_ATTEMPT_STATE ONE_OF("state", ATTEMPT_STATES(IS_NAME))
#define A_MEMBER_STATE   ONE_OF("state", MEMBER_STATES(IS_NAME))
#define A_NODE_STATE     ONE_OF("state", NODE_STATES(IS_NAME))
#define A_CAUSE          ONE_OF("cause", CAUSES(IS_NAME))
#define AN_EVENT_KIND    ONE_OF("kind", EVENT_KINDS(IS_SPELLING))
#define A_POOL_KIND      ONE_OF("pool_kind", POOL_KINDS(IS_SPELLING))
#define AN_ISOLATION     ONE_OF("isolation", ISOLATIONS(IS_SPELLING))
#define A_ROLE           ONE_OF("role", ROLES(IS_SPELLING))
#define A_CLAIM          ONE_OF("claim", CLAIMS(IS_SPELLING))
#define AN_ACCOUNT_KIND  ONE_OF("kind", ACCOUNT_KINDS(IS_SPELLING))
#define A_DEPENDENCY     ONE_OF("kind", DEPENDENCIES(IS_SPELLING))
#define A_RESULT_KIND    ONE_OF("kind", RESULT_KINDS(IS_SPELLING))
#define A_WEBHOOK_SCOPE  ONE_OF("scope", WEBHOOK_SCOPES(IS_SPELLING))
#define A_DELIVERY_STATE ONE_OF("state", DELIVERY_STATES(IS_NAME))
#define AN_OVERLAP       ONE_OF("overlap", SCHEDULE_OVERLAPS(IS_SPELLING))
#define A_MISSED         ONE_OF("missed", SCHEDULE_MISSES(IS_SPELLING))
#define AN_OUTCOME       ONE_OF("outcome", SCHEDULE_OUTCOMES(IS_SPELLING))

/* Tables whose words come from lists that have grown: a version makes them anew. */
#define TABLE_OF_JOBS                                                                                        \
    "CREATE TABLE jobs (\n"                                                                                  \
    "  key INTEGER PRIMARY KEY, -- increases with every submission\n"                                        \
    "  id TEXT NOT NULL, -- 16 random characters: the name of the job outside\n"                             \
    "  owner TEXT NOT NULL, -- of the token that submitted it\n"                                             \
    "  name TEXT, -- given by the owner; NULL: none\n"                                                       \
    "  project TEXT NOT NULL,\n"                                                                             \
    "  gpus INTEGER NOT NULL, -- in total over all nodes\n"                                                  \
    "  gpu_type TEXT, -- NULL: any\n"                                                                        \
    "  created_ms INTEGER NOT NULL, -- wall clock, as all columns that end so\n"                             \
    "  state TEXT NOT NULL " A_JOB_STATE ",\n"                                                               \
    "  seq INTEGER NOT NULL, -- of its last event\n"                                                         \
    "  attempt INTEGER NOT NULL, -- number of the newest attempt; 0: none yet\n"                             \
    "  user_failures INTEGER NOT NULL, -- attempts that ended by the user's fault\n"                         \
    "  infra_failures INTEGER NOT NULL, -- attempts that ended by ours\n"                                    \
    "  pool TEXT, -- of the newest attempt; NULL: none yet\n"                                                \
    "  started_ms INTEGER NOT NULL, -- 0: not yet\n"                                                         \
    "  ended_ms INTEGER NOT NULL, -- 0: not yet\n"                                                           \
    "  exit_code INTEGER NOT NULL, -- -1 while the state is not terminal\n"                                  \
    "  failed_rank INTEGER NOT NULL, -- the first that failed; -1: none\n"                                   \
    "  failed_node TEXT, -- where that was; NULL: nowhere\n"                                                 \
    "  cause TEXT NOT NULL " A_CAUSE ",\n"                                                                   \
    "  reason TEXT -- one sentence for people; NULL: nothing to say\n"                                       \
    ") STRICT"

#define INDICES_OF_JOBS                                                                                      \
    "CREATE UNIQUE INDEX jobs_id ON jobs (" SCHEMA_JOB_PART ", id)",                                         \
        "CREATE INDEX jobs_owner ON jobs (owner)",                                                           \
        "CREATE INDEX jobs_live ON jobs (key, state) WHERE " SCHEMA_JOB_IS_LIVE

#define TABLE_OF_EVENTS                                                                                      \
    "CREATE TABLE events ( -- the history of each job: only ever appended to, without gaps\n"                \
    "  job_key INTEGER NOT NULL, -- jobs.key\n"                                                              \
    "  seq INTEGER NOT NULL, -- from 1\n"                                                                    \
    "  at_ms INTEGER NOT NULL,\n"                                                                            \
    "  kind TEXT NOT NULL " AN_EVENT_KIND ",\n"                                                              \
    "  attempt INTEGER NOT NULL, -- number; 0: before the first\n"                                           \
    "  detail TEXT, -- JSON object; NULL: none\n"                                                            \
    "  PRIMARY KEY (job_key, seq)\n"                                                                         \
    ") STRICT, WITHOUT ROWID"

#define TABLE_OF_ATTEMPTS                                                                                    \
    "CREATE TABLE attempts (\n"                                                                              \
    "  epoch INTEGER PRIMARY KEY, -- incarnation << 32 | n\n"                                                \
    "  job_key INTEGER NOT NULL, -- jobs.key\n"                                                              \
    "  number INTEGER NOT NULL, -- within the job, from 1\n"                                                 \
    "  state TEXT NOT NULL " AN_ATTEMPT_STATE ",\n"                                                          \
    "  cause TEXT NOT NULL " A_CAUSE ", -- what ended it\n"                                                  \
    "  cause_text TEXT, -- the same for people; NULL: nothing to add\n"                                      \
    "  pool TEXT NOT NULL,\n"                                                                                \
    "  master_address TEXT, -- of the rendezvous; NULL: none\n"                                              \
    "  master_port INTEGER NOT NULL, -- 0: none\n"                                                           \
    "  created_ms INTEGER NOT NULL,\n"                                                                       \
    "  started_ms INTEGER NOT NULL, -- 0: not yet\n"                                                         \
    "  ended_ms INTEGER NOT NULL, -- 0: not yet\n"                                                           \
    "  failed_rank INTEGER NOT NULL, -- the first that failed; -1: none\n"                                   \
    "  failed_code INTEGER NOT NULL, -- its exit code\n"                                                     \
    "  image TEXT -- container image; NULL: none. Kept for later\n"                                          \
    ") STRICT"

#define INDICES_OF_ATTEMPTS                                                                                  \
    "CREATE UNIQUE INDEX attempts_job ON attempts (job_key, number)",                                        \
        "CREATE UNIQUE INDEX attempts_live ON attempts (job_key) WHERE " SCHEMA_ATTEMPT_IS_LIVE

#define TABLE_OF_TOKENS                                                                                      \
    "CREATE TABLE tokens (\n"                                                                                \
    "  id TEXT PRIMARY KEY, -- the part of the token that is no secret\n"                                    \
    "  secret BLOB NOT NULL, -- SHA-256 of the rest\n"                                                       \
    "  role TEXT NOT NULL " A_ROLE ",\n"                                                                     \
    "  owner TEXT NOT NULL,\n"                                                                               \
    "  created_ms INTEGER NOT NULL,\n"                                                                       \
    "  expires_ms INTEGER NOT NULL, -- 0: never\n"                                                           \
    "  revoked INTEGER NOT NULL CHECK (revoked IN (0, 1))\n"                                                 \
    ") STRICT, WITHOUT ROWID"

/* The additions of version 3 to them. */
#define NEW_IN_JOBS                                                                                          \
    "ALTER TABLE jobs ADD COLUMN priority /* higher goes first */ INTEGER NOT NULL DEFAULT 0",               \
        "ALTER TABLE jobs ADD COLUMN time_limit_ms /* 0: none */ INTEGER NOT NULL DEFAULT 0",                \
        "ALTER TABLE jobs ADD COLUMN ran_ms /* over all attempts that have ended */ INTEGER NOT NULL "       \
        "DEFAULT 0",                                                                                         \
        "ALTER TABLE jobs ADD COLUMN array_key /* jobs.key of the array that it is a task of; NULL: none "   \
        "*/ "                                                                                                \
        "INTEGER",                                                                                           \
        "ALTER TABLE jobs ADD COLUMN task /* its number, from 0; NULL: it is none */ INTEGER"

#define NEW_INDICES_OF_JOBS                                                                                  \
    "DROP INDEX jobs_owner", "CREATE INDEX jobs_owner ON jobs (owner) WHERE " SCHEMA_JOB_IS_NO_TASK,         \
        "CREATE INDEX jobs_array ON jobs (array_key, key) WHERE array_key IS NOT NULL",                      \
        "CREATE INDEX jobs_top ON jobs (key) WHERE " SCHEMA_JOB_IS_NO_TASK

#define NEW_IN_ATTEMPTS                                                                                      \
    "ALTER TABLE attempts ADD COLUMN claim /* how it came by its GPUs */ TEXT NOT NULL DEFAULT "             \
    "'entitled' " A_CLAIM,                                                                                   \
        "ALTER TABLE attempts ADD COLUMN gpu_type /* NULL: made before this was kept */ TEXT",               \
        "ALTER TABLE attempts ADD COLUMN warned_ms /* early signal ordered; 0: not */ INTEGER NOT NULL "     \
        "DEFAULT 0",                                                                                         \
        "ALTER TABLE attempts ADD COLUMN checkpoint_ms /* the last acknowledged; 0: none */ INTEGER NOT "    \
        "NULL "                                                                                              \
        "DEFAULT 0"

/* The addition of version 5. */
#define TIMING_OF_ATTEMPTS                                                                                   \
    "ALTER TABLE attempts ADD COLUMN timing /* microseconds, 64 bits each, the lowest byte first, 0 for "    \
    "what "                                                                                                  \
    "is "                                                                                                    \
    "not known: the submission was received, by a steady clock which is the wall clock at the start of the " \
    "controller and the time since; and since then it was on disk, GPUs were taken, the start was on disk, " \
    "nothing was left to come; NULL: made before this was kept */ BLOB"

/* The addition of version 7. */
#define NEW_IN_TOKENS                                                                                        \
    "ALTER TABLE tokens ADD COLUMN node /* that it is bound to: nodes.name, once that has registered; "      \
    "NULL: "                                                                                                 \
    "none */ TEXT"

/* The same rows under the words of today, in a table that the rest makes; the old table's indices go with it.
 */
#define REMADE(name, ...)                                                                                    \
    "ALTER TABLE " name " RENAME TO old_" name, __VA_ARGS__, "INSERT INTO " name " SELECT * FROM old_" name, \
        "DROP TABLE old_" name

static const char *const version_1[] = {
    "PRAGMA application_id = " SCHEMA_APPLICATION_ID_TEXT,

    "CREATE TABLE meta ( -- single numbers\n"
    "  name TEXT PRIMARY KEY, -- incarnation: how often the controller was started; the upper half of every "
    "epoch\n"
    "  value INTEGER NOT NULL\n"
    ") STRICT, WITHOUT ROWID",

    "INSERT INTO meta VALUES ('incarnation', 0)",

    TABLE_OF_JOBS,

    INDICES_OF_JOBS,

    "CREATE TABLE specs (\n"
    "  job_key INTEGER PRIMARY KEY, -- jobs.key\n"
    "  shown TEXT, -- the spec as people are shown it, without what is large; NULL: as it is. Stands first, "
    "so that reading it reads nothing of the other\n"
    "  spec TEXT NOT NULL -- JSON as it was received; carries priority, labels and all else that no query "
    "asks for\n"
    ") STRICT",

    TABLE_OF_EVENTS,

    TABLE_OF_ATTEMPTS,

    INDICES_OF_ATTEMPTS,

    "CREATE TABLE members ( -- one node's part of an attempt\n"
    "  epoch INTEGER NOT NULL, -- attempts.epoch\n"
    "  node_rank INTEGER NOT NULL,\n"
    "  node TEXT NOT NULL, -- nodes.name\n"
    "  first_rank INTEGER NOT NULL,\n"
    "  local_ranks INTEGER NOT NULL,\n"
    "  devices TEXT NOT NULL, -- their indices on the node, separated by commas\n"
    "  state TEXT NOT NULL " A_MEMBER_STATE ",\n"
    "  PRIMARY KEY (epoch, node_rank)\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE ranks ( -- how each rank ended\n"
    "  epoch INTEGER NOT NULL, -- attempts.epoch\n"
    "  rank INTEGER NOT NULL, -- over all nodes\n"
    "  code INTEGER NOT NULL, -- exit code; 128 + signal when killed by one\n"
    "  signal INTEGER NOT NULL, -- 0: none\n"
    "  at_ms INTEGER NOT NULL, -- wall clock of the node\n"
    "  out_bytes INTEGER NOT NULL, -- final size of its stdout\n"
    "  err_bytes INTEGER NOT NULL, -- final size of its stderr\n"
    "  PRIMARY KEY (epoch, rank)\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE results ( -- what each rank of a function left behind, and what ranks that failed said\n"
    "  epoch INTEGER NOT NULL, -- attempts.epoch\n"
    "  rank INTEGER NOT NULL, -- over all nodes\n"
    "  kind TEXT NOT NULL " A_RESULT_KIND ",\n"
    "  size INTEGER NOT NULL, -- of the pickle\n"
    "  hash BLOB, -- of the pickle: blobs.hash; NULL: there is none\n"
    "  json TEXT, -- the value as JSON, or the error file of the rank; NULL: there is none\n"
    "  PRIMARY KEY (epoch, rank)\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE nodes (\n"
    "  name TEXT PRIMARY KEY,\n"
    "  boot_id TEXT NOT NULL, -- of the kernel: another one proves a reboot\n"
    "  host_id TEXT NOT NULL, -- SHA-256 of the machine id: agents on one host share it\n"
    "  version TEXT NOT NULL, -- of the agent\n"
    "  address TEXT NOT NULL, -- where its ranks can be reached\n"
    "  pool TEXT NOT NULL,\n"
    "  pool_kind TEXT NOT NULL " A_POOL_KIND ",\n"
    "  state TEXT NOT NULL " A_NODE_STATE ",\n"
    "  reason TEXT, -- of a drain or a loss; NULL: none\n"
    "  isolation TEXT NOT NULL " AN_ISOLATION ",\n"
    "  slots INTEGER NOT NULL CHECK (slots IN "
    "(0, 1)), -- 1: devices are CPU slots\n"
    "  devices TEXT NOT NULL, -- JSON array of "
    "{index, uuid, type, memory_bytes}\n"
    "  registered_ms INTEGER NOT NULL,\n"
    "  expires_at_ms INTEGER, -- when its "
    "provider takes it back; NULL: never. Kept "
    "for later\n"
    "  provider TEXT -- who supplied it; NULL: "
    "nobody. Kept for later\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE replies ( -- the first answer to a request with an Idempotency-Key\n"
    "  key INTEGER PRIMARY KEY, -- in order of arrival\n"
    "  scope BLOB NOT NULL, -- SHA-256 of owner, route and key; unique, see scopes.c\n"
    "  body BLOB NOT NULL, -- SHA-256 of the request body\n"
    "  job_key INTEGER NOT NULL, -- that lives as long as this row; 0: none\n"
    "  status INTEGER NOT NULL, -- of HTTP\n"
    "  at_ms INTEGER NOT NULL,\n"
    "  answer TEXT NOT NULL\n"
    ") STRICT",

    TABLE_OF_TOKENS,

    "CREATE TABLE blobs (\n"
    "  hash BLOB NOT NULL UNIQUE, -- SHA-256\n"
    "  size INTEGER NOT NULL,\n"
    "  created_ms INTEGER NOT NULL,\n"
    "  bytes BLOB -- NULL: they are a file\n"
    ") STRICT",

    NULL,
};

/* STAGING: new kinds of events, a new cause. */
static const char *const version_2[] = {
    REMADE("jobs", TABLE_OF_JOBS),         INDICES_OF_JOBS,     REMADE("events", TABLE_OF_EVENTS),
    REMADE("attempts", TABLE_OF_ATTEMPTS), INDICES_OF_ATTEMPTS, NULL,
};

/* The scheduler: new states, events and causes, and the history that it learns from. */
static const char *const version_3[] = {
    REMADE("jobs", TABLE_OF_JOBS),
    INDICES_OF_JOBS,
    REMADE("events", TABLE_OF_EVENTS),
    REMADE("attempts", TABLE_OF_ATTEMPTS),
    INDICES_OF_ATTEMPTS,

    NEW_IN_JOBS,
    "UPDATE jobs SET priority = coalesce((SELECT spec ->> 'priority' FROM specs WHERE job_key = key), 0), "
    "time_limit_ms = coalesce(CAST((SELECT spec ->> 'time_limit_s' FROM specs WHERE job_key = key) * 1000 AS "
    "INTEGER), 0) WHERE " SCHEMA_JOB_IS_LIVE,
    NEW_IN_ATTEMPTS,
    "ALTER TABLE nodes ADD COLUMN labels /* JSON object of strings; NULL: none */ TEXT",

    "CREATE TABLE dependencies ( -- which jobs a job follows\n"
    "  job_key INTEGER NOT NULL, -- jobs.key\n"
    "  on_key INTEGER NOT NULL, -- of the other job: jobs.key\n"
    "  kind TEXT NOT NULL " A_DEPENDENCY ", -- what the other must have done\n"
    "  PRIMARY KEY (job_key, on_key)\n"
    ") STRICT, WITHOUT ROWID",

    "ALTER TABLE nodes ADD COLUMN agent_expires_at_ms /* what its agent said last; 0: never */ INTEGER NOT "
    "NULL DEFAULT 0",

    "CREATE TABLE windows ( -- times in which nodes get no work, while they are not over\n"
    "  id TEXT PRIMARY KEY,\n"
    "  nodes TEXT, -- names, separated by commas; NULL: not by name\n"
    "  pool TEXT, -- NULL with nodes NULL: all nodes\n"
    "  from_ms INTEGER NOT NULL,\n"
    "  until_ms INTEGER NOT NULL,\n"
    "  hard INTEGER NOT NULL CHECK (hard IN (0, 1)), -- 1: what runs is stopped before it begins\n"
    "  reason TEXT, -- for people; NULL: none\n"
    "  owner TEXT NOT NULL, -- who made it\n"
    "  created_ms INTEGER NOT NULL\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE history ( -- how long jobs of one kind have run\n"
    "  project TEXT NOT NULL,\n"
    "  owner TEXT NOT NULL,\n"
    "  name TEXT NOT NULL, -- without the digits at its end; '': none\n"
    "  gpus INTEGER NOT NULL,\n"
    "  limited INTEGER NOT NULL CHECK (limited IN (0, 1)), -- 1: jobs with a time limit\n"
    "  count INTEGER NOT NULL, -- of runs that ended by themselves\n"
    "  ran_ms INTEGER NOT NULL, -- sum\n"
    "  limit_ms INTEGER NOT NULL, -- sum of their time limits\n"
    "  error_percent INTEGER NOT NULL, -- sum of how far estimates were off: 100 is a factor of two\n"
    "  UNIQUE (project, owner, name, gpus, limited)\n"
    ") STRICT",

    "CREATE TABLE usage ( -- of projects, of users, and of users within projects\n"
    "  project TEXT NOT NULL, -- '': the row is of a user\n"
    "  owner TEXT NOT NULL, -- '': the row is of a project\n"
    "  gpu_ms REAL NOT NULL, -- GPU time, decayed up to at_ms, for fair shares\n"
    "  spent_ms REAL NOT NULL, -- GPU time within the period of its limit in which at_ms lies\n"
    "  at_ms INTEGER NOT NULL,\n"
    "  PRIMARY KEY (project, owner)\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE limits ( -- what projects, users and pools may use\n"
    "  kind TEXT NOT NULL " AN_ACCOUNT_KIND ",\n"
    "  name TEXT NOT NULL,\n"
    "  limits TEXT NOT NULL, -- JSON object\n"
    "  PRIMARY KEY (kind, name)\n"
    ") STRICT, WITHOUT ROWID",

    NEW_INDICES_OF_JOBS,

    "CREATE TABLE arrays ( -- how far the tasks are of jobs that stand for many\n"
    "  whole INTEGER PRIMARY KEY, -- jobs.key\n"
    "  tasks INTEGER NOT NULL,\n"
    "  parallel INTEGER NOT NULL, -- at most so many live at a time; 0: any number\n"
    "  placed INTEGER NOT NULL, -- those with a smaller number have become jobs\n"
    "  running INTEGER NOT NULL, -- of these, have not ended\n"
    "  succeeded INTEGER NOT NULL,\n"
    "  failed INTEGER NOT NULL, -- also those that were given up before they became jobs\n"
    "  canceled INTEGER NOT NULL, -- likewise\n"
    "  worst_code INTEGER NOT NULL -- the largest exit code of a task\n"
    ") STRICT",

    NULL,
};

/* Attempts that a restored database does not know; and a new cause: memory ran out. */
static const char *const version_4[] = {
    "CREATE TABLE lost ( -- attempts that nodes tell of and that this database, put back from a backup, does "
    "not know\n"
    "  key INTEGER PRIMARY KEY, -- in order of telling\n"
    "  epoch INTEGER NOT NULL,\n"
    "  node TEXT NOT NULL,\n"
    "  job_id TEXT NOT NULL,\n"
    "  known INTEGER NOT NULL CHECK (known IN (0, 1)), -- 1: the job is in jobs, only the attempt is not\n"
    "  began_ms INTEGER NOT NULL, -- wall clock of the node, as the next\n"
    "  ended_ms INTEGER NOT NULL, -- 0: the node does not tell\n"
    "  code INTEGER NOT NULL, -- the largest exit code of its ranks there; -1: none is known\n"
    "  UNIQUE (epoch, node)\n"
    ") STRICT",
    REMADE("jobs", TABLE_OF_JOBS, NEW_IN_JOBS),
    INDICES_OF_JOBS,
    NEW_INDICES_OF_JOBS,
    REMADE("attempts", TABLE_OF_ATTEMPTS, NEW_IN_ATTEMPTS),
    INDICES_OF_ATTEMPTS,
    NULL,
};

/* The time that the parts of a start take. Numbers that are written often and together share a column of
 * fixed size. */
static const char *const version_5[] = {
    TIMING_OF_ATTEMPTS,
    "ALTER TABLE members ADD COLUMN timing /* the same of a node: its attempt's submission and start were on "
    "disk; PREPARE or RUN left, START left; it had said that it is prepared, that its ranks were started; "
    "and by "
    "its own clock, since the order came: it was prepared; its supervisor was told, the last rank was "
    "started, "
    "the first byte came, the last process was gone; NULL: likewise */ BLOB",
    "ALTER TABLE members ADD COLUMN start /* how its ranks were started, for people; NULL: not said */ TEXT",
    "ALTER TABLE members ADD COLUMN marks /* moments that ranks named: JSON array of {name, rank, after_us}; "
    "NULL: none */ TEXT",
    NULL,
};

/* Two agents of one name are told apart. */
static const char *const version_6[] = {
    "ALTER TABLE nodes ADD COLUMN agent_id /* of its agent's state folder; empty: it does not say */ TEXT "
    "NOT NULL DEFAULT ''",
    NULL,
};

/* Tokens of one node, and tokens that are traded for them. */
static const char *const version_7[] = {
    NEW_IN_TOKENS,
    "CREATE TABLE joins ( -- tokens that a node trades, once, for one of its own\n"
    "  id TEXT PRIMARY KEY, -- the part of the token that is no secret\n"
    "  secret BLOB NOT NULL, -- SHA-256 of the rest\n"
    "  pool TEXT, -- of the node to be; NULL: as its agent says\n"
    "  reserved INTEGER NOT NULL CHECK (reserved IN (0, 1)), -- 1: that pool is a reserved one\n"
    "  owner TEXT NOT NULL, -- who made it\n"
    "  created_ms INTEGER NOT NULL,\n"
    "  expires_ms INTEGER NOT NULL,\n"
    "  node TEXT, -- that used it; NULL: not used yet\n"
    "  token TEXT -- tokens.id of what it was traded for; NULL: likewise\n"
    ") STRICT, WITHOUT ROWID",
    NULL,
};

/* Jobs are removed when they are old, and blobs that nothing uses. */
static const char *const version_8[] = {
    "INSERT INTO meta VALUES ('removed', 0), ('replies_mark', 0), ('replies_forgotten', 0), "
    "('replies_age_ms', 0)",
    "INSERT INTO meta SELECT 'uncounted_blobs', coalesce(max(rowid), 0) FROM blobs",
    "CREATE TABLE uses ( -- blobs that specs of jobs name\n"
    "  job_key INTEGER NOT NULL, -- jobs.key\n"
    "  hash TEXT NOT NULL, -- of the blob, in hex\n"
    "  PRIMARY KEY (job_key, hash)\n"
    ") STRICT, WITHOUT ROWID",
    "CREATE INDEX uses_hash ON uses (hash)",
    "INSERT OR IGNORE INTO uses SELECT job_key, spec ->> '$.function.blob' FROM specs "
    "WHERE spec ->> '$.function.blob' IS NOT NULL",
    "INSERT OR IGNORE INTO uses SELECT job_key, spec ->> '$.function.modules' FROM specs "
    "WHERE spec ->> '$.function.modules' IS NOT NULL",
    "INSERT OR IGNORE INTO uses SELECT job_key, spec ->> '$.environment.blob' FROM specs "
    "WHERE spec ->> '$.environment.blob' IS NOT NULL",
    "INSERT OR IGNORE INTO uses SELECT job_key, spec ->> '$.bundle.blob' FROM specs "
    "WHERE spec ->> '$.bundle.blob' IS NOT NULL",
    "INSERT OR IGNORE INTO uses SELECT job_key, value ->> '$.blob' FROM specs, json_each(spec, '$.files') "
    "WHERE value ->> '$.blob' IS NOT NULL",
    "CREATE INDEX results_hash ON results (hash) WHERE hash IS NOT NULL",
    "CREATE INDEX dependencies_on ON dependencies (on_key)",
    "CREATE TABLE removals ( -- jobs that are gone, while rows of their history are left\n"
    "  job_key INTEGER PRIMARY KEY,\n"
    "  id TEXT NOT NULL -- of the job: its logs have that name\n"
    ") STRICT",
    NULL,
};

/* Jobs are found by their ids however many there are, tokens are listed in pages, and it is known
 * after a start who has sent which blob, and when a node was last heard. */
static const char *const version_9[] = {
    "CREATE TABLE job_ids ( -- ids of old jobs in their order, run by run\n"
    "  run INTEGER NOT NULL, -- (level << 40) + (key >> (15 + 5 * level))\n"
    "  id TEXT NOT NULL,\n"
    "  key INTEGER NOT NULL, -- jobs.key\n"
    "  PRIMARY KEY (run, id, key)\n"
    ") STRICT, WITHOUT ROWID",
    "INSERT INTO meta VALUES ('indexed', 0)",
    SCHEMA_INDEX_JOBS,
    "CREATE INDEX tokens_created ON tokens (created_ms, id)",
    "CREATE TABLE uploads ( -- blobs that somebody has sent, until a job of theirs names them\n"
    "  owner TEXT NOT NULL,\n"
    "  hash TEXT NOT NULL, -- of the blob, in hex\n"
    "  size INTEGER NOT NULL,\n"
    "  at_ms INTEGER NOT NULL, -- when they have sent it last\n"
    "  PRIMARY KEY (owner, hash)\n"
    ") STRICT, WITHOUT ROWID",
    "CREATE INDEX uploads_at ON uploads (at_ms)",
    "ALTER TABLE nodes ADD COLUMN heard_ms /* its last heartbeat, to a day */ INTEGER NOT NULL DEFAULT 0",
    "UPDATE nodes SET heard_ms = 1000 * strftime('%s', 'now')",
    NULL,
};

/* Who used what in which hour, kept when jobs are gone; a role that only reads metrics. */
static const char *const version_10[] = {
    REMADE("tokens", TABLE_OF_TOKENS, NEW_IN_TOKENS),
    "CREATE INDEX tokens_created ON tokens (created_ms, id)",
    "ALTER TABLE members ADD COLUMN use /* of its GPUs, 64 bits each, the lowest byte first: GPU time in "
    "milliseconds with a known utilization, of that nearly unused, energy in millijoules; NULL: made before "
    "this was kept */ BLOB",
    "CREATE TABLE hours ( -- what attempts that have ended held in an hour\n"
    "  hour_ms INTEGER NOT NULL, -- its beginning\n"
    "  project TEXT NOT NULL,\n"
    "  owner TEXT NOT NULL,\n"
    "  pool TEXT NOT NULL,\n"
    "  gpu_type TEXT NOT NULL,\n"
    "  reserved INTEGER NOT NULL CHECK (reserved IN (0, 1)), -- 1: that pool is a reserved one\n"
    "  attempts INTEGER NOT NULL, -- that ended in it\n"
    "  gpu_ms INTEGER NOT NULL, -- sum over their GPUs\n"
    "  measured_ms INTEGER NOT NULL, -- of that, with a known utilization\n"
    "  idle_ms INTEGER NOT NULL, -- of that, nearly unused\n"
    "  energy_mj INTEGER NOT NULL,\n"
    "  PRIMARY KEY (hour_ms, project, owner, pool, gpu_type, reserved)\n"
    ") STRICT, WITHOUT ROWID",
    NULL,
};

/* Idle GPUs: new kinds of events. People and machines are told of events. */
static const char *const version_11[] = {
    "ALTER TABLE jobs ADD COLUMN idle_since_ms /* its GPUs are idle, and its owner was told; 0: no */ "
    "INTEGER "
    "NOT NULL DEFAULT 0",
    REMADE("events", TABLE_OF_EVENTS),
    "CREATE TABLE webhooks ( -- who is told of events of jobs\n"
    "  id TEXT PRIMARY KEY,\n"
    "  owner TEXT NOT NULL,\n"
    "  name TEXT, -- unique among the owner's; NULL: none\n"
    "  scope TEXT NOT NULL " A_WEBHOOK_SCOPE ",\n"
    "  project TEXT, -- of jobs of this one alone; NULL: of any\n"
    "  secret TEXT NOT NULL, -- it signs, so it is stored as it is\n"
    "  created_ms INTEGER NOT NULL,\n"
    "  url TEXT NOT NULL,\n"
    "  kinds TEXT NOT NULL, -- of events, separated by commas\n"
    "  tasks INTEGER NOT NULL CHECK (tasks IN (0, 1)), -- 1: also of tasks of arrays\n"
    "  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),\n"
    "  reason TEXT, -- why it is not; NULL: somebody said so, or it is\n"
    "  failing_ms INTEGER NOT NULL -- since when no try has succeeded; 0: the last one has\n"
    ") STRICT, WITHOUT ROWID",
    "CREATE TABLE deliveries ( -- events that webhooks are told of: written with the event\n"
    "  key INTEGER PRIMARY KEY, -- incarnation << 32 | n\n"
    "  webhook TEXT NOT NULL, -- webhooks.id\n"
    "  job_key INTEGER NOT NULL, -- jobs.key; 0: a test\n"
    "  seq INTEGER NOT NULL, -- events.seq\n"
    "  created_ms INTEGER NOT NULL,\n"
    "  state TEXT NOT NULL " A_DELIVERY_STATE ",\n"
    "  tries INTEGER NOT NULL,\n"
    "  next_ms INTEGER NOT NULL, -- the next try is not before this\n"
    "  at_ms INTEGER NOT NULL, -- of the last try; 0: none yet\n"
    "  code INTEGER NOT NULL, -- HTTP status of its answer; 0: there was none\n"
    "  error TEXT -- NULL: none\n"
    ") STRICT",
    "CREATE INDEX deliveries_next ON deliveries (webhook, next_ms, key) WHERE state = 'PENDING'",
    "CREATE INDEX deliveries_order ON deliveries (webhook, job_key, key) WHERE state = 'PENDING'",
    "CREATE INDEX deliveries_webhook ON deliveries (webhook, key)",
    NULL,
};

/* Roles of people who only look, and of those who look after the cluster; when tokens were used; which jobs a
 * node had; what people did; CPUs and memory; secrets. */
static const char *const version_12[] = {
    REMADE("tokens", TABLE_OF_TOKENS, NEW_IN_TOKENS),
    "CREATE INDEX tokens_created ON tokens (created_ms, id)",
    "ALTER TABLE tokens ADD COLUMN used_ms /* to an hour; 0: never */ INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE tokens ADD COLUMN project /* of a service account: all that it reaches; NULL: of others */ "
    "TEXT",
    "ALTER TABLE tokens ADD COLUMN subject /* who logged in, as the identity provider names them; NULL: "
    "nobody did */ TEXT",
    "ALTER TABLE tokens ADD COLUMN groups /* of them there, a line each; NULL: none */ TEXT",
    "CREATE TABLE node_jobs ( -- jobs that were placed on a node\n"
    "  node TEXT NOT NULL, -- nodes.name, also when that is forgotten\n"
    "  job_key INTEGER NOT NULL, -- jobs.key\n"
    "  epoch INTEGER NOT NULL, -- attempts.epoch, of the newest attempt there\n"
    "  node_rank INTEGER NOT NULL, -- of its members, the one there\n"
    "  PRIMARY KEY (node, job_key)\n"
    ") STRICT, WITHOUT ROWID",
    SCHEMA_FIND_NODE_JOBS,
    "CREATE TABLE audit ( -- what people did, and were not allowed to do\n"
    "  seq INTEGER PRIMARY KEY, -- 1, 2, 3 ...: none is left out\n"
    "  at_ms INTEGER NOT NULL,\n"
    "  owner TEXT, -- of the token; NULL: there was none, or it was not known\n"
    "  role TEXT NOT NULL " A_ROLE ",\n"
    "  token TEXT, -- tokens.id; NULL: likewise\n"
    "  address TEXT NOT NULL, -- from which the request came\n"
    "  method TEXT NOT NULL,\n"
    "  path TEXT NOT NULL,\n"
    "  subject TEXT, -- the id of what was made; NULL: nothing was\n"
    "  status INTEGER NOT NULL, -- of the answer\n"
    "  code TEXT, -- of the error; NULL: there was none\n"
    "  detail TEXT, -- JSON object; NULL: there is no more to say\n"
    "  hash BLOB NOT NULL CHECK (length(hash) = 32) -- of the row, and of the hash of the row before\n"
    ") STRICT",
    "ALTER TABLE nodes ADD COLUMN millicpus /* that jobs may have, in thousandths; 0: not told */ INTEGER "
    "NOT "
    "NULL DEFAULT 0",
    "ALTER TABLE nodes ADD COLUMN memory_bytes /* likewise */ INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE members ADD COLUMN millicpus /* that it holds, in thousandths */ INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE members ADD COLUMN memory_bytes /* likewise */ INTEGER NOT NULL DEFAULT 0",
    "CREATE TABLE secrets ( -- what jobs ask for by name\n"
    "  owner TEXT NOT NULL, -- '': it is a project's\n"
    "  project TEXT NOT NULL, -- '': it is a person's\n"
    "  name TEXT NOT NULL,\n"
    "  set_by TEXT NOT NULL, -- who has set it last\n"
    "  set_ms INTEGER NOT NULL,\n"
    "  sealed_size INTEGER NOT NULL, -- bytes of sealed\n"
    "  sealed BLOB NOT NULL, -- the value, under a key that is not in the database\n"
    "  PRIMARY KEY (owner, project, name)\n"
    ") STRICT",
    NULL,
};

static const char *const version_13[] = {
    "ALTER TABLE members ADD COLUMN isolated /* whether its ranks run as the user of the job's owner; 0: no, "
    "or "
    "not known */ INTEGER NOT NULL DEFAULT 0 CHECK (isolated IN (0, 1))",
    NULL,
};

static const char *const version_14[] = {
    "ALTER TABLE jobs ADD COLUMN program /* of its command: train.py; NULL: not known, or a function */ TEXT",
    NULL,
};

static const char *const version_15[] = {
    "ALTER TABLE jobs ADD COLUMN labels /* JSON object of strings; NULL: none, or not known */ TEXT",
    "ALTER TABLE jobs ADD COLUMN retry_of /* id of the job that it repeats; NULL: none, or not known */ TEXT",
    NULL,
};

/* Attempts that are kept after a failure: a new state, and a new kind of events. */
static const char *const version_16[] = {
    "ALTER TABLE jobs ADD COLUMN kept_until_ms /* of an attempt that is KEPT; 0: it is not */ INTEGER NOT "
    "NULL DEFAULT 0",
    REMADE("events", TABLE_OF_EVENTS),
    REMADE("attempts", TABLE_OF_ATTEMPTS, NEW_IN_ATTEMPTS, TIMING_OF_ATTEMPTS),
    INDICES_OF_ATTEMPTS,
    NULL,
};

static const char *const version_17[] = {
    "CREATE TABLE schedules ( -- jobs that are submitted by the clock\n"
    "  id TEXT PRIMARY KEY,\n"
    "  owner TEXT NOT NULL,\n"
    "  name TEXT NOT NULL, -- unique among the owner's\n"
    "  project TEXT NOT NULL,\n"
    "  spec TEXT NOT NULL, -- of its jobs: JSON\n"
    "  shown TEXT, -- the same as people see it; NULL: it hides nothing\n"
    "  created_ms INTEGER NOT NULL,\n"
    "  due_ms INTEGER NOT NULL, -- of the last run; 0: none yet\n"
    "  ran_ms INTEGER NOT NULL, -- when that was submitted, or not; 0: likewise\n"
    "  outcome TEXT NOT NULL " AN_OUTCOME ", -- of the last run\n"
    "  job TEXT, -- jobs.id of the last that was made; NULL: none yet\n"
    "  error TEXT, -- why the last run made none; NULL: it did\n"
    "  cron TEXT NOT NULL,\n"
    "  time_zone TEXT NOT NULL,\n"
    "  missed TEXT NOT NULL " A_MISSED ",\n"
    "  overlap TEXT NOT NULL " AN_OVERLAP ",\n"
    "  paused INTEGER NOT NULL CHECK (paused IN (0, 1)),\n"
    "  reason TEXT, -- why it has paused itself; NULL: it has not\n"
    "  next_ms INTEGER NOT NULL, -- when the next run is due\n"
    "  UNIQUE (owner, name)\n"
    ") STRICT",
    "CREATE INDEX schedules_next ON schedules (next_ms, id) WHERE NOT paused",
    "CREATE TABLE schedule_uses ( -- blobs that specs of schedules name\n"
    "  schedule TEXT NOT NULL, -- schedules.id\n"
    "  hash TEXT NOT NULL, -- blobs.hash, in hex\n"
    "  PRIMARY KEY (schedule, hash)\n"
    ") STRICT, WITHOUT ROWID",
    "CREATE INDEX schedule_uses_hash ON schedule_uses (hash)",
    NULL,
};

/* Append only: a version that was released never changes, but for the lists of words. */
static const char *const *const versions[] = {
    version_1,  version_2,  version_3,  version_4,  version_5,  version_6,  version_7,  version_8, version_9,
    version_10, version_11, version_12, version_13, version_14, version_15, version_16, version_17};

const int schema_versions = sizeof versions / sizeof versions[0];

const char *const *schema_statements(int version)
{
    return versions[version - 1];
}
