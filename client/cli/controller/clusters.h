/* SPDX-License-Identifier: Apache-2.0 */
/* All controllers that the user has named, for what is asked of each. */
#ifndef CLI_CLUSTERS_H
#define CLI_CLUSTERS_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/frame/verb.h"
#include "client/cli/transport/api.h"
#include "proto/base/err.h"

struct cluster {
    char *name;      /* of its context */
    struct api *api; /* NULL: its context cannot be used, as err says */
    json_t *answer;  /* of the last question; NULL: there is none, as err says */
    struct err err;
    bool away; /* it did not answer the last question */
};

struct clusters {
    struct cluster *items;
    size_t count;
};

/* Those of all contexts, the one in use first. Connects to nobody yet. ERR_USAGE where the call names a
 * controller, or the user has named none. */
bool clusters_open(const struct call *call, struct clusters *ret_clusters, struct err *err);
/* The first whose context can be used; borrowed. Its error where none can. */
bool clusters_first(const struct clusters *clusters, struct api **ret_api, struct err *err);
void clusters_close(struct clusters *clusters);
#define autoclusters __attribute__((cleanup(clusters_close)))

/* Asks all of them at once, for JSON, and waits CLIENT_ASK_ALL_MS at most. */
void clusters_ask(struct clusters *clusters, const struct request *request);

#endif
