/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of the files that a rank keeps ($GPUCTL_OUTPUT_DIR), as a node sends it and a controller stores
 * it: a head of KEPT_HEAD_BYTES, an index, and the content of the files one after the other, in the order of
 * the index. The index has, for each file, "SIZE MODIFIED-MS x|- PATH" and a NUL. */
#ifndef PROTO_KEPT_FILES_H
#define PROTO_KEPT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

#define KEPT_HEAD_BYTES 160

struct kept_file {
    const char *path; /* relative, UTF-8, each part a plain name */
    int64_t size;
    int64_t modified_ms; /* wall clock */
    bool executable;
    int64_t offset; /* of its content in the stream */
};

struct kept_head {
    int64_t index_bytes, count;
    int64_t bytes;                  /* of the whole stream, with head and index */
    int64_t left_files, left_bytes; /* what was left out: links, names that are not UTF-8, above the limits */
};

/* Whether a file of this path can be in a stream. */
bool kept_path_is_good(const char *path);

void kept_head_encode(const struct kept_head *head, char out[KEPT_HEAD_BYTES]);
/* bytes: KEPT_HEAD_BYTES of them. Its numbers agree with each other, and are within their limits. */
bool kept_head_decode(const char *bytes, struct kept_head *ret_head, struct err *err);

void kept_entry_append(struct text *index, const struct kept_file *file);
/* Reads an index of head->index_bytes, into which the paths of *ret_files point: head->count of them, sorted
 * by path, whose content fills the stream. The caller frees *ret_files. */
bool kept_index_decode(char *index, const struct kept_head *head, struct kept_file **ret_files,
                       struct err *err);

#endif
