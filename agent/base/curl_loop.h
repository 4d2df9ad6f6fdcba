/* SPDX-License-Identifier: Apache-2.0 */
/* A libcurl multi handle on the agent's loop. */
#ifndef AGENT_CURL_LOOP_H
#define AGENT_CURL_LOOP_H

#include <curl/curl.h>

#include "agent/base/loop.h"

struct curl_loop;

/* done is called for each transfer that has ended. It may remove the handle, and add others. */
struct curl_loop *curl_loop_create(struct loop *loop,
                                   void (*done)(void *closure, CURL *easy, CURLcode result), void *closure);
/* The handles that were added must be removed before. NULL has no effect. */
void curl_loop_destroy(struct curl_loop *curl);

/* For its options, and to add and remove handles. */
CURLM *curl_loop_multi(const struct curl_loop *curl);

#endif
