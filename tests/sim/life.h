/* SPDX-License-Identifier: Apache-2.0 */
/* A store that lives through a script on a disk which may fail, and what must hold whenever it is opened
 * again: what was acknowledged is there in full, nothing is half there, and the incarnation has grown. */
#ifndef SIM_LIFE_H
#define SIM_LIFE_H

#include "daemon/store/store.h"
#include "tests/sim/disk.h"
#include "tests/sim/script.h"

/* Two disks with a path each: of the life, and of images that are taken of it. */
struct stage {
    char folder[64];
    char *path, *image_path;
    struct disk *disk, *image;
};

void stage_begin(struct stage *stage);
void stage_finish(struct stage *stage);

/* Fingerprints of the database after 0, 1, ... batches. Owned by the caller. */
uint64_t *life_expect(const struct script *script);

struct life {
    struct stage *stage;
    const struct script *script;
    const uint64_t *expected;
    struct store *store;  /* NULL: closed */
    size_t done;          /* batches that were acknowledged */
    bool in_flight;       /* one more may have been stored */
    uint32_t incarnation; /* the last that an opening has given */
    struct err err;
};

/* What is wrong, as one sentence, or NULL. */
const char *life_judge(const struct life *life, struct store *store, uint64_t *ret_fingerprint);

/* Opens, and looks which batches are there. False: it could not be opened (life->err), or something is wrong
 * (*ret_wrong). */
bool life_open(struct life *life, const char **ret_wrong);
void life_close(struct life *life);

/* The process ends without closing anything. */
void life_end(struct life *life, bool power);

/* The next batch. False: it failed, and its outcome is not known. */
bool life_batch(struct life *life);

/* A checkpoint, as if the log were long. */
bool life_checkpoint(struct life *life, bool forced);

#endif
