/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef OBJECTS_OBJECTS_OWN_H
#define OBJECTS_OBJECTS_OWN_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/objects/objects.h"
#include "daemon/objects/s3.h"
#include "daemon/objects/s3_address.h"

#define OBJECTS_CLIENTS 8 /* that are kept for the next call, each with its connection */

struct reader;

struct objects {
    struct objects_config config;
    struct s3_address address;
    char *direction_file;
    atomic_bool stop;
    atomic_int direction; /* enum objects_direction */
    pthread_t thread;
    pthread_mutex_t moving; /* held while an object is stored, and while one is removed */
    pthread_mutex_t mutex;  /* guards all below */
    pthread_cond_t changed;
    bool hurry; /* the mover is to look at once: it was told to migrate */
    struct s3 *clients[OBJECTS_CLIENTS];
    size_t client_count;
    int64_t away_until_ms; /* steady clock; calls are refused until then */
    int64_t away_since_ms; /* wall clock; 0: the store is there */
    struct err away;       /* why */
    struct err failure;    /* the last object that the store did not take; ERR_NONE: none */
    int64_t waiting_files, waiting_bytes, arrived_bytes; /* as of the last look; since then */
    int64_t moved_files, moved_bytes;                    /* to the store, since the start */
    bool complete;                                       /* the last look found nothing to move */
};

/* A client for one call; NULL: the store is away, or we end. Give it back with whether the call failed for
 * the store's sake, and why. */
struct s3 *objects_client(struct objects *objects, struct err *err);
bool objects_client_back(struct objects *objects, struct s3 *client, bool ok, struct err *err);

/* Stores a file under the key, and makes it read-only if it is a file that never changes. false with
 * ERR_UNAVAILABLE: try again later; else this file cannot be stored. */
bool objects_store(struct objects *objects, const char *key, const char *path, bool seal, struct err *err);

/* Fetches an object into a new file, which is on disk then; its bytes are what was stored, and what hash says
 * (or NULL). */
bool objects_fetch(struct objects *objects, const char *key, const char *path, const char *hash,
                   struct err *err);

/* A URL for GET of the object; NULL: objects go back to files, or no credentials can be read. */
char *objects_link(const struct objects *objects, const char *key);

bool objects_delete(struct objects *objects, const char *key, struct err *err);
bool objects_list(struct objects *objects, const char *begin, s3_seen *seen, void *closure, struct err *err);

/* All is back in files: the controller may serve without the store. */
void objects_note_empty(struct objects *objects);

/* The file is writable: the store does not have it. */
bool objects_waits(const char *path, int64_t *ret_bytes);

/* Makes the file writable, on disk too when this returns: its object may go. A file that is gone is no error.
 */
bool objects_disclaim(const char *path, struct err *err);

/* --- the moves of each kind, on the mover's thread ------------------------------------------------------ */

/* A look at all files: counts what waits, or moves it. */
struct look {
    struct objects *objects;
    struct reader *reader; /* for the states of jobs */
    bool counts;
    int64_t files, bytes, wall_ms;
};

/* After a file that could not be moved: notes why. false: the store is away, and the look ends. */
bool look_goes_on(struct look *look, const struct err *err);

/* Removes what moves that were cut off have left. */
bool jobs_clean_up(const struct objects *objects, struct err *err);

/* false: the look ends. */
bool look_at_file(struct look *look, const char *key, const char *path, struct err *err);
bool look_at_blobs(struct look *look, struct err *err);
bool look_at_artifacts(struct look *look, struct err *err);
bool look_at_jobs(struct look *look, enum job_files what, struct err *err);

/* Brings the object of this key back, if it is of this kind, and removes it from the store. */
bool bring_blob_back(struct objects *objects, const char *name, struct err *err);
bool bring_artifact_back(struct objects *objects, const char *path, struct err *err);
bool bring_job_back(struct objects *objects, const char *name, enum job_files what, struct err *err);

void *mover_main(void *objects);

#endif
