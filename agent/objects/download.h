/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches bytes that are named by their SHA-256, from the object store or from the controller. */
#ifndef AGENT_DOWNLOAD_H
#define AGENT_DOWNLOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/controller_client.h"
#include "agent/objects/object_client.h"
#include "proto/base/err.h"

struct download;

struct download_call {
    struct controller_client *controller; /* borrowed, as objects */
    struct object_client *objects;
    const char *path; /* of the controller, with its query; copied */
    const char *hash; /* SHA-256 in hex; copied */
    /* Takes the bytes; `first` marks the first ones of each try. False gives up. */
    bool (*arrive)(void *closure, const void *bytes, size_t length, bool first);
    /* Called later, once, after the download was freed. err is NULL when bytes with the hash have come since
     * the last `first`; ERR_IO: arrive gave up, or the controller sends
     * other bytes. */
    void (*done)(void *closure, const struct err *err);
    void *closure;
};

struct download *download_begin(const struct download_call *call);
/* Ends a download without a call of done; NULL is allowed. */
void download_cancel(struct download *download);

#endif
