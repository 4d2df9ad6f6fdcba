/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of nodes, KEY=VALUE: their operators set them, and constraints of jobs refer to them. */
#ifndef PROTO_NODE_LABEL_H
#define PROTO_NODE_LABEL_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/err.h"

/* Labels that every node has by itself: its name, pool, GPU type and host. X(name, key) */
#define BUILT_IN_LABELS(X)                                                                                   \
    X(NODE, "node")                                                                                          \
    X(POOL, "pool")                                                                                          \
    X(GPU_TYPE, "gpu_type")                                                                                  \
    X(HOST, "host")

/* The label of nodes that run jobs as the users of their owners. */
#define ISOLATION_LABEL    "isolation"
#define ISOLATION_BY_USERS "user"

/* The label of nodes that run jobs in container images, set by agents. */
#define IMAGES_LABEL "images"
#define IMAGES_VALUE "oci"

/* The label of nodes that have a volume: "volume.NAME", set by agents. Its values say whether jobs may write
 * to it. Where the agent cannot mount, it is fixed: at the operator's path, with the rights that its files
 * give. */
#define VOLUME_LABEL                 "volume."
#define VOLUME_LABEL_WRITABLE        "rw"
#define VOLUME_LABEL_READ_ONLY       "ro"
#define VOLUME_LABEL_WRITABLE_FIXED  "rw-fixed"
#define VOLUME_LABEL_READ_ONLY_FIXED "ro-fixed"

/* A folder of a node that its operator offers to jobs. */
struct node_volume {
    char *name, *path; /* owned; absolute */
    bool read_only;
    bool must_be_mount; /* what lies there while nothing is mounted is not the volume */
};

/* Reads NAME=PATH[:ro][:mount]. ERR_FIELD names the option. node_volume_finish frees the volume. */
bool node_volume_take(const char *text, struct node_volume *ret_volume, struct err *err);
void node_volume_finish(struct node_volume *volume);

#define AS_ENUM_BUILT_IN(name, key) BUILT_IN_##name,
enum built_in_label { BUILT_IN_LABELS(AS_ENUM_BUILT_IN) BUILT_IN_COUNT };

/* BUILT_IN_COUNT for a key that only operators set. */
enum built_in_label node_label_built_in(const char *key);

/* Whether the text is 1 to LIMIT_LABEL_VALUE_BYTES printable ASCII characters without blanks and commas. */
bool node_label_is_value(const char *text);

/* Adds a label from "zone=a" to labels. ERR_FIELD names the option. */
bool node_label_take(const char *text, json_t *labels, struct err *err);

/* Checks an object of labels, as a node sends it; ERR_FIELD names the label. */
bool node_labels_check(const json_t *labels, struct err *err);

#endif
