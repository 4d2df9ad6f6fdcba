/* SPDX-License-Identifier: Apache-2.0 */
/* bench-history DATABASE JOBS: makes a controller's database in which JOBS jobs have ended, 3 KiB each with
 * their history and first answers, as years of use leave it. Written by SQL, which is a thousand times faster
 * than by jobs. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/store/database/pages.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

/* Of jobs with keys from ?1 to ?2. */
#define KEYS "WITH RECURSIVE n (k) AS (SELECT ?1 UNION ALL SELECT k + 1 FROM n WHERE k < ?2) "

static const char *const statements[] = {
    KEYS "INSERT INTO jobs (key, id, owner, project, gpus, created_ms, state, seq, attempt, user_failures, "
         "infra_failures, started_ms, ended_ms, exit_code, failed_rank, cause) "
         "SELECT k, printf('%016x', k), 'ada', 'default', 1, 1700000000000 + k, 'SUCCEEDED', 6, 1, 0, 0, "
         "1700000000000 + k, 1700000000000 + k, 0, -1, 'NONE' FROM n",
    KEYS "INSERT INTO specs (job_key, spec) SELECT k, printf('{\"gpus\": 1, \"env\": {\"X\": \"%.700c\"}}', "
         "'x') FROM n",
    KEYS "INSERT INTO events (job_key, seq, at_ms, kind, attempt, detail) SELECT k, seq, 1700000000000 + k, "
         "'placed', 1, printf('{\"why\": \"%.200c\"}', 'y') FROM n, (SELECT 1 AS seq UNION SELECT 2 UNION "
         "SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6)",
    KEYS
    "INSERT INTO attempts (epoch, job_key, number, state, cause, pool, master_port, created_ms, "
    "started_ms, ended_ms, failed_rank, failed_code) SELECT (1 << 32) + k, k, 1, 'ENDED', 'NONE', 'gpu', "
    "0, 0, 0, 0, -1, 0 FROM n",
    KEYS "INSERT INTO members (epoch, node_rank, node, first_rank, local_ranks, devices, state) "
         "SELECT (1 << 32) + k, 0, 'gpu-1', 0, 1, '0', 'FLUSHED' FROM n",
    KEYS "INSERT INTO ranks SELECT (1 << 32) + k, 0, 0, 0, 0, 0, 0 FROM n",
    KEYS "INSERT INTO replies SELECT k, randomblob(32), randomblob(32), k, 201, 0, "
         "printf('{\"id\": \"%016x\", \"state\": \"QUEUED\", \"reason\": \"%.150c\"}', k, 'z') FROM n",
};

enum { STATEMENTS = sizeof statements / sizeof statements[0], BATCH = 20000 };

static void must(sqlite3 *db, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE) {
        fprintf(stderr, "bench-history: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
}

static void write_jobs(sqlite3 *db, int64_t first, int64_t last)
{
    must(db, sqlite3_exec(db, "BEGIN", NULL, NULL, NULL));
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_stmt *statement;
        must(db, sqlite3_prepare_v2(db, statements[i], -1, &statement, NULL));
        sqlite3_bind_int64(statement, 1, first);
        sqlite3_bind_int64(statement, 2, last);
        must(db, sqlite3_step(statement));
        sqlite3_finalize(statement);
    }
    must(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
}

/* Through the layer that gives pages their sums. */
static void write_all(const char *path, int64_t jobs)
{
    sqlite3 *db;
    struct pages *pages = pages_create(NULL);
    must(NULL, sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, pages_name(pages)));
    must(db,
         sqlite3_exec(db,
                      "PRAGMA journal_mode = DELETE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
                      "PRAGMA cache_size = -65536",
                      NULL, NULL, NULL));
    for (int64_t key = 1; key <= jobs; key += BATCH) {
        write_jobs(db, key, key + BATCH - 1 < jobs ? key + BATCH - 1 : jobs);
    }
    must(db, sqlite3_close(db));
    pages_destroy(pages);
}

int main(int argc, char **argv)
{
    struct err err;
    int64_t jobs;
    if (argc != 3 || !text_to_int(argv[2], 1, INT32_MAX, &jobs)) {
        fprintf(stderr, "usage: bench-history DATABASE JOBS\n");
        return 2;
    }
    struct store *store = store_open(argv[1], &err);
    if (store == NULL) {
        fprintf(stderr, "bench-history: %s\n", err.text);
        return 1;
    }
    store_close(store);
    write_all(argv[1], jobs);
    return 0;
}
