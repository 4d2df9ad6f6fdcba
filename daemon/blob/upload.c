/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers the pieces of an upload, which are a few KiB each, and writes them to a temporary file in larger
 * ones. A name in the folder of kept files shows either a whole upload or its earlier content. */
#include "daemon/blob/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/limits.h"

static int open_folder(const char *path, struct err *err)
{
    if (!file_make_directories(path, 0700, err)) {
        return -1;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        err_errno(err, "cannot open the folder %s", path);
    }
    return fd;
}

bool upload_open_folders(const char *kept, const char *arriving, int *ret_kept, int *ret_arriving,
                         struct err *err)
{
    if (!file_remove_tree(arriving, err)) {
        return false;
    }
    autoclose int kept_fd = open_folder(kept, err);
    autoclose int arriving_fd = kept_fd < 0 ? -1 : open_folder(arriving, err);
    if (arriving_fd < 0) {
        return false;
    }
    *ret_kept = give_fd(&kept_fd);
    *ret_arriving = give_fd(&arriving_fd);
    return true;
}

void upload_init(struct upload *upload, const char *noun, int arriving)
{
    uint8_t random[16];
    random_fill(random, sizeof random);
    *upload = (struct upload){.noun = noun, .arriving = arriving, .fd = -1};
    text_to_hex(random, sizeof random, upload->name);
}

/* The noun without its article. */
static const char *name_of(const struct upload *upload)
{
    return strchr(upload->noun, ' ') + 1;
}

/* The disk starts to write the bytes at once, so that little is left for the sync at the end. */
static bool spill(struct upload *upload, struct err *err)
{
    struct text *gathered = &upload->gathered;
    if (upload->fd < 0) {
        upload->fd = openat(upload->arriving, upload->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (upload->fd < 0) {
        return err_errno(err, "cannot make a file for the %s", name_of(upload));
    }
    if (!file_write_all(upload->fd, gathered->bytes, gathered->length)) {
        return err_errno(err, "cannot write the %s", name_of(upload));
    }
    sync_file_range(upload->fd, upload->written, (off_t)gathered->length, SYNC_FILE_RANGE_WRITE);
    upload->written += (int64_t)gathered->length;
    gathered->length = 0;
    return true;
}

bool upload_write(struct upload *upload, const void *bytes, size_t length, struct err *err)
{
    if (upload->size + (int64_t)length > LIMIT_BLOB_BYTES) {
        return err_field(err, ERR_TOO_LARGE, NULL, "split it, or put it where the nodes can read it",
                         "%s has at most %lld bytes", upload->noun, LIMIT_BLOB_BYTES);
    }
    upload->size += (int64_t)length;
    text_append_bytes(&upload->gathered, bytes, length);
    return upload->gathered.length < LIMIT_BLOB_GATHER_BYTES || spill(upload, err);
}

bool upload_sync(struct upload *upload, struct err *err)
{
    return spill(upload, err) &&
           (fsync(upload->fd) == 0 || err_errno(err, "cannot keep the %s", name_of(upload)));
}

bool upload_place(struct upload *upload, int folder, const char *name, struct err *err)
{
    if (renameat(upload->arriving, upload->name, folder, name) != 0) {
        return errno == EISDIR || errno == ENOTEMPTY
                   ? err_field(err, ERR_FIELD, "path", NULL, "there is a folder of this name")
                   : err_errno(err, "cannot keep the %s", name_of(upload));
    }
    upload->name[0] = '\0';
    return fsync(folder) == 0 || err_errno(err, "cannot keep the %s", name_of(upload));
}

void upload_finish(struct upload *upload)
{
    if (upload->fd >= 0) {
        close(upload->fd);
        if (upload->name[0] != '\0') {
            unlinkat(upload->arriving, upload->name, 0);
        }
    }
    text_finish(&upload->gathered);
}
