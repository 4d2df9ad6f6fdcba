/* SPDX-License-Identifier: Apache-2.0 */
/* The object store behind the files of the controller. Bytes of users are written to the controller's disk
 * first, and are durable there before they are acknowledged. A thread moves them to the store, and removes
 * the files that were not used for a while. What is asked for then is brought back. Calls that wait for the
 * store say so; all may be called on any thread. */
#ifndef OBJECTS_OBJECTS_H
#define OBJECTS_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/crypto/hash.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct artifacts;
struct blobs;
struct checkpoints;
struct logs;
struct objects;

/* The strings are borrowed, and the folders outlive the objects. */
struct objects_config {
    const char *address;          /* s3://... */
    const char *credentials_file; /* NULL: the environment has them */
    const char *state_directory;
    const char *store_path; /* of the database, which says which jobs have ended */
    int64_t after_ms;       /* how long a file stays after its last use */
    int64_t spool_bytes;    /* that may wait for the store */
    struct blobs *blobs;
    struct logs *logs;
    struct artifacts *artifacts;
    struct checkpoints *checkpoints;
};

/* Starts the thread. ERR_USAGE for a bad address and credentials that cannot be read; a store that is away is
 * no error. */
struct objects *objects_open(const struct objects_config *config, struct err *err);
/* Ends the thread and what waits for the store. Takes NULL. */
void objects_close(struct objects *objects);
/* From now on no call waits for the store: those that wait fail soon. */
void objects_stop(struct objects *objects);

/* Whether so many bytes more may wait for the store: ERR_DISK_FULL. */
bool objects_allow(struct objects *objects, int64_t bytes, struct err *err);

/* --- bringing back: waits ------------------------------------------------------------------------------- */

/* ERR_NOT_FOUND: the store does not have it. Nothing is done where the file is there already. */
bool objects_recall_blob(struct objects *objects, const uint8_t hash[HASH_BYTES], struct err *err);
bool objects_recall_artifact(struct objects *objects, const char *path, struct err *err);

/* Files of a job that has ended, which go to the store and come back together. */
enum job_files { JOB_OUTPUT, JOB_KEPT, JOB_CHECKPOINTS };
bool objects_recall_job(struct objects *objects, const char *job_id, enum job_files what, struct err *err);

/* A URL from which anybody may fetch the blob for OBJECT_LINK_S; NULL: the store does not have it yet, or no
 * credentials can be read. Waits for nothing. The caller frees it. */
char *objects_link_blob(const struct objects *objects, const uint8_t hash[HASH_BYTES]);
/* The same for a piece of the job's checkpoints, which are in the store alone. */
char *objects_link_piece(const struct objects *objects, const char *job_id, const uint8_t hash[HASH_BYTES]);

/* Whether the store alone has the job's files, and they must be brought back before they are read. Waits for
 * nothing. Files that are here count as used from now on. */
bool objects_have_job(const struct objects *objects, const char *job_id, enum job_files what);

/* --- removal: waits ------------------------------------------------------------------------------------- */

/* Removes the objects of a job, or says what they take. Call it before the files are removed. */
bool objects_remove_job(struct objects *objects, const char *job_id, enum job_files what, bool dry,
                        int64_t *ret_bytes, struct err *err);
/* Removes an artifact, or a folder of them, here and there. */
bool objects_remove_artifact(struct objects *objects, const char *path, struct err *err);

/* The row of the blob is about to go: its object counts as unused from now on. Waits for nothing. */
void objects_disown_blob(struct objects *objects, const uint8_t hash[HASH_BYTES]);

/* Whether a blob or a job is in the database. */
struct objects_rows {
    bool (*has_blob)(void *closure, const uint8_t hash[HASH_BYTES], bool *ret_has, struct err *err);
    bool (*has_job)(void *closure, const char *id, bool *ret_has, struct err *err);
    void *closure;
};

/* Removes objects that no row names, and that were stored and disowned before this time. dry: only counts. */
bool objects_sweep(struct objects *objects, const struct objects_rows *rows, int64_t before_ms, bool dry,
                   int64_t *ret_count, struct err *err);

/* Whether the store answers. */
bool objects_are_there(struct objects *objects, struct err *err);

/* Whether the state folder has bytes in an object store, with *err for a start without one. */
#define OBJECTS_FILE "object-store" /* in the state folder: where its bytes go */
bool objects_are_needed(const char *state_directory, struct err *err);

/* --- migration and status ------------------------------------------------------------------------------- */

/* Where files go from now on, also after a restart: to the store, or back from it to files. */
enum objects_direction { OBJECTS_TO_STORE, OBJECTS_TO_FILES };
bool objects_migrate(struct objects *objects, enum objects_direction direction, struct err *err);

/* Appends the members of GET /v1/object-store. Waits for nothing. */
void objects_write_status(struct objects *objects, struct text *out);

#endif
