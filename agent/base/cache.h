/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of things that jobs share, such as environments and inputs: each is made once, used by many, and
 * removed when room is needed and nobody uses it. */
#ifndef AGENT_CACHE_H
#define AGENT_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct cache;

/* The folder of a thing that is being made: a later maker may go on with it. */
#define CACHE_PART ".part"

struct cache_config {
    const char *folder; /* made if it does not exist */
    const char *noun;   /* of its things, for the log */
    int64_t limit_bytes;
    bool (*is_whole)(const char *folder); /* beyond its marker; NULL: the marker says it */
};

struct cache *cache_create(const struct cache_config *config, struct err *err);
void cache_destroy(struct cache *cache);

const char *cache_folder(const struct cache *cache);

/* Locks the thing of this name against removal until the caller closes the returned descriptor; -1: it is not
 * there. The caller owns *ret_marker and *ret_folder. */
int cache_use(const struct cache *cache, const char *name, json_t **ret_marker, char **ret_folder);

/* The lock file of a thing: users hold it shared (flock), its maker exclusively. The caller frees the path.
 */
char *cache_lock_path(const char *folder);

/* For who makes a thing: locks its place until the caller closes the returned descriptor; -1 with an error if
 * another agent makes it. */
int cache_lock(const char *folder, struct err *err);
/* Writes the marker of a thing, or of its part. */
bool cache_mark(const char *folder, const json_t *marker, struct err *err);
/* Has a name lead to a thing. */
bool cache_link(const struct cache *cache, const char *name, const char *folder, struct err *err);

/* How many bytes are missing on the disk of the cache; 0 if there is enough space. */
int64_t cache_missing_bytes(const struct cache *cache);
/* Removes what has no marker, and as many unused things as the limit requires for more_bytes more, the least
 * recently used first. Returns how many bytes of room are missing then. */
int64_t cache_make_room(struct cache *cache, int64_t more_bytes);

/* Takes a path in the folder away. */
void cache_discard(struct cache *cache, const char *path);
/* Deletes a piece of what was taken away; true while there is more. */
bool cache_step(struct cache *cache);

#endif
