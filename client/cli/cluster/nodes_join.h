/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `gpuctl nodes`: how nodes join a cluster and leave it for good. */
#ifndef CLI_NODES_JOIN_H
#define CLI_NODES_JOIN_H

#include "client/cli/transport/api.h"
#include "client/cli/frame/verb.h"
#include "proto/wire/views.h"

/* The wishes for a join token. */
struct join_options {
    const char *pool;
    bool reserved;
    int64_t ttl_ms; /* 0: as the controller will */
};
extern const struct option_row join_rows[];

/* Makes a join token; the caller finishes the view. */
bool join_make_token(struct api *api, const struct join_options *options, struct join_token_view *ret_view,
                     struct err *err);
/* The URL by which a node reaches the controller: ours, unless that is of this host alone. */
char *join_url(const struct api *api, const struct join_token_view *view);
/* Appends " --ca-pin PIN" or " --insecure-plain-http", where the URL needs it. */
void join_append_trust(const char *url, const struct join_token_view *view, struct text *line);

#endif
