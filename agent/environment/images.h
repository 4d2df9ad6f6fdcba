/* SPDX-License-Identifier: Apache-2.0 */
/* The container images of this node: pulls each once for all who want it, and unpacks it to a folder that all
 * attempts share and none may write to. */
#ifndef AGENT_IMAGES_H
#define AGENT_IMAGES_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/base/children.h"
#include "agent/environment/builder.h"
#include "proto/base/crypto/hash.h"

struct images;
struct pull; /* of one image */

/* All members are borrowed. */
struct images_config {
    const char *folder; /* made if it does not exist */
    int64_t limit_bytes;
    struct loop *loop;
    struct children *children;
    struct build_hold hold; /* seccomp is not used: programs that unpack images make files for other users */
    /* One line of progress. */
    void (*told)(void *closure, const struct pull *pull, const char *text);
    /* Called once, before the pull is freed, and never from within pull_start. text says why there is no
     * image. */
    void (*done)(void *closure, const struct pull *pull, enum build_end end, const char *text);
    void *closure;
};

#define IMAGES_RUNTIME "crun"

/* The first program for images that PATH does not have; NULL: it has all of them. */
const char *images_missing_program(void);

struct images *images_create(const struct images_config *config, struct err *err);
/* All pulls must have ended before. */
void images_destroy(struct images *images);
/* The path of the OCI runtime. */
const char *images_runtime(const struct images *images);
/* Deletes a piece of what was removed; true while there is more. */
bool images_step(struct images *images);

/* An image as a job asks for it. One that was pulled with a secret is another image for everybody else. */
struct image_need {
    const char *image;                  /* with its digest */
    const char *secret;                 /* name; NULL: anybody may pull it */
    const char *owner, *project, *auth; /* with secret: whose it is, and its value in base64; NULL: unknown */
};
void image_name(const struct image_need *need, char out[HASH_HEX + 1]);

/* Locks an image against removal until the caller closes the returned descriptor; -1 with an error if it is
 * not here. The caller frees *ret_root, the folder of its files, and *ret_config, the OCI config object. */
int image_use(const struct images *images, const struct image_need *need, char **ret_root, char **ret_lock,
              json_t **ret_config, struct err *err);

/* Starts a pull, or returns the one that is under way. */
struct pull *pull_start(struct images *images, const struct image_need *need);
bool pull_waits(const struct pull *pull);
/* Stops a pull that nobody wants any more, without a call of done. */
void pull_stop(struct pull *pull);

#endif
