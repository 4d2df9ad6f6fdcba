/* SPDX-License-Identifier: Apache-2.0 */
/* The part of stagings.c for jobs in container images: the image of a job's first node, and that of the
 * others, one after the other. images.c pulls them. */
#include <utlist.h>

#include "agent/environment/stagings_own.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

static struct image_need image_of(const struct staging_item *item, size_t index)
{
    const struct staging *desired = &item->desired;
    return (struct image_need){.image = index == 0 ? desired->image : desired->worker_image,
                               .secret = desired->image_secret,
                               .owner = desired->owner,
                               .project = desired->project,
                               .auth = desired->image_auth};
}

void staging_pull_told(void *closure, const struct pull *pull, const char *text)
{
    struct stagings *stagings = closure;
    struct staging_item *item;
    DL_FOREACH (stagings->items, item) {
        if (item->pull == pull) {
            staging_progress(item, text);
        }
    }
}

/* Takes the images that are here, and returns the first that is not; STAGING_IMAGES: none. */
static size_t take_images(struct staging_item *item, struct err *err)
{
    for (size_t i = 0; i < STAGING_IMAGES; i++) {
        const struct image_need need = image_of(item, i);
        autofree char *root = NULL;
        autofree char *lock = NULL;
        autojson json_t *config = NULL;
        if (need.image == NULL || item->software[i] >= 0) {
            continue;
        }
        item->software[i] = image_use(item->stagings->images, &need, &root, &lock, &config, err);
        if (item->software[i] < 0) {
            return i;
        }
    }
    return STAGING_IMAGES;
}

/* Pulls the first image that is not here. */
static void pull_next(struct staging_item *item)
{
    struct stagings *stagings = item->stagings;
    const struct image_need need = image_of(item, item->pulling);
    if (need.secret != NULL && need.auth == NULL) {
        autofree char *text = xprintf("there is no secret %s any more to pull the image with", need.secret);
        staging_end(item, BUILD_REFUSED, text);
        return;
    }
    item->pull = pull_start(stagings->images, &need);
    if (pull_waits(item->pull)) {
        staging_progress(item, "waits for other images that this node pulls");
    }
}

static void take_pull(struct staging_item *item, enum build_end how, const char *text)
{
    struct err err;
    size_t pulled = item->pulling;
    item->pull = NULL;
    if (how != BUILD_READY) {
        staging_end(item, how, text);
        return;
    }
    item->pulling = take_images(item, &err);
    if (item->pulling == pulled) {
        staging_end(item, BUILD_FAILED, err.text);
    } else if (item->pulling == STAGING_IMAGES) {
        staging_end(item, BUILD_READY, NULL);
    } else {
        pull_next(item);
    }
}

void staging_pull_done(void *closure, const struct pull *pull, enum build_end how, const char *text)
{
    struct stagings *stagings = closure;
    struct staging_item *item;
    DL_FOREACH (stagings->items, item) {
        if (item->pull == pull) {
            take_pull(item, how, text);
        }
    }
}

void staging_begin_images(struct staging_item *item)
{
    struct err err;
    if (item->stagings->images == NULL) {
        staging_end(item, BUILD_UNABLE,
                    "this node runs no jobs in container images: it has no crun, skopeo or umoci");
        return;
    }
    item->pulling = take_images(item, &err);
    if (item->pulling == STAGING_IMAGES) {
        staging_end(item, BUILD_READY, NULL);
    } else {
        pull_next(item);
    }
}
