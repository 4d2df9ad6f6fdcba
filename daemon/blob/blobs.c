/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the folder of large payloads. A file under the name of a hash always has those bytes: an upload is
 * hashed while it arrives, and gets its name only by rename after fsync. The database says which blobs exist:
 * their row is written after the file. */
#include "daemon/blob/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

#include "daemon/blob/upload.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

struct blobs {
    char *path;
    int folder;                  /* of the kept files: path */
    int arriving;                /* of the uploads in progress */
    pthread_mutex_t mutex;       /* guards the list, and the removal of files against it */
    struct blob_upload *uploads; /* from their beginning until their row is there */
};

struct blob_upload {
    struct upload upload;
    struct blobs *blobs;
    struct hash *hash;
    uint8_t expected[HASH_BYTES];
    struct blob_upload *prev, *next;
};

struct blobs *blobs_open(const char *folder, struct err *err)
{
    autofree char *arriving = xprintf("%s/" BLOBS_ARRIVING, folder);
    struct blobs blobs = {0};
    if (!upload_open_folders(folder, arriving, &blobs.folder, &blobs.arriving, err)) {
        return NULL;
    }
    struct blobs *opened = xzalloc(sizeof *opened);
    *opened = blobs;
    opened->path = xstrdup(folder);
    pthread_mutex_init(&opened->mutex, NULL);
    return opened;
}

void blobs_close(struct blobs *blobs)
{
    if (blobs == NULL) {
        return;
    }
    close(blobs->folder);
    close(blobs->arriving);
    pthread_mutex_destroy(&blobs->mutex);
    free(blobs->path);
    free(blobs);
}

struct blob_upload *blob_upload_begin(struct blobs *blobs, const uint8_t hash[HASH_BYTES])
{
    struct blob_upload *upload = xzalloc(sizeof *upload);
    upload_init(&upload->upload, "a blob", blobs->arriving);
    upload->blobs = blobs;
    upload->hash = hash_create();
    memcpy(upload->expected, hash, sizeof upload->expected);
    pthread_mutex_lock(&blobs->mutex);
    DL_APPEND(blobs->uploads, upload);
    pthread_mutex_unlock(&blobs->mutex);
    return upload;
}

bool blob_upload_write(struct blob_upload *upload, const void *bytes, size_t length, struct err *err)
{
    if (!upload_write(&upload->upload, bytes, length, err)) {
        return false;
    }
    hash_update(upload->hash, bytes, length);
    return true;
}

bool blob_upload_check(struct blob_upload *upload, struct err *err)
{
    uint8_t found[HASH_BYTES];
    hash_finish(give(upload->hash), found);
    if (memcmp(found, upload->expected, sizeof found) == 0) {
        return true;
    }
    char hex[HASH_HEX + 1];
    text_to_hex(found, sizeof found, hex);
    return err_field(err, ERR_FIELD, "sha256", "name the blob by the SHA-256 of its bytes",
                     "the bytes have the SHA-256 %s", hex);
}

bool blob_upload_keep(struct blob_upload *upload, struct err *err)
{
    char name[HASH_HEX + 1];
    text_to_hex(upload->expected, HASH_BYTES, name);
    return upload->upload.size <= LIMIT_BLOB_ROW_BYTES ||
           (upload_sync(&upload->upload, err) &&
            upload_place(&upload->upload, upload->blobs->folder, name, err));
}

int64_t blob_upload_size(const struct blob_upload *upload)
{
    return upload->upload.size;
}

const uint8_t *blob_upload_hash(const struct blob_upload *upload)
{
    return upload->expected;
}

const void *blob_upload_bytes(const struct blob_upload *upload)
{
    if (upload->upload.size > LIMIT_BLOB_ROW_BYTES) {
        return NULL;
    }
    return upload->upload.gathered.bytes != NULL ? upload->upload.gathered.bytes : "";
}

void blob_upload_end(struct blob_upload *upload)
{
    if (upload == NULL) {
        return;
    }
    pthread_mutex_lock(&upload->blobs->mutex);
    DL_DELETE(upload->blobs->uploads, upload);
    pthread_mutex_unlock(&upload->blobs->mutex);
    if (upload->hash != NULL) {
        uint8_t unused[HASH_BYTES];
        hash_finish(upload->hash, unused);
    }
    upload_finish(&upload->upload);
    free(upload);
}

int blobs_open_file(const struct blobs *blobs, const uint8_t hash[HASH_BYTES], struct err *err)
{
    char name[HASH_HEX + 1];
    text_to_hex(hash, HASH_BYTES, name);
    int fd = openat(blobs->folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        err_set(err, ERR_NOT_FOUND, "there is no blob %s", name);
    } else if (fd < 0) {
        err_errno(err, "cannot open the blob %s", name);
    } else {
        futimens(fd, NULL); /* its last use */
    }
    return fd;
}

/* --- removal of files ----------------------------------------------------------------------------------- */

void blobs_disown(struct blobs *blobs, const uint8_t hash[HASH_BYTES])
{
    char name[HASH_HEX + 1];
    text_to_hex(hash, HASH_BYTES, name);
    utimensat(blobs->folder, name, NULL, 0); /* without a file there is nothing to note */
}

static bool is_arriving(const struct blobs *blobs, const uint8_t hash[HASH_BYTES])
{
    const struct blob_upload *upload;
    DL_FOREACH (blobs->uploads, upload) {
        if (memcmp(upload->expected, hash, HASH_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_old(const struct blobs *blobs, const char *name, int64_t before_s, int64_t *ret_bytes)
{
    struct stat status;
    bool found = fstatat(blobs->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
    *ret_bytes = found ? status.st_size : 0;
    return found && status.st_mtim.tv_sec < before_s;
}

bool blobs_measure(const struct blobs *blobs, int64_t *ret_bytes, struct err *err)
{
    autonames struct file_names names = {0};
    *ret_bytes = 0;
    if (!file_list(blobs->path, &names, err)) {
        return false;
    }
    for (size_t i = 0; i < names.count; i++) {
        int64_t bytes;
        is_old(blobs, names.items[i], 0, &bytes);
        *ret_bytes += bytes;
    }
    return true;
}

/* An upload that ended meanwhile has written the file anew. */
static bool remove_file(struct blobs *blobs, const char *name, const uint8_t hash[HASH_BYTES],
                        int64_t before_s)
{
    int64_t bytes;
    pthread_mutex_lock(&blobs->mutex);
    bool removed = !is_arriving(blobs, hash) && is_old(blobs, name, before_s, &bytes) &&
                   unlinkat(blobs->folder, name, 0) == 0;
    pthread_mutex_unlock(&blobs->mutex);
    return removed;
}

bool blobs_sweep(struct blobs *blobs, int64_t before_s, bool dry, blobs_has *has, void *closure,
                 int64_t *files, int64_t *bytes, struct err *err)
{
    autonames struct file_names names = {0};
    if (!file_list(blobs->path, &names, err)) {
        return false;
    }
    for (size_t i = 0; i < names.count; i++) {
        uint8_t hash[HASH_BYTES];
        int64_t size;
        bool stored = true;
        if (!text_from_hex(names.items[i], hash, sizeof hash) ||
            !is_old(blobs, names.items[i], before_s, &size)) {
            continue;
        }
        if (!has(closure, hash, &stored, err)) {
            return false;
        }
        if (!stored && (dry || remove_file(blobs, names.items[i], hash, before_s))) {
            *files += 1;
            *bytes += size;
        }
    }
    return true;
}

/* --- for the object store ------------------------------------------------------------------------------- */

const char *blobs_folder(const struct blobs *blobs)
{
    return blobs->path;
}

void blobs_evict(struct blobs *blobs, const char *name, int64_t before_s)
{
    uint8_t hash[HASH_BYTES];
    struct stat status;
    if (!text_from_hex(name, hash, sizeof hash)) {
        return;
    }
    pthread_mutex_lock(&blobs->mutex);
    if (!is_arriving(blobs, hash) && fstatat(blobs->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        (status.st_mode & S_IWUSR) == 0 && status.st_mtim.tv_sec < before_s) {
        unlinkat(blobs->folder, name, 0);
    }
    pthread_mutex_unlock(&blobs->mutex);
}

bool blobs_are_arriving(struct blobs *blobs, const uint8_t hash[HASH_BYTES])
{
    pthread_mutex_lock(&blobs->mutex);
    bool arriving = is_arriving(blobs, hash);
    pthread_mutex_unlock(&blobs->mutex);
    return arriving;
}
