/* SPDX-License-Identifier: Apache-2.0 */
/* A store with its disks, and the record of its acknowledged batches. A database is judged by its whole
 * content: the fingerprint covers every column of every row except the incarnation. The callers decide when a
 * life ends and what fails. */
#include "tests/sim/store/life.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/handle.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

/* --- the stage ------------------------------------------------------------------------------------------ */

/* The store's lock and the folder that it syncs are real files, so they go to memory if possible. */
void stage_begin(struct stage *stage)
{
    const char *root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(stage->folder, sizeof stage->folder, "%s/powerloss-XXXXXX", root);
    if (mkdtemp(stage->folder) == NULL) {
        perror(stage->folder);
        exit(EXIT_FAILURE);
    }
    stage->path = xprintf("%s/db", stage->folder);
    stage->image_path = xprintf("%s/image", stage->folder);
    stage->image = disk_create("image", false, 1);
    stage->disk = disk_create("disk", true, 1);
}

void stage_finish(struct stage *stage)
{
    struct err err;
    disk_destroy(stage->disk);
    disk_destroy(stage->image);
    file_remove_tree(stage->folder, &err);
    free(stage->path);
    free(stage->image_path);
}

/* --- fingerprints --------------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    return hash ^ (hash >> 29);
}

static uint64_t mixed_bytes(uint64_t hash, const uint8_t *bytes, size_t size)
{
    hash = mixed(hash, size);
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = mixed(hash, word);
    }
    for (; size > 0; bytes++, size--) {
        hash = mixed(hash, *bytes);
    }
    return hash;
}

static uint64_t mixed_row(uint64_t hash, sqlite3_stmt *statement)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        hash = mixed(hash, (uint64_t)sqlite3_column_type(statement, i));
        const uint8_t *bytes = sqlite3_column_blob(statement, i);
        hash = mixed_bytes(hash, bytes, (size_t)sqlite3_column_bytes(statement, i));
    }
    return hash;
}

/* 0: the database cannot be read. */
static uint64_t mixed_query(uint64_t hash, sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        hash = code == SQLITE_ROW ? mixed_row(hash, statement) : hash;
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? hash : 0;
}

static uint64_t fingerprint(struct store *store)
{
    sqlite3 *db = store->connection.db;
    sqlite3_stmt *tables = NULL;
    uint64_t hash = 1;
    int code = sqlite3_prepare_v2(
        db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
        -1, &tables, NULL);
    assert(code == SQLITE_OK);
    while (hash != 0 && sqlite3_step(tables) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(tables, 0);
        char *sql = xprintf("SELECT * FROM %s%s", name,
                            strcmp(name, "meta") == 0 ? " WHERE name <> 'incarnation'" : "");
        hash = mixed_query(hash, db, sql);
        free(sql);
    }
    sqlite3_finalize(tables);
    return hash;
}

/* --- the life ------------------------------------------------------------------------------------------- */

static bool write_batch(struct store *store, const struct batch *batch, struct err *err)
{
    return store_begin(store, err) && store_apply(store, batch->changes, batch->count, err) &&
           store_commit(store, err);
}

uint64_t *life_expect(const struct script *script)
{
    uint64_t *expected = xzalloc((script->count + 1) * sizeof *expected);
    struct stage stage;
    struct err err;
    stage_begin(&stage);
    struct store *store = store_open(stage.path, &err);
    for (size_t i = 0; store != NULL && i <= script->count; i++) {
        expected[i] = fingerprint(store);
        if (i < script->count && !write_batch(store, &script->batches[i], &err)) {
            break;
        }
    }
    if (store == NULL || expected[script->count] == 0) {
        fprintf(stderr, "the script does not run: %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    store_close(store);
    stage_finish(&stage);
    return expected;
}

/* Whether the first answer to the newest job of these batches is found again. */
static bool knows_replies(const struct life *life, struct store *store, size_t done)
{
    const struct reply_row *newest = NULL;
    for (size_t i = done; newest == NULL && i-- > 0;) {
        for (size_t j = 0; j < life->script->batches[i].count; j++) {
            const struct change *change = &life->script->batches[i].changes[j];
            newest = change->kind == CHANGE_REPLY_INSERT ? &change->reply : newest;
        }
    }
    if (newest == NULL) {
        return true;
    }
    bool found;
    struct stored_reply reply = {0};
    struct err err;
    bool same = store_find_reply(store, newest->scope, &found, &reply, &err) && found &&
                reply.answer_length == newest->answer_length &&
                memcmp(reply.answer, newest->answer, newest->answer_length) == 0;
    free(reply.answer);
    return same;
}

const char *life_judge(const struct life *life, struct store *store, uint64_t *ret_fingerprint)
{
    uint64_t seen = fingerprint(store);
    *ret_fingerprint = seen;
    bool next = life->in_flight && seen == life->expected[life->done + 1];
    if (!next && seen != life->expected[life->done]) {
        for (size_t i = 0; i <= life->script->count; i++) {
            if (seen == life->expected[i]) {
                return i < life->done ? "what was acknowledged is lost" : "what was never written is there";
            }
        }
        return "a transaction is there in part";
    }
    if (store_incarnation(store) <= life->incarnation) {
        return "the incarnation has not grown";
    }
    return knows_replies(life, store, life->done + next) ? NULL : "a first answer is not found again";
}

void life_close(struct life *life)
{
    store_close(life->store);
    life->store = NULL;
}

bool life_open(struct life *life, const char **ret_wrong)
{
    assert(life->store == NULL);
    *ret_wrong = NULL;
    life->store = store_open(life->stage->path, &life->err);
    if (life->store == NULL) {
        return false;
    }
    uint64_t seen;
    *ret_wrong = life_judge(life, life->store, &seen);
    if (seen == 0) { /* the judge is the first to read most of it, and the disk failed */
        *ret_wrong = NULL;
        life_close(life);
        return err_set(&life->err, ERR_IO, "the database cannot be read");
    }
    if (*ret_wrong == NULL) {
        life->done += seen != life->expected[life->done];
        life->in_flight = false;
        life->incarnation = store_incarnation(life->store);
    }
    return *ret_wrong == NULL;
}

void life_end(struct life *life, bool power)
{
    disk_restart(life->stage->disk, power);
    life_close(life);
}

bool life_batch(struct life *life)
{
    assert(life->done < life->script->count);
    life->in_flight = true;
    if (!write_batch(life->store, &life->script->batches[life->done], &life->err)) {
        return false;
    }
    life->done++;
    life->in_flight = false;
    return true;
}

bool life_checkpoint(struct life *life, bool forced)
{
    if (forced) {
        life->store->wal.pages += (int)(WAL_FORCED_BYTES / 4096);
    } else {
        life->store->wal.moved = -(int)(WAL_IDLE_BYTES / 4096);
    }
    return store_checkpoint(life->store, true, &life->err);
}
