/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of old databases: rows that every schema since the first allows. */
#include "tests/unit/store/old_database.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/store/database/pages.h"
#include "daemon/store/database/schema_version.h"
#include "proto/base/text/text.h"

enum { JOBS = 40, FIRST_WITH_SUMS = 4 };

/* Each fourth job has ended, the others wait; those that ended had an attempt with a member, a rank and a
 * result. */
static const char rows[] =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
    "INSERT INTO jobs (key, id, owner, name, project, gpus, created_ms, state, seq, attempt, user_failures, "
    "infra_failures, started_ms, ended_ms, exit_code, failed_rank, cause) "
    "SELECT i, printf('job%%013d', i), 'alice', 'train', 'vision', 1, i, iif(i %% 4, 'QUEUED', 'SUCCEEDED'), "
    "iif(i %% 4, 1, 2), iif(i %% 4, 0, 1), 0, 0, 0, 0, iif(i %% 4, -1, 0), -1, 'NONE' FROM n;"
    "INSERT INTO specs (job_key, spec) SELECT key, '{\"command\":[\"true\"],\"gpus\":1,\"priority\":3}' FROM "
    "jobs;"
    "INSERT INTO events (job_key, seq, at_ms, kind, attempt) SELECT key, 1, 0, 'submitted', 0 FROM jobs;"
    "INSERT INTO events (job_key, seq, at_ms, kind, attempt) SELECT key, 2, 0, 'succeeded', 1 FROM jobs "
    "WHERE seq = 2;"
    "INSERT INTO attempts (epoch, job_key, number, state, cause, pool, master_port, created_ms, started_ms, "
    "ended_ms, failed_rank, failed_code) SELECT (1 << 32) + key, key, 1, 'ENDED', 'NONE', 'default', 0, 0, "
    "0, 0, "
    "-1, 0 FROM jobs WHERE seq = 2;"
    "INSERT INTO members (epoch, node_rank, node, first_rank, local_ranks, devices, state) SELECT epoch, 0, "
    "'node', 0, 1, '0', 'FLUSHED' FROM attempts;"
    "INSERT INTO ranks SELECT epoch, 0, 0, 0, 7, 8, 9 FROM attempts;"
    "INSERT INTO results SELECT epoch, 0, 'value', 3, NULL, '1' FROM attempts;"
    "INSERT INTO replies SELECT key, randomblob(32), zeroblob(32), key, 201, 0, '{\"id\":1}' FROM jobs;"
    "INSERT INTO tokens (id, secret, role, owner, created_ms, expires_ms, revoked) VALUES ('abc', "
    "zeroblob(32), 'admin', 'alice', 1, 0, 0);"
    "INSERT INTO blobs VALUES (zeroblob(32), 3, 1, x'616263');"
    "UPDATE meta SET value = 5 WHERE name = 'incarnation';";

static void must(sqlite3 *db, bool ok)
{
    if (!ok) {
        fprintf(stderr, "old database: %s\n", sqlite3_errmsg(db));
        abort();
    }
}

void old_database_make(const char *path, int64_t version)
{
    sqlite3 *db;
    struct err err;
    char *fill = xprintf(rows, JOBS);
    struct pages *pages = pages_create(NULL);
    pages_set_summed(pages, version >= FIRST_WITH_SUMS);
    int code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, pages_name(pages));
    int bytes = version >= FIRST_WITH_SUMS ? PAGE_SUM_BYTES : 0;
    must(db, code == SQLITE_OK &&
                 sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes) == SQLITE_OK);
    must(db, schema_migrate_to(db, version, &err));
    must(db, sqlite3_exec(db, fill, NULL, NULL, NULL) == SQLITE_OK);
    must(db, sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) == SQLITE_OK);
    must(db, sqlite3_close(db) == SQLITE_OK);
    pages_destroy(pages);
    free(fill);
}

static int add_row(void *closure, int columns, char **values, char **names)
{
    for (int i = 0; i < columns; i++) {
        text_printf(closure, "%s|", values[i] != NULL ? values[i] : "null");
    }
    text_append(closure, "\n");
    return 0;
}

char *old_database_rows(sqlite3 *db)
{
    static const char *const queries[] = {
        "SELECT key, id, owner, name, project, gpus, created_ms, state, seq, attempt, exit_code FROM jobs",
        "SELECT job_key, spec FROM specs",
        "SELECT * FROM events",
        "SELECT epoch, job_key, number, state, cause, pool FROM attempts",
        "SELECT epoch, node_rank, node, first_rank, local_ranks, devices, state FROM members",
        "SELECT * FROM ranks",
        "SELECT epoch, rank, kind, size, hex(hash), json FROM results",
        "SELECT key, hex(scope), hex(body), job_key, status, at_ms, answer FROM replies",
        "SELECT id, hex(secret), role, owner, created_ms, expires_ms, revoked FROM tokens",
        "SELECT hex(hash), size, created_ms, hex(bytes) FROM blobs",
    };
    struct text text = {0};
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        must(db, sqlite3_exec(db, queries[i], add_row, &text, NULL) == SQLITE_OK);
    }
    return text_take(&text);
}
