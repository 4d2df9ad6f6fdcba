/* SPDX-License-Identifier: Apache-2.0 */
/* bench-old DATABASE COUNT: adds so many ended jobs to the database of a controller that does not run. They
 * were submitted evenly over the last 20 days, and had one attempt each, on one of 100 nodes. Half of them
 * are ann's, the others belong to 100 people; of 100,000 one was canceled. Each takes 2 KB of the database,
 * most of it its variables. */
#include <stdio.h>
#include <stdlib.h>

#include "daemon/store/database/pages.h"
#include "daemon/store/database/schema.h"
#include "proto/base/clock.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define BATCH   100000
#define SPAN_MS (20LL * 24 * 3600 * 1000)

/* Of the jobs that the table `numbers` has, one statement a table. Ids are of their alphabet: g to j stand
 * for the digits that it lacks. */
static const char insert_jobs[] =
    "INSERT INTO jobs (key, id, owner, name, project, gpus, created_ms, state, seq, attempt, user_failures, "
    "infra_failures, started_ms, ended_ms, exit_code, failed_rank, cause) "
    "SELECT n, replace(replace(replace(replace(lower(hex(randomblob(8))), '0', 'g'), '1', 'h'), '8', 'i'), "
    "'9', 'j'), iif(n % 2, 'ann', 'user' || (n % 200 / 2)), 'train-' || (n % 1000), 'project' || (n % 20), "
    "1, "
    "at_ms, CASE WHEN n % 100000 = 7 THEN 'CANCELED' WHEN n % 10 = 3 THEN 'FAILED' ELSE 'SUCCEEDED' END, 1, "
    "0, 0, 0, 0, at_ms, 0, -1, 'NONE' FROM numbers";
static const char insert_specs[] =
    "INSERT INTO specs (job_key, spec) SELECT n, printf('{\"command\":[\"true\"],\"env\":{\"NOTE\":\"%.*c\"},"
    "\"gpus\":1}', 1500, 'x') FROM numbers";
static const char insert_events[] =
    "INSERT INTO events (job_key, seq, at_ms, kind, attempt) SELECT n, 1, at_ms, 'submitted', 0 FROM numbers";

static const char insert_attempts[] =
    "INSERT INTO attempts (epoch, job_key, number, state, cause, pool, gpu_type, master_address, "
    "master_port, "
    "created_ms, started_ms, ended_ms, failed_rank, failed_code, timing) SELECT n, n, 1, 'ENDED', 'NONE', "
    "'default', 'A10', '10.0.0.7', 20000, at_ms, at_ms, at_ms, -1, 0, zeroblob(40) FROM numbers";
static const char insert_members[] =
    "INSERT INTO members (epoch, node_rank, node, first_rank, local_ranks, devices, state, timing, use) "
    "SELECT n, 0, 'node-' || (n * 7 % 100), 0, 1, '3', 'FLUSHED', zeroblob(88), zeroblob(24) FROM numbers";

/* As migrations fill them. */
static const char *const find_jobs[] = {"DELETE FROM job_ids", SCHEMA_INDEX_JOBS, "DELETE FROM node_jobs",
                                        SCHEMA_FIND_NODE_JOBS};

static void must(sqlite3 *db, const char *sql)
{
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
        fprintf(stderr, "bench-old: %s: %s\n", sql, error);
        exit(EXIT_FAILURE);
    }
}

/* The jobs with keys behind `from`, up to `to`. */
static void add(sqlite3 *db, int64_t from, int64_t to, int64_t count)
{
    autofree char *numbers =
        xprintf("INSERT INTO numbers WITH RECURSIVE up (n) AS (SELECT %lld UNION ALL SELECT n + 1 FROM up "
                "WHERE n < %lld) SELECT n, %lld - (%lld - n) * %lld / %lld FROM up",
                (long long)from + 1, (long long)to, (long long)clock_wall_ms(), (long long)count, SPAN_MS,
                (long long)count);
    must(db, "BEGIN");
    must(db, "DELETE FROM numbers");
    must(db, numbers);
    must(db, insert_jobs);
    must(db, insert_specs);
    must(db, insert_events);
    must(db, insert_attempts);
    must(db, insert_members);
    must(db, "COMMIT");
}

int main(int argc, char **argv)
{
    sqlite3 *db;
    int64_t count;
    if (argc != 3 || !text_to_int(argv[2], 1, INT64_MAX / SPAN_MS, &count)) {
        fprintf(stderr, "usage: bench-old DATABASE COUNT\n");
        return EXIT_FAILURE;
    }
    struct pages *pages = pages_create(NULL);
    if (sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, pages_name(pages)) != SQLITE_OK) {
        fprintf(stderr, "bench-old: %s: %s\n", argv[1], sqlite3_errmsg(db));
        return EXIT_FAILURE;
    }
    must(db, "PRAGMA synchronous = OFF");
    must(db, "CREATE TEMP TABLE numbers (n INTEGER PRIMARY KEY, at_ms INTEGER)");
    for (int64_t from = 0; from < count; from += BATCH) {
        add(db, from, from + BATCH < count ? from + BATCH : count, count);
    }
    for (size_t i = 0; i < sizeof find_jobs / sizeof *find_jobs; i++) {
        must(db, find_jobs[i]);
    }
    sqlite3_close(db);
    pages_destroy(pages);
    return EXIT_SUCCESS;
}
