/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes the writer's side: the lock, the order of opening, transactions, and first answers. At
 * most one writer is open on a database, and a commit is on disk when it returns. apply.c writes rows,
 * wal.c limits the log, incarnation.c counts the starts. */
#include "daemon/store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/incarnation.h"
#include "daemon/store/handle.h"
#include "daemon/store/job_index.h"
#include "daemon/store/database/schema_version.h"
#include "daemon/store/database/scrub.h"
#include "daemon/store/query.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

/* --- opening -------------------------------------------------------------------------------------------- */

/* What the lock file says of the database: nothing yet; or that there is one; or that the last controller
 * found it damaged, or could not use it. */
static const char in_use[] = "in use\n";
static const char doubted[] = "failed\n";
enum { NOTE_BYTES = sizeof in_use - 1 };

static bool is_doubted(const struct store *store)
{
    char note[NOTE_BYTES];
    return pread(store->lock, note, NOTE_BYTES, 0) == NOTE_BYTES && memcmp(note, doubted, NOTE_BYTES) == 0;
}

static bool note(const struct store *store, const char said[])
{
    return pwrite(store->lock, said, NOTE_BYTES, 0) == NOTE_BYTES;
}

static bool take_lock(struct store *store, const char *path, struct err *err)
{
    autofree char *name = xprintf("%s.lock", path);
    store->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store->lock < 0) {
        return err_errno(err, "cannot open %s", name);
    }
    if (flock(store->lock, LOCK_EX | LOCK_NB) == 0) {
        store->doubted = is_doubted(store);
        return true;
    }
    if (errno != EWOULDBLOCK) {
        return err_errno(err, "cannot lock %s", name);
    }
    err_set(err, ERR_CONFLICT, "another controller uses the database %s", path);
    return err_hint(err, "stop it first, or give this one another state folder");
}

/* SQLite makes a new database where there is none or an empty file, and throws away the log of the one that
 * was there. The lock file says whether one was used, the mark whether starts were counted; a first start
 * that is cut short leaves neither without the database. For SQLite's VFS an empty file is none, and one of a
 * single byte is empty: it writes one to a new file on some systems. */
static bool check_there(const struct store *store, const char *path, struct err *err)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    struct stat lock, file;
    int has_content = 1;
    bool gone = access(path, F_OK) != 0 && errno == ENOENT;
    bool used = fstat(store->lock, &lock) == 0 && lock.st_size > 0;
    if (gone && (used || incarnation_is_marked(path))) {
        err_set(err, ERR_DAMAGED, "the database %s is gone, and what is beside it says that there was one",
                path);
        return err_hint(err,
                        "put the newest backup back: gpuctl admin restore; or, to begin anew without its "
                        "jobs, move the whole state folder away");
    }
    if (used && vfs->xAccess(vfs, path, SQLITE_ACCESS_EXISTS, &has_content) != SQLITE_OK) {
        return err_set(err, ERR_IO, "cannot look at %s", path);
    }
    bool one_byte = used && stat(path, &file) == 0 && file.st_size == 1;
    return (has_content && !one_byte) || connection_damaged(err, "the file is empty");
}

static bool note_use(const struct store *store, const char *path, struct err *err)
{
    struct stat lock;
    return (!store->doubted && fstat(store->lock, &lock) == 0 && lock.st_size > 0) || note(store, in_use) ||
           err_errno(err, "cannot write %s.lock", path);
}

/* SQLite would make the file readable for all. An existing file is not opened here: closing it would drop
 * SQLite's locks. */
static bool make_file(const char *path, struct err *err)
{
    autoclose int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 || errno == EEXIST || err_errno(err, "cannot make %s", path);
}

/* SQLite does not report when it fails to sync the folder after it made the log. */
static bool sync_home(const char *path, struct err *err)
{
    autofree char *folder = file_folder_of(path);
    return file_sync_folder(folder, err);
}

/* A start reads no page for its own sake: each is checked whenever it is read, and the scrub reads all of
 * them while the controller serves. It makes sure that no page is cut off the end of the file. After an end
 * that damage may have caused it reads everything. */
static bool check_pages(struct store *store, struct err *err)
{
    bool completes = false;
    if (!store->doubted && !wal_completes(&store->connection, &completes, err)) {
        return false;
    }
    return completes || scrub_whole(&store->connection, err);
}

static bool find_next_job_key(struct store *store, struct err *err)
{
    autoquery struct query query = query_begin(&store->connection, SQL_NEXT_KEY);
    if (!query_step(&query, err)) {
        return false;
    }
    store->next_job_key = query_read_number(&query);
    return query_read_end(&query, err);
}

static bool load_number(struct store *store, const char *name, int64_t *ret_value, struct err *err)
{
    autoquery struct query query = query_begin(&store->connection, SQL_LOAD_META);
    query_bind_text(&query, name);
    if (!query_step(&query, err)) {
        return !query.failed && err_set(err, ERR_DAMAGED, "the database has no number %s", name);
    }
    *ret_value = query_read_number(&query);
    return query_read_end(&query, err);
}

/* The end of the chain, which the next row follows. */
static bool load_audit(struct store *store, struct err *err)
{
    autoquery struct query query = query_begin(&store->connection, SQL_LAST_AUDIT);
    struct audit_row last;
    if (query_next(&query, TABLE_audit, &last, err)) {
        store->audit_seq = last.seq;
        memcpy(store->audit_hash, last.hash, sizeof last.hash);
    }
    return !query.failed;
}

/* Those that are not forgotten. */
static bool load_scopes(struct store *store, struct err *err)
{
    struct scopes *scopes = &store->scopes;
    if (!load_number(store, "replies_mark", &scopes->mark_key, err) ||
        !load_number(store, "replies_forgotten", &scopes->forgotten_key, err) ||
        !load_number(store, "replies_age_ms", &scopes->age_ms, err)) {
        return false;
    }
    autoquery struct query query = query_begin(&store->connection, SQL_LOAD_SCOPES);
    query_bind_number(&query, scopes->forgotten_key);
    while (query_step(&query, err)) {
        uint8_t scope[32];
        store->last_reply_key = query_read_number(&query);
        query_read_digest(&query, scope);
        if (!query_read_end(&query, err)) {
            return false;
        }
        scopes_add(scopes, scope, store->last_reply_key);
    }
    if (store->last_reply_key < scopes->mark_key) {
        store->last_reply_key = scopes->mark_key; /* the newest are forgotten, and no key is used twice */
    }
    return !query.failed;
}

static bool open_all(struct store *store, const char *path, struct reserve_file *reserve_file,
                     struct err *err)
{
    if (!take_lock(store, path, err) || !check_there(store, path, err) || !make_file(path, err) ||
        !connection_open(&store->connection, path, CONNECTION_WRITER, reserve_file, err)) {
        return false;
    }
    wal_watch(&store->wal, &store->connection);
    return check_pages(store, err) && schema_make_shrinkable(store->connection.db, err) &&
           incarnation_begin(&store->connection, path, &store->incarnation, &store->restored, err) &&
           wal_grow(&store->connection, err) && sync_home(path, err) && find_next_job_key(store, err) &&
           load_scopes(store, err) && load_audit(store, err) &&
           load_number(store, "indexed", &store->job_index.indexed, err) && note_use(store, path, err);
}

struct store *store_open(const char *path, struct err *err)
{
    return store_open_with(path, NULL, err);
}

struct store *store_open_with(const char *path, struct reserve_file *reserve_file, struct err *err)
{
    struct store *store = xzalloc(sizeof *store);
    store->lock = -1;
    if (!open_all(store, path, reserve_file, err)) {
        store_close(store);
        return NULL;
    }
    store->connection.serving = true;
    return store;
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    if (store->connection.serving && !store->connection.failed) {
        wal_finish(&store->connection); /* if not, the log has it all */
    }
    gather_finish(&store->gather);
    connection_close(&store->connection);
    scopes_finish(&store->scopes);
    if (store->lock >= 0) {
        close(store->lock);
    }
    free(store);
}

void store_distrust(struct store *store)
{
    store->connection.failed = true;
    note(store, doubted); /* where that fails, the next start finds out for itself */
}

uint32_t store_incarnation(const struct store *store)
{
    return store->incarnation;
}

struct store_restored store_restored(const struct store *store)
{
    return store->restored;
}

int64_t store_next_job_key(struct store *store)
{
    return store->next_job_key;
}

/* --- transactions --------------------------------------------------------------------------------------- */

bool store_begin(struct store *store, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_BEGIN);
    return query_run(&query, NULL, err);
}

bool store_commit(struct store *store, struct err *err)
{
    if (!gather_flush(&store->gather, &store->connection, err) || !job_index_advance(store, err)) {
        return false;
    }
    struct query query = query_begin(&store->connection, SQL_COMMIT);
    return query_run(&query, NULL, err);
}

bool store_checkpoint(struct store *store, bool idle, struct err *err)
{
    return wal_checkpoint(&store->wal, &store->connection, idle, err);
}

/* --- first answers -------------------------------------------------------------------------------------- */

/* The reply of this row when it has the scope. */
static bool read_reply(struct store *store, int64_t key, const uint8_t scope[32], bool *ret_found,
                       struct stored_reply *ret_reply, struct err *err)
{
    if (!gather_flush(&store->gather, &store->connection, err)) {
        return false;
    }
    autoquery struct query query = query_begin(&store->connection, SQL_FIND_REPLY);
    query_bind_number(&query, key);
    struct reply_row reply;
    if (!query_next(&query, TABLE_replies, &reply, err)) {
        assert(
            query.failed); /* every reply in scopes was inserted, and a failed transaction ends the program */
        return false;
    }
    *ret_found = memcmp(reply.scope, scope, sizeof reply.scope) == 0;
    if (*ret_found) {
        memcpy(ret_reply->body, reply.body, sizeof ret_reply->body);
        ret_reply->status = reply.status;
        ret_reply->answer = xalloc(reply.answer_length + 1);
        memcpy(ret_reply->answer, reply.answer, reply.answer_length);
        ret_reply->answer[reply.answer_length] = '\0';
        ret_reply->answer_length = reply.answer_length;
    }
    return true;
}

bool store_find_reply(struct store *store, const uint8_t scope[32], bool *ret_found,
                      struct stored_reply *ret_reply, struct err *err)
{
    *ret_found = false;
    struct scopes_cursor cursor = {0};
    int64_t key;
    while (!*ret_found && (key = scopes_next(&store->scopes, scope, &cursor)) != 0) {
        if (!read_reply(store, key, scope, ret_found, ret_reply, err)) {
            return false;
        }
    }
    return true;
}
