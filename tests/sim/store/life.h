/* SPDX-License-Identifier: Apache-2.0 */
/* A store that runs a script on a disk that may fail, and the invariants of each reopening: acknowledged
 * batches are complete, nothing is there in part, and the incarnation has grown. */
#ifndef SIM_LIFE_H
#define SIM_LIFE_H

#include "daemon/store/store.h"
#include "tests/sim/disk/disk.h"
#include "tests/sim/store/script.h"

/* Two disks with a path each: for the life itself, and for images of its disk. */
struct stage {
    char folder[64];
    char *path, *image_path;
    struct disk *disk, *image;
};

void stage_begin(struct stage *stage);
void stage_finish(struct stage *stage);

/* Fingerprints of the database after 0, 1, ... batches. The caller owns the array. */
uint64_t *life_expect(const struct script *script);

struct life {
    struct stage *stage;
    const struct script *script;
    const uint64_t *expected;
    struct store *store;  /* NULL: closed */
    size_t done;          /* acknowledged batches */
    bool in_flight;       /* one more batch may have been stored */
    uint32_t incarnation; /* from the last opening */
    struct err err;
};

/* The error as one sentence, or NULL. */
const char *life_judge(const struct life *life, struct store *store, uint64_t *ret_fingerprint);

/* Opens the store and determines its batches. False: it could not be opened (life->err), or an invariant
 * fails (*ret_wrong). */
bool life_open(struct life *life, const char **ret_wrong);
void life_close(struct life *life);

/* Ends the process without closing anything. */
void life_end(struct life *life, bool power);

/* Writes the next batch. False: it failed, with an unknown outcome. */
bool life_batch(struct life *life);

/* Makes a checkpoint, as if the log were long. */
bool life_checkpoint(struct life *life, bool forced);

#endif
