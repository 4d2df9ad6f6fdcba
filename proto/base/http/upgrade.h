/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of an HTTP Upgrade, over a connection that libcurl makes and leaves to its user. */
#ifndef BASE_UPGRADE_H
#define BASE_UPGRADE_H

#include <curl/curl.h>
#include <stddef.h>

#include "proto/base/err.h"

/* From now on the handle only connects: its user sends and receives with curl_easy_send and curl_easy_recv.
 */
void upgrade_only_connect(CURL *easy);

/* The head of the request, which the caller frees. url is the server's, path begins with a slash. */
char *upgrade_head(const char *url, const char *path, const char *protocol, const char *token,
                   const char *user_agent);

/* The longest reply that is read. */
#define UPGRADE_REPLY_BYTES (16 * 1024)

struct upgrade_reply {
    int status;       /* 101: upgraded; else it was refused: */
    const char *body; /* borrowed from what was read */
    size_t body_length;
    size_t used; /* bytes of the reply: those behind are of the other protocol */
};

enum upgrade_look { UPGRADE_WHOLE, UPGRADE_PART, UPGRADE_WRONG };

/* Looks at the bytes that have come; a NUL stands behind them. WRONG: they are no reply to an upgrade. */
enum upgrade_look upgrade_read(const char *bytes, size_t length, struct upgrade_reply *ret_reply);

#endif
