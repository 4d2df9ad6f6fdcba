/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a checkpoint: the files of $GPUCTL_CHECKPOINT_DIR on one node, and the pieces that each
 * consists of. A line "gpuctl-checkpoint-1 FILES PIECES BYTES LEFT-OUT"; then for each file a line "SIZE
 * MODIFIED-MS x|- PIECES PATH" with a NUL instead of a newline, and its pieces, each the SHA-256 and the size
 * in four bytes, little endian. */
#ifndef PROTO_CHECKPOINT_H
#define PROTO_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/crypto/hash.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* What a checkpoint was taken at. EMPTY: nothing, the node's folder has no files; it only says so. */
#define CHECKPOINT_KINDS(X)                                                                                  \
    X(STEP, "step")   /* the ranks acknowledged it */                                                        \
    X(STILL, "still") /* the folder did not change for a while */                                            \
    X(END, "end")     /* the end of the attempt */                                                           \
    X(EMPTY, "empty")

#define AS_ENUM_CHECKPOINT_KIND(name, ...) CHECKPOINT_##name,
enum checkpoint_kind { CHECKPOINT_KINDS(AS_ENUM_CHECKPOINT_KIND) CHECKPOINT_KIND_COUNT };

const char *checkpoint_kind_text(enum checkpoint_kind kind);
bool checkpoint_kind_from_text(const char *text, enum checkpoint_kind *ret_kind);

/* Why a folder was not taken; never a part of it. X(name, spelling, "$GPUCTL_CHECKPOINT_DIR ...") */
#define CHECKPOINT_GAPS(X)                                                                                   \
    X(NONE, "none", "can be taken")                                                                          \
    X(MANY, "many", "has more than 16384 files and folders")                                                 \
    X(DEEP, "deep", "has more than 32 levels of folders")                                                    \
    X(UNREAD, "unread",                                                                                      \
      "has files or folders that cannot be read, or that change each time that they are read")

#define AS_ENUM_CHECKPOINT_GAP(name, ...) GAP_##name,
enum checkpoint_gap { CHECKPOINT_GAPS(AS_ENUM_CHECKPOINT_GAP) CHECKPOINT_GAP_COUNT };

const char *checkpoint_gap_text(enum checkpoint_gap gap);
const char *checkpoint_gap_meaning(enum checkpoint_gap gap);
bool checkpoint_gap_from_text(const char *text, enum checkpoint_gap *ret_gap);

struct checkpoint_piece {
    uint8_t hash[HASH_BYTES];
    uint32_t size; /* 1 to LIMIT_CHECKPOINT_PIECE_BYTES */
};

struct checkpoint_file {
    const char *path; /* relative, UTF-8, each part a plain name */
    int64_t size;     /* of its pieces together */
    int64_t modified_ms;
    bool executable;
    size_t first, count; /* its pieces */
};

struct checkpoint_manifest {
    struct checkpoint_file *files; /* sorted by path */
    size_t file_count, file_room;
    struct checkpoint_piece *pieces;
    size_t piece_count, piece_room;
    int64_t bytes;      /* of all files */
    int64_t left_files; /* what was left out: links, special files, names that are not UTF-8 */
    char *text;         /* after a decode: owned, the paths point into it */
};

/* Adds a file, whose pieces follow with manifest_add_piece. The path is borrowed. */
void manifest_add_file(struct checkpoint_manifest *manifest, const struct checkpoint_file *file);
void manifest_add_piece(struct checkpoint_manifest *manifest, const struct checkpoint_piece *piece);

void manifest_encode(const struct checkpoint_manifest *manifest, struct text *out);
/* Copies the bytes. */
bool manifest_decode(const void *bytes, size_t length, struct checkpoint_manifest *ret_manifest,
                     struct err *err);
/* The files of both; of a path that both have, the first one's file. Borrows the paths of both. */
void manifest_join(const struct checkpoint_manifest *first, const struct checkpoint_manifest *second,
                   struct checkpoint_manifest *ret_manifest);
void manifest_finish(struct checkpoint_manifest *manifest);

#endif
