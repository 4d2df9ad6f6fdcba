/* SPDX-License-Identifier: Apache-2.0 */
/* A file that arrives in pieces: it is written under a temporary name and moved to its own when it is whole.
 */
#ifndef BLOB_UPLOAD_H
#define BLOB_UPLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct upload {
    const char *noun;     /* for errors: "a blob" */
    int arriving;         /* fd of the folder of temporary files */
    struct text gathered; /* bytes that are not in the file yet: all of a small upload */
    int64_t size;
    int64_t written; /* bytes of the file */
    int fd;          /* -1: there is no file yet */
    char name[33];   /* of the temporary file; "" once the file is in place */
};

/* Opens the folder of kept files and that of arriving files, makes them if they do not exist, and removes the
 * rests of interrupted uploads. */
bool upload_open_folders(const char *kept, const char *arriving, int *ret_kept, int *ret_arriving,
                         struct err *err);

void upload_init(struct upload *upload, const char *noun, int arriving);
/* ERR_TOO_LARGE above LIMIT_BLOB_BYTES, ERR_DISK_FULL, ERR_IO. */
bool upload_write(struct upload *upload, const void *bytes, size_t length, struct err *err);
/* Writes all bytes to the file and makes them durable. Waits for the disk. */
bool upload_sync(struct upload *upload, struct err *err);
/* Then moves the file durably into a folder, in the place of an earlier file of this name. ERR_FIELD if a
 * folder has the name. */
bool upload_place(struct upload *upload, int folder, const char *name, struct err *err);
/* Removes the file unless it is in place. */
void upload_finish(struct upload *upload);

#endif
