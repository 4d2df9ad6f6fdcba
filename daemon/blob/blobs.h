/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads by their SHA-256. Payloads above LIMIT_BLOB_ROW_BYTES are files, written while they arrive. */
#ifndef BLOB_BLOBS_H
#define BLOB_BLOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/crypto/hash.h"

struct blobs;

/* Opens the folder, makes it if it does not exist, and removes the rests of interrupted uploads. */
struct blobs *blobs_open(const char *folder, struct err *err);
void blobs_close(struct blobs *blobs);

/* An upload. Small uploads stay in memory; larger ones go to a temporary file. */
struct blob_upload;

struct blob_upload *blob_upload_begin(struct blobs *blobs, const uint8_t hash[HASH_BYTES]);
/* ERR_TOO_LARGE above LIMIT_BLOB_BYTES, ERR_DISK_FULL, ERR_IO. */
bool blob_upload_write(struct blob_upload *upload, const void *bytes, size_t length, struct err *err);
/* Checks the hash: ERR_FIELD with field "sha256" if it differs. */
bool blob_upload_check(struct blob_upload *upload, struct err *err);
/* Makes the file durable under its name: fsync, rename, fsync of the folder. Does nothing for a small upload.
 * Waits for the disk. */
bool blob_upload_keep(struct blob_upload *upload, struct err *err);

int64_t blob_upload_size(const struct blob_upload *upload);
const uint8_t *blob_upload_hash(const struct blob_upload *upload);
/* The bytes of a small upload; NULL if they are in a file. */
const void *blob_upload_bytes(const struct blob_upload *upload);

/* Ends the upload; removes its file unless it was kept. */
void blob_upload_end(struct blob_upload *upload);

/* Opens the file of a kept blob for reading; -1 with ERR_NOT_FOUND or ERR_IO. */
int blobs_open_file(const struct blobs *blobs, const uint8_t hash[HASH_BYTES], struct err *err);

/* --- for retention, on any thread ----------------------------------------------------------------------- */

/* The row of the blob is about to go: its file, if there is one, counts as unused from now on. */
void blobs_disown(struct blobs *blobs, const uint8_t hash[HASH_BYTES]);

/* Whether the database has the blob. False: it could not be asked. */
typedef bool blobs_has(void *closure, const uint8_t hash[HASH_BYTES], bool *ret_has, struct err *err);

/* The size of all kept files. */
bool blobs_measure(const struct blobs *blobs, int64_t *ret_bytes, struct err *err);

/* Removes files that no row names, that were written or disowned before this time, in seconds since 1970, and
 * that no upload is about to bring. dry: only counts them. Adds to *files and *bytes. */
bool blobs_sweep(struct blobs *blobs, int64_t before_s, bool dry, blobs_has *has, void *closure,
                 int64_t *files, int64_t *bytes, struct err *err);

/* --- for daemon/objects, on any thread ------------------------------------------------------------------ */

/* The folder of the files, by the hex of their hashes, and below it that of files that arrive. A file that
 * the object store has, too, is read-only. */
const char *blobs_folder(const struct blobs *blobs);
#define BLOBS_ARRIVING "arriving"

/* Removes the file of this name if the object store has it, it was not used since this time, and no upload is
 * about to bring it. */
void blobs_evict(struct blobs *blobs, const char *name, int64_t before_s);

/* Whether an upload is about to bring it. */
bool blobs_are_arriving(struct blobs *blobs, const uint8_t hash[HASH_BYTES]);

#endif
