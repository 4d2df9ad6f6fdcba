/* SPDX-License-Identifier: Apache-2.0 */
/* migration [--every N] [--seed S]: migrates databases of every released schema on a disk that fails or is
 * cut off, by a kill or a loss of power, at each N-th operation of the migration. It judges each database by
 * all rows of its first schema: after the next start it has the newest schema, and these rows unchanged. The
 * last line counts points and violations; the exit code is 1 if there was a violation. */
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/database/schema_version.h"
#include "daemon/store/handle.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/sim/disk/disk.h"
#include "tests/unit/store/old_database.h"

enum { MALLOC_KEPT_BYTES = 1 << 30 };

enum harm { HARM_KILL, HARM_POWER, HARM_IO, HARM_FULL, HARM_COUNT };

static const char *const harms[HARM_COUNT] = {"kill", "loss of power", "I/O error", "full disk"};

struct run {
    char folder[64];
    char *path, *kept; /* paths of the database, and of the copy that is made before a migration */
    struct disk *disk;
    int64_t version; /* of the database */
    uint8_t *image;  /* the database file of that version */
    size_t image_size;
    char *expected; /* its rows */
    uint64_t seed;
    int64_t points, violations;
};

/* --- the stage ------------------------------------------------------------------------------------------ */

/* Locks, marks and the folder of copies are real files, so they go to memory if possible. */
static void stage_begin(struct run *run)
{
    const char *root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(run->folder, sizeof run->folder, "%s/migration-XXXXXX", root);
    if (mkdtemp(run->folder) == NULL) {
        perror(run->folder);
        exit(EXIT_FAILURE);
    }
    run->path = xprintf("%s/db", run->folder);
    run->kept = xprintf("%s/backups/arriving.db", run->folder);
    run->disk = disk_create("disk", true, run->seed);
}

static void stage_finish(struct run *run)
{
    struct err err;
    disk_destroy(run->disk);
    file_remove_tree(run->folder, &err);
    free(run->path);
    free(run->kept);
    free(run->image);
    free(run->expected);
}

static void remember(struct run *run)
{
    sqlite3 *db;
    old_database_make(run->path, run->version);
    run->image = disk_copy(run->disk, run->path, &run->image_size);
    if (run->image == NULL || sqlite3_open_v2(run->path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        abort();
    }
    run->expected = old_database_rows(db);
    sqlite3_close(db);
}

/* Restores the disk to that version's database and nothing else. */
static void put_back(struct run *run, uint64_t seed)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    sqlite3_vfs *vfs = sqlite3_vfs_find("disk");
    struct err err;
    autofree char *mark = xprintf("%s.incarnation", run->path);
    autofree char *backups = xprintf("%s/backups", run->folder);
    unlink(mark);
    file_remove_tree(backups, &err);
    disk_heal(run->disk);
    disk_restart(run->disk, false);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        autofree char *beside = xprintf("%s%s", run->path, suffixes[i]);
        vfs->xDelete(vfs, beside, 1);
    }
    vfs->xDelete(vfs, run->kept, 1);
    disk_put(run->disk, run->path, run->image, run->image_size);
    disk_seed(run->disk, seed);
}

/* --- one start ------------------------------------------------------------------------------------------ */

static void violation(struct run *run, enum harm harm, int64_t at, const char *what)
{
    run->violations++;
    fprintf(stderr, "seed %" PRIu64 ", schema %" PRId64 ", %s at operation %" PRId64 ": %s\n", run->seed,
            run->version, harms[harm], at, what);
}

/* NULL: no error. */
static const char *judge(const struct run *run, struct store *store)
{
    struct err err;
    int64_t version;
    autofree char *rows = old_database_rows(store->connection.db);
    if (!schema_version(store->connection.db, &version, &err) || version != schema_newest()) {
        return "the schema is not the newest";
    }
    return strcmp(rows, run->expected) == 0 ? NULL : "the rows are not what they were";
}

static void do_harm(struct run *run, enum harm harm, int64_t at)
{
    switch (harm) {
    case HARM_KILL:
    case HARM_POWER:
        disk_crash_after(run->disk, at);
        return;
    case HARM_IO:
        disk_fail_after(run->disk, at, SQLITE_IOERR, false);
        return;
    case HARM_FULL:
        disk_fail_after(run->disk, at, SQLITE_FULL, true);
        return;
    case HARM_COUNT:
        break;
    }
    abort();
}

/* Removes a file that the real file system would not show either: its process is gone, and the next start
 * removes the file before it looks for it. */
static void drop_arriving(const struct run *run)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find("disk");
    vfs->xDelete(vfs, run->kept, 0);
    unlink(run->kept);
}

/* Starts the store twice: once with a fault at an operation, once without. A start that succeeds in spite of
 * the fault is judged, too. */
static void start_twice(struct run *run, enum harm harm, int64_t at)
{
    struct err err;
    const char *wrong;
    put_back(run, run->seed + (uint64_t)at * HARM_COUNT + harm);
    do_harm(run, harm, at);
    struct store *store = store_open(run->path, &err);
    bool crashed = disk_crashed(run->disk);
    if (store != NULL && !crashed && (wrong = judge(run, store)) != NULL) {
        violation(run, harm, at, wrong);
    }
    if (crashed) {
        disk_restart(run->disk, harm == HARM_POWER);
    }
    disk_heal(run->disk);
    store_close(store);
    drop_arriving(run);
    store = store_open(run->path, &err);
    wrong = store == NULL ? err.text : judge(run, store);
    if (wrong != NULL) {
        violation(run, harm, at, wrong);
    }
    store_close(store);
    run->points++;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

static int64_t count_operations(struct run *run)
{
    struct err err;
    put_back(run, run->seed);
    int64_t before = disk_operations(run->disk);
    struct store *store = store_open(run->path, &err);
    if (store == NULL || judge(run, store) != NULL) {
        fprintf(stderr, "schema %" PRId64 " is not migrated: %s\n", run->version, err.text);
        exit(EXIT_FAILURE);
    }
    int64_t count = disk_operations(run->disk) - before;
    store_close(store);
    return count;
}

static void run_version(struct run *run, int64_t every)
{
    stage_begin(run);
    remember(run);
    int64_t count = count_operations(run);
    for (int harm = 0; harm < HARM_COUNT; harm++) {
        for (int64_t at = harm % every; at <= count; at += every) {
            start_twice(run, (enum harm)harm, at);
        }
    }
    stage_finish(run);
}

static int usage(void)
{
    fprintf(stderr, "usage: migration [--every N] [--seed S]\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"every", required_argument, NULL, 'e'}, {"seed", required_argument, NULL, 's'}, {0}};
    int64_t every = 1, points = 0, violations = 0;
    uint64_t seed = 1;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'e') {
            every = strtoll(optarg, NULL, 10);
        } else if (option == 's') {
            seed = strtoull(optarg, NULL, 10);
        } else {
            return usage();
        }
    }
    if (optind < argc || every < 1) {
        return usage();
    }
    mallopt(M_MMAP_THRESHOLD, MALLOC_KEPT_BYTES); /* disks come and go: their memory is reused for the next */
    mallopt(M_TRIM_THRESHOLD, MALLOC_KEPT_BYTES);
    for (int64_t version = 1; version < schema_newest(); version++) {
        struct run run = {.version = version, .seed = seed};
        run_version(&run, every);
        points += run.points;
        violations += run.violations;
    }
    printf("%" PRId64 " schemas, %" PRId64 " points, %" PRId64 " violations\n", schema_newest() - 1, points,
           violations);
    return violations == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
