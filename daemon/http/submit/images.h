/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the images of new jobs their digests. */
#ifndef HTTP_IMAGES_H
#define HTTP_IMAGES_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/err.h"

struct job_spec;
struct request;
struct server;

struct images;
/* Takes NULL. */
void images_close(struct images *images);

/* Whether the operator lets the images of the spec, if it has any, come from their registries. */
bool images_check(const struct server *server, const struct job_spec *spec, struct err *err);

/* Whether the spec names an image by a tag. */
bool images_need(const json_t *spec);
/* The field that does; NULL: none. */
const char *images_tag_field(const struct job_spec *spec);

/* Checks the spec of the request, asks the registry which images its tags name, puts these with their digests
 * into the spec, and calls then. So all attempts of a job have the same images, whenever and wherever they
 * start. The request waits. */
bool images_pin(struct request *request, bool (*then)(struct request *request, struct err *err),
                struct err *err);

#endif
