/* SPDX-License-Identifier: Apache-2.0 */
/* Files under names that clients choose: the artifacts of runs. The caller has checked each path: it is
 * relative UTF-8, and no part is empty, "." or "..". */
#ifndef BLOB_ARTIFACTS_H
#define BLOB_ARTIFACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct artifacts;

/* Opens the folder, makes it if it does not exist, and removes the rests of interrupted uploads. */
struct artifacts *artifacts_open(const char *folder, struct err *err);
/* Takes NULL. */
void artifacts_close(struct artifacts *artifacts);

/* ERR_FIELD for a path that is invalid or too long for the disk. */
bool artifact_path_check(const char *path, struct err *err);

/* An upload; its bytes go to a temporary file. */
struct artifact_upload;

struct artifact_upload *artifact_upload_begin(struct artifacts *artifacts, const char *path);
/* ERR_TOO_LARGE above LIMIT_BLOB_BYTES, ERR_DISK_FULL, ERR_IO. */
bool artifact_upload_write(struct artifact_upload *upload, const void *bytes, size_t length, struct err *err);
/* Makes the upload durable under its name, replacing an earlier file. ERR_FIELD if a folder has the name, or
 * a file has the name of a folder on the way. Waits for the disk. */
bool artifact_upload_keep(struct artifact_upload *upload, struct err *err);
/* Ends the upload; removes its file unless it was kept. */
void artifact_upload_end(struct artifact_upload *upload);

/* Opens the file for reading; -1 with ERR_NOT_FOUND or ERR_IO. */
int artifacts_open_file(const struct artifacts *artifacts, const char *path, uint64_t *ret_length,
                        struct err *err);

/* Appends what is in a folder to an array, as {"path", "is_dir", "file_size"} by name; path "" is the top
 * folder. Each path begins with prefix. A folder that does not exist, or that is a file, is empty. At most
 * LIMIT_ARTIFACT_LIST entries. Waits for the disk. */
bool artifacts_list(const struct artifacts *artifacts, const char *path, const char *prefix, struct text *out,
                    struct err *err);

/* Removes a file, or a folder with its content; a missing path is no error. Waits for the disk. */
bool artifacts_delete(const struct artifacts *artifacts, const char *path, struct err *err);

/* --- for daemon/objects, on any thread ------------------------------------------------------------------ */

/* The top folder, and beside it that of files that arrive. A file that the object store has, too, is
 * read-only. A file that only the object store has is a placeholder: a hole of its size, which is executable.
 */
const char *artifacts_folder(const struct artifacts *artifacts);
char *artifacts_arriving(const struct artifacts *artifacts); /* the caller frees it */

/* Whether only the object store has the file. */
bool artifacts_is_away(const struct artifacts *artifacts, const char *path);

/* Puts a placeholder in the place of a file that the object store has and that was not used since this time.
 */
void artifacts_evict(struct artifacts *artifacts, const char *path, int64_t before_s);

/* Moves the file `from`, which is on disk, to the place of its placeholder; drops it where there is another
 * file by now, or none. missing: also where there is none. */
bool artifacts_bring_back(struct artifacts *artifacts, const char *from, const char *path, bool missing,
                          struct err *err);

#endif
