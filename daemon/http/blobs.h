/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of payloads. */
#ifndef HTTP_BLOBS_H
#define HTTP_BLOBS_H

#include "daemon/http/router.h"

extern const struct body_sink blobs_sink;
void blobs_put(struct request *request);
void blobs_get(struct request *request);

#endif
