/* SPDX-License-Identifier: Apache-2.0 */
/* Files under names that clients choose: the artifacts of runs. A path is relative, its parts are neither
 * empty nor dotted, and it is UTF-8: the caller has seen to that. */
#ifndef BLOB_ARTIFACTS_H
#define BLOB_ARTIFACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text.h"

struct artifacts;

/* Uses the folder, makes it when it is not there, and removes what an interrupted upload left behind. */
struct artifacts *artifacts_open(const char *folder, struct err *err);
/* Takes NULL. */
void artifacts_close(struct artifacts *artifacts);

/* ERR_FIELD for a path that is too long for the disk, or that is none. */
bool artifact_path_check(const char *path, struct err *err);

/* An upload, which goes to a temporary file. */
struct artifact_upload;

struct artifact_upload *artifact_upload_begin(struct artifacts *artifacts, const char *path, struct err *err);
/* ERR_TOO_LARGE above LIMIT_BLOB_BYTES, ERR_DISK_FULL, ERR_IO. */
bool artifact_upload_write(struct artifact_upload *upload, const void *bytes, size_t length, struct err *err);
/* Brings it to its place for good, in place of what was there. ERR_FIELD where a folder is in the way, or a
 * file where a folder should be. Waits for the disk. */
bool artifact_upload_keep(struct artifact_upload *upload, struct err *err);
/* Removes what was not kept. */
void artifact_upload_end(struct artifact_upload *upload);

/* Open for reading; -1 with ERR_NOT_FOUND or ERR_IO. */
int artifacts_open_file(const struct artifacts *artifacts, const char *path, uint64_t *ret_length,
                        struct err *err);

/* Appends [{"path", "is_dir", "file_size"}] of a folder, by name; path "" is the uppermost. Each path begins
 * with prefix. A folder that is not there, or that is a file, is empty. At most LIMIT_ARTIFACT_LIST entries.
 * Waits for the disk. */
bool artifacts_list(const struct artifacts *artifacts, const char *path, const char *prefix, struct text *out,
                    struct err *err);

/* Removes a file, or a folder with all that is in it; what is not there is no error. Waits for the disk. */
bool artifacts_delete(const struct artifacts *artifacts, const char *path, struct err *err);

#endif
