/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints of jobs: for each job a folder with pieces by their hash, and a manifest for each node and
 * checkpoint. All calls wait for the disk; those that change a job come from one thread, but for
 * checkpoints_replace. */
#ifndef BLOB_CHECKPOINTS_H
#define BLOB_CHECKPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/blob/job_folder.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/wire/files/checkpoint.h"

struct checkpoints;

/* A manifest with files of more than limit bytes is refused. */
struct checkpoints *checkpoints_open(const char *folder, int64_t limit, struct err *err);
void checkpoints_close(struct checkpoints *checkpoints);

/* One node's part of a checkpoint. */
struct checkpoint_part {
    int64_t attempt, nodes, node_rank;
    enum checkpoint_kind kind;
    int64_t number; /* the ranks' step, or the time of the node's clock; 0 for END */
};

/* Stores the manifest of a part, once all pieces that it names are stored: then *ret_count is 0. Otherwise
 * *ret_missing, which the caller frees, are the first of the pieces that are not, as indices into the
 * manifest's pieces. ERR_TOO_LARGE above the limit. */
bool checkpoints_take(struct checkpoints *checkpoints, const char *job_id, const struct checkpoint_part *part,
                      const void *manifest, size_t length, int64_t **ret_missing, size_t *ret_count,
                      struct err *err);

/* The node's folder holds what the part has, STILL or EMPTY, at this moment. ERR_NOT_FOUND: the part is not
 * stored, or no longer; one of EMPTY is stored then. */
bool checkpoints_hold(struct checkpoints *checkpoints, const char *job_id, const struct checkpoint_part *part,
                      struct err *err);

/* Notes why the node's part was not taken, and fills err with it. Always false. */
bool checkpoints_refuse(const struct checkpoints *checkpoints, const char *job_id,
                        const struct checkpoint_part *part, enum checkpoint_gap gap, struct err *err);

/* Stores a piece durably. */
bool checkpoints_put_piece(struct checkpoints *checkpoints, const char *job_id,
                           const uint8_t hash[HASH_BYTES], const void *bytes, size_t length, struct err *err);
/* Opens a piece for reading; -1 with ERR_NOT_FOUND or ERR_IO, or ERR_UNAVAILABLE: the object store has it. */
int checkpoints_open_piece(const struct checkpoints *checkpoints, const char *job_id,
                           const uint8_t hash[HASH_BYTES], int64_t *ret_size, struct err *err);

/* The last complete checkpoint of a job. */
struct checkpoint_found {
    bool found;
    int64_t attempt;
    enum checkpoint_kind kind;
    int64_t number;
    int64_t taken_ms;                    /* wall clock */
    struct checkpoint_manifest manifest; /* the files of all nodes; of a path that several have, those of the
                                            asked node rank, else of the lowest */
};

/* *ret_found is to be finished with checkpoint_found_finish. */
bool checkpoints_last(const struct checkpoints *checkpoints, const char *job_id, int64_t node_rank,
                      struct checkpoint_found *ret_found, struct err *err);
void checkpoint_found_finish(struct checkpoint_found *found);

/* Whether a job has a complete checkpoint. */
bool checkpoints_has(const struct checkpoints *checkpoints, const char *job_id);

/* Why the newest checkpoint was refused; NULL: it was not. The caller frees it. */
char *checkpoints_problem(const struct checkpoints *checkpoints, const char *job_id);

/* --- for daemon/objects --------------------------------------------------------------------------------- */

/* Pieces of jobs that have ended go to the object store; their manifests are there, too, and stay here. What
 * would change the files of a job whose pieces are away is refused with ERR_UNAVAILABLE. */

/* Where the folders of jobs are. */
const char *checkpoints_folder(const struct checkpoints *checkpoints);
/* The folder of a job's pieces. The caller frees it. */
char *checkpoints_pieces_folder(const struct checkpoints *checkpoints, const char *job_id);
/* job_folder_replace: nothing of the job changes meanwhile. */
bool checkpoints_replace(struct checkpoints *checkpoints, const char *job_id, const char *to,
                         const struct job_folder_extent *extent, struct err *err);

/* --- removal -------------------------------------------------------------------------------------------- */

/* Removes all checkpoints of a job. *ret_bytes is their size, 0 if there are none. dry: only measures them.
 */
bool checkpoints_remove(const struct checkpoints *checkpoints, const char *job_id, bool dry,
                        int64_t *ret_bytes, struct err *err);

#endif
