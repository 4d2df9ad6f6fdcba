/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of checkpoints that a job has, one for each word of a node, by the names of their manifests:
 * SINCE.SERIAL.ATTEMPT.NODES.NODE-RANK.KIND.NUMBER. */
#ifndef BLOB_PARTS_H
#define BLOB_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/blob/checkpoints/checkpoints.h"
#include "proto/base/files/files.h"

struct part_entry {
    int64_t since; /* 0: the node has not said again that its folder holds this */
    int64_t serial;
    struct checkpoint_part part;
    char *name; /* of its manifest */
    bool keep;
};

struct parts {
    struct part_entry *items;
    size_t count;
    struct file_names names;
};

/* Those in the folder of a job; none when there is no folder. */
bool parts_read(const char *folder, struct parts *ret_parts, struct err *err);
void parts_finish(struct parts *parts);

/* Whether both are of the same checkpoint, as attempt, kind and number say. */
bool part_is_of(const struct checkpoint_part *a, const struct checkpoint_part *b);
/* When the part was first what its node's folder holds. */
int64_t part_moment(const struct part_entry *entry);

/* The newest part of the newest complete checkpoint that is not to be kept yet; NULL: there is none. */
struct part_entry *parts_whole(const struct parts *parts);
/* The newest serial of a checkpoint's parts. */
int64_t parts_newest_serial(const struct parts *parts, const struct checkpoint_part *part);
/* The node's part of the checkpoint that became complete with `last`; NULL: it has none. serial: the newest
 * of its parts. */
struct part_entry *parts_of_node(const struct parts *parts, const struct part_entry *last, int64_t serial,
                                 int64_t node_rank);
/* Sets keep of what stays: complete checkpoints, and parts after these that may become complete. */
void parts_choose(const struct parts *parts);

#endif
