/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the object store, keeps its clients, and knows whether it is away. A store that has failed is left
 * alone for a few seconds, so that nobody waits for it in vain. */
#include "daemon/objects/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/objects/objects_own.h"
#include "daemon/objects/s3_link.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/limits_objects.h"
#include "proto/members.h"

/* --- clients -------------------------------------------------------------------------------------------- */

struct s3 *objects_client(struct objects *objects, struct err *err)
{
    struct s3 *client = NULL;
    pthread_mutex_lock(&objects->mutex);
    bool away = clock_boot_ms() < objects->away_until_ms;
    if (away) {
        *err = objects->away;
    } else if (objects->client_count > 0) {
        client = objects->clients[--objects->client_count];
    }
    pthread_mutex_unlock(&objects->mutex);
    return client != NULL || away
               ? client
               : s3_open(&objects->address, objects->config.credentials_file, &objects->stop);
}

/* Notes whether the store is there; true: that has changed. */
static bool note(struct objects *objects, bool there, const struct err *err)
{
    bool was_there = objects->away_since_ms == 0;
    if (there) {
        objects->away_until_ms = objects->away_since_ms = 0;
        return !was_there;
    }
    objects->away = *err;
    objects->away_until_ms = clock_boot_ms() + OBJECT_AWAY_MS;
    objects->away_since_ms = was_there ? clock_wall_ms() : objects->away_since_ms;
    return was_there;
}

bool objects_client_back(struct objects *objects, struct s3 *client, bool ok, struct err *err)
{
    bool there = ok || err->code != ERR_UNAVAILABLE;
    pthread_mutex_lock(&objects->mutex);
    bool changed = !atomic_load(&objects->stop) && note(objects, there, err);
    bool kept = objects->client_count < OBJECTS_CLIENTS;
    if (kept) {
        objects->clients[objects->client_count++] = client;
    }
    pthread_mutex_unlock(&objects->mutex);
    if (!kept) {
        s3_close(client);
    }
    if (changed && there) {
        log_info("objects back", "store=%s", objects->address.endpoint);
    } else if (changed) {
        log_warning("objects away", "text=\"%s\" remedy=\"%s\"", err->text, err->hint);
    }
    return ok;
}

/* --- objects -------------------------------------------------------------------------------------------- */

bool objects_waits(const char *path, int64_t *ret_bytes)
{
    struct stat status;
    bool waits = lstat(path, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & S_IWUSR) != 0;
    *ret_bytes = waits ? status.st_size : 0;
    return waits;
}

bool objects_disclaim(const char *path, struct err *err)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool ok = fd >= 0 ? fchmod(fd, 0600) == 0 && fsync(fd) == 0 : errno == ENOENT;
    return ok || err_errno(err, "cannot mark %s as no longer stored", path);
}

/* The mode of what was read changes, not that of a file which has the name by now. */
static bool store_file(struct objects *objects, const char *key, int fd, int64_t size, const char *hash,
                       bool seal, struct err *err)
{
    pthread_mutex_lock(&objects->moving);
    struct s3 *client = objects_client(objects, err);
    bool ok = client != NULL &&
              objects_client_back(objects, client, s3_put(client, key, fd, size, hash, err), err) &&
              (!seal || fchmod(fd, 0400) == 0 || err_errno(err, "cannot mark %s as stored", key));
    pthread_mutex_unlock(&objects->moving);
    return ok;
}

bool objects_store(struct objects *objects, const char *key, const char *path, bool seal, struct err *err)
{
    char hash[HASH_HEX + 1];
    int64_t size;
    struct stat status;
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &status) != 0) {
        return errno == ENOENT || err_errno(err, "cannot open %s", path);
    }
    autofree char *same = xprintf("/proc/self/fd/%d", fd);
    if (!hash_file(same, &size, hash, err) || !store_file(objects, key, fd, size, hash, seal, err)) {
        return false;
    }
    pthread_mutex_lock(&objects->mutex);
    objects->moved_files++;
    objects->moved_bytes += size;
    pthread_mutex_unlock(&objects->mutex);
    return true;
}

static bool check(const char *key, const struct s3_got *got, const char *hash, struct err *err)
{
    const char *wanted = hash != NULL ? hash : got->named;
    if (*wanted == '\0' || strcmp(wanted, got->hash) == 0) {
        return true;
    }
    err_set(err, ERR_GONE, "the object %.200s has not the bytes that were stored", key);
    return err_hint(err, "put an earlier version of the object back in its bucket");
}

bool objects_fetch(struct objects *objects, const char *key, const char *path, const char *hash,
                   struct err *err)
{
    struct s3_got got;
    struct s3 *client = objects_client(objects, err);
    if (client == NULL) {
        return false;
    }
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 || err_errno(err, "cannot make a file for the object %s", key);
    ok = ok && s3_get(client, key, fd, &got, err);
    ok = objects_client_back(objects, client, ok, err) && check(key, &got, hash, err) &&
         (fsync(fd) == 0 || err_errno(err, "cannot keep the object %s", key));
    if (!ok) {
        unlink(path);
    }
    return ok;
}

/* Objects that go back to files may be gone before the URL is used. */
char *objects_link(const struct objects *objects, const char *key)
{
    struct s3_credentials credentials;
    struct err ignored;
    if (atomic_load(&objects->direction) == OBJECTS_TO_FILES ||
        !s3_credentials_read(objects->config.credentials_file, &credentials, &ignored)) {
        return NULL;
    }
    char *link = s3_link(&objects->address, &credentials, key, clock_wall_ms(), OBJECT_LINK_S);
    s3_credentials_finish(&credentials);
    return link;
}

bool objects_delete(struct objects *objects, const char *key, struct err *err)
{
    struct s3 *client = objects_client(objects, err);
    return client != NULL && objects_client_back(objects, client, s3_delete(client, key, err), err);
}

bool objects_list(struct objects *objects, const char *begin, s3_seen *seen, void *closure, struct err *err)
{
    struct s3 *client = objects_client(objects, err);
    return client != NULL &&
           objects_client_back(objects, client, s3_list(client, begin, seen, closure, err), err);
}

static bool seen_one(void *closure, const char *key, int64_t size, int64_t modified_ms)
{
    return false;
}

bool objects_are_there(struct objects *objects, struct err *err)
{
    return objects_list(objects, "blobs/", seen_one, NULL, err);
}

/* --- what waits ----------------------------------------------------------------------------------------- */

bool objects_allow(struct objects *objects, int64_t bytes, struct err *err)
{
    pthread_mutex_lock(&objects->mutex);
    int64_t waiting = objects->waiting_bytes + objects->arrived_bytes;
    bool fits = atomic_load(&objects->direction) == OBJECTS_TO_FILES ||
                waiting + bytes <= objects->config.spool_bytes;
    objects->arrived_bytes += fits ? bytes : 0;
    const struct err away = objects->away_since_ms != 0 ? objects->away : (struct err){0};
    pthread_mutex_unlock(&objects->mutex);
    if (fits) {
        return true;
    }
    err_set(err, ERR_DISK_FULL, "%lld MiB wait for the object store, as many as may%s%.200s",
            (long long)(waiting / MIB), away.text[0] != '\0' ? ": " : "", away.text);
    return err_hint(err, "%s",
                    away.hint[0] != '\0' ? away.hint : "try again later; gpuctld --object-store-spool");
}

/* --- direction ------------------------------------------------------------------------------------------ */

/* The words of the file; the last: nothing is left in the store. */
#define WORD_STORE "s3"
#define WORD_FILES "files"
#define WORD_EMPTY "empty"

static bool write_word(const char *path, const char *word, struct err *err)
{
    return file_replace(path, word, strlen(word), 0600, err);
}

/* *ret_word is NULL where no store was ever configured; the caller frees it. */
static bool read_word(const char *path, char **ret_word, struct err *err)
{
    *ret_word = NULL;
    return (access(path, F_OK) != 0 && errno == ENOENT) || file_read(path, 16, ret_word, NULL, err);
}

static bool read_direction(struct objects *objects, struct err *err)
{
    autofree char *word = NULL;
    if (!read_word(objects->direction_file, &word, err)) {
        return false;
    }
    bool files = word != NULL && strcmp(word, WORD_STORE) != 0;
    atomic_store(&objects->direction, files ? OBJECTS_TO_FILES : OBJECTS_TO_STORE);
    return files || write_word(objects->direction_file, WORD_STORE, err);
}

void objects_note_empty(struct objects *objects)
{
    struct err ignored;
    autofree char *word = NULL;
    pthread_mutex_lock(&objects->mutex); /* somebody may turn round just now */
    if (read_word(objects->direction_file, &word, &ignored) && word != NULL &&
        strcmp(word, WORD_FILES) == 0) {
        write_word(objects->direction_file, WORD_EMPTY, &ignored);
    }
    pthread_mutex_unlock(&objects->mutex);
}

bool objects_are_needed(const char *state_directory, struct err *err)
{
    autofree char *path = xprintf("%s/" OBJECTS_FILE, state_directory), *word = NULL;
    if (!read_word(path, &word, err)) {
        return true;
    }
    if (word == NULL || strcmp(word, WORD_EMPTY) == 0) {
        return false;
    }
    return !err_field(err, ERR_USAGE, "--object-store",
                      "give it again; to leave it, first: gpuctl admin store migrate --to files",
                      "--object-store is missing, and bytes of this controller are in an object store");
}

bool objects_migrate(struct objects *objects, enum objects_direction direction, struct err *err)
{
    const char *word = direction == OBJECTS_TO_FILES ? WORD_FILES : WORD_STORE;
    pthread_mutex_lock(&objects->mutex);
    if (!write_word(objects->direction_file, word, err)) {
        pthread_mutex_unlock(&objects->mutex);
        return false;
    }
    atomic_store(&objects->direction, direction);
    objects->complete = false;
    objects->hurry = true;
    pthread_cond_signal(&objects->changed);
    pthread_mutex_unlock(&objects->mutex);
    log_info("objects migrate", "to=%s", direction == OBJECTS_TO_FILES ? "files" : "s3");
    return true;
}

void objects_write_status(struct objects *objects, struct text *out)
{
    pthread_mutex_lock(&objects->mutex);
    bool files = atomic_load(&objects->direction) == OBJECTS_TO_FILES;
    member_write_text(out, ",\"address\":", objects->config.address);
    member_write_text(out, ",\"to\":", files ? "files" : "s3");
    member_write_bool(out, ",\"complete\":", objects->complete && objects->arrived_bytes == 0);
    member_write_int(out, ",\"waiting_files\":", objects->waiting_files);
    member_write_int(out, ",\"waiting_bytes\":", objects->waiting_bytes + objects->arrived_bytes);
    member_write_int(out, ",\"moved_files\":", objects->moved_files);
    member_write_int(out, ",\"moved_bytes\":", objects->moved_bytes);
    if (objects->away_since_ms != 0) {
        member_write_time(out, ",\"away_since\":", objects->away_since_ms);
        member_write_text(out, ",\"problem\":", objects->away.text);
        member_write_text(out, ",\"hint\":", objects->away.hint);
    } else {
        text_append(out, ",\"away_since\":null");
        member_write_text(out,
                          ",\"problem\":", objects->failure.code != ERR_NONE ? objects->failure.text : NULL);
        text_append(out, ",\"hint\":null");
    }
    pthread_mutex_unlock(&objects->mutex);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static bool start(struct objects *objects, struct err *err)
{
    struct s3_credentials credentials;
    if (!s3_address_parse(objects->config.address, &objects->address, err) ||
        !s3_credentials_read(objects->config.credentials_file, &credentials, err)) {
        return false;
    }
    s3_credentials_finish(&credentials);
    if (!read_direction(objects, err) || !jobs_clean_up(objects, err)) {
        return false;
    }
    errno = pthread_create(&objects->thread, NULL, mover_main, objects);
    return errno == 0 || err_errno(err, "cannot start the thread of the object store");
}

static void destroy(struct objects *objects)
{
    while (objects->client_count > 0) {
        s3_close(objects->clients[--objects->client_count]);
    }
    s3_address_finish(&objects->address);
    pthread_mutex_destroy(&objects->moving);
    pthread_mutex_destroy(&objects->mutex);
    pthread_cond_destroy(&objects->changed);
    free(objects->direction_file);
    free(objects);
}

struct objects *objects_open(const struct objects_config *config, struct err *err)
{
    struct objects *objects = xzalloc(sizeof *objects);
    pthread_condattr_t steady;
    objects->config = *config;
    objects->direction_file = xprintf("%s/" OBJECTS_FILE, config->state_directory);
    pthread_mutex_init(&objects->moving, NULL);
    pthread_mutex_init(&objects->mutex, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&objects->changed, &steady);
    pthread_condattr_destroy(&steady);
    if (!start(objects, err)) {
        destroy(objects);
        return NULL;
    }
    return objects;
}

void objects_stop(struct objects *objects)
{
    atomic_store(&objects->stop, true);
    pthread_mutex_lock(&objects->mutex);
    pthread_cond_signal(&objects->changed);
    pthread_mutex_unlock(&objects->mutex);
}

void objects_close(struct objects *objects)
{
    if (objects == NULL) {
        return;
    }
    objects_stop(objects);
    pthread_join(objects->thread, NULL);
    destroy(objects);
}
