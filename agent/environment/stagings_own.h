/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of stagings share. */
#ifndef AGENT_STAGINGS_OWN_H
#define AGENT_STAGINGS_OWN_H

#include "agent/environment/stagings.h"
#include "proto/limits.h"
#include "proto/wire/staging.h"

#define STAGING_IMAGES 2 /* of a job: of its first node, and of the others */

struct staging_item {
    struct stagings *stagings;
    struct staging desired;
    enum staging_state state;
    enum build_end fault; /* with STAGING_FAILED */
    char *text;           /* text of the next report, or NULL */

    struct staging_fetch *fetches; /* one for each blob */
    size_t fetching;               /* blobs that have not arrived yet */
    int requirements;              /* the text, for the build; -1: it has not arrived, or the build has it */
    struct input_fetch *inputs[LIMIT_JOB_INPUTS]; /* which others may want, too; NULL: here, or not begun */
    struct input_use uses[LIMIT_JOB_INPUTS];      /* of those that are here */
    size_t inputs_coming;
    struct build *build;          /* which others may want, too; NULL: none */
    struct pull *pull;            /* likewise */
    size_t pulling;               /* the image that it pulls */
    int software[STAGING_IMAGES]; /* locks on the environment or the images; -1: none */

    struct controller_request *report;
    enum staging_state told; /* the state in the report that is under way, or was answered last */
    bool changed;            /* the next report has news */
    bool alive;              /* it goes on without news */
    int64_t told_ms;         /* when the last report was answered, or the staging began */
    struct loop_timer tell, watch;
    struct staging_item *prev, *next;
};

/* A blob that is being fetched. */
struct staging_fetch {
    struct staging_item *item;
    struct payload_order *order; /* NULL: it has arrived */
};

struct stagings {
    struct stagings_config config;
    struct builder *builder;
    struct inputs *inputs;
    struct images *images; /* NULL: this node runs no jobs in images */
    struct staging_item *items;
};

/* fault BUILD_READY: no failure. */
void staging_end(struct staging_item *item, enum build_end fault, const char *text);
void staging_progress(struct staging_item *item, const char *text);

/* --- staging_images.c --- */

/* Takes the images of the job, or pulls them, and ends the staging then. */
void staging_begin_images(struct staging_item *item);
/* For images_create. */
void staging_pull_told(void *closure, const struct pull *pull, const char *text);
void staging_pull_done(void *closure, const struct pull *pull, enum build_end how, const char *text);

#endif
