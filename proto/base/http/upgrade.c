/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the request for an upgrade, and reads the head of its reply. */
#include "proto/base/http/upgrade.h"

#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/text.h"

void upgrade_only_connect(CURL *easy)
{
    curl_use_set(easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_use_set(easy, CURLOPT_HTTPPROXYTUNNEL,
                 1L); /* a proxy that answers by itself would end the upgrade */
    curl_use_set(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_use_set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
}

char *upgrade_head(const char *url, const char *path, const char *protocol, const char *token,
                   const char *user_agent)
{
    const char *authority = strstr(url, "://");
    authority = authority != NULL ? authority + 3 : url;
    size_t length = strcspn(authority, "/");
    size_t prefix = strlen(authority + length);
    while (prefix > 0 && authority[length + prefix - 1] == '/') {
        prefix--;
    }
    return xprintf("GET %.*s%s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: %s\r\nAuthorization: Bearer %s\r\n"
                   "Connection: Upgrade\r\nUpgrade: %s\r\n\r\n",
                   (int)prefix, authority + length, path, (int)length, authority, user_agent, token,
                   protocol);
}

/* The length of the body that the head announces; -1: it announces none. */
static int64_t body_length(const char *head, const char *end)
{
    static const char name[] = "\r\nContent-Length:";
    for (const char *at = head; at < end; at++) {
        if (strncasecmp(at, name, sizeof name - 1) == 0) {
            const char *value = at + sizeof name - 1;
            value += strspn(value, " \t");
            autofree char *digits = xstrndup(value, strspn(value, "0123456789"));
            int64_t length = -1;
            return text_to_int(digits, 0, UPGRADE_REPLY_BYTES, &length) ? length : -1;
        }
    }
    return -1;
}

enum upgrade_look upgrade_read(const char *bytes, size_t length, struct upgrade_reply *ret_reply)
{
    static const char version[] = "HTTP/1.1 ";
    int64_t status;
    size_t seen = length < sizeof version - 1 ? length : sizeof version - 1;
    if (memcmp(bytes, version, seen) != 0) {
        return UPGRADE_WRONG;
    }
    const char *end = memmem(bytes, length, "\r\n\r\n", 4);
    if (end == NULL) {
        return length < UPGRADE_REPLY_BYTES ? UPGRADE_PART : UPGRADE_WRONG;
    }
    autofree char *digits = xstrndup(bytes + sizeof version - 1, 3);
    if (!text_to_int(digits, 100, 599, &status)) {
        return UPGRADE_WRONG;
    }
    const char *body = end + 4;
    *ret_reply = (struct upgrade_reply){.status = (int)status, .body = body, .used = (size_t)(body - bytes)};
    if (status == 101) {
        return UPGRADE_WHOLE;
    }
    int64_t announced = body_length(bytes, end);
    ret_reply->body_length = length - ret_reply->used;
    if (announced < 0) {
        return UPGRADE_WRONG;
    }
    return ret_reply->body_length >= (size_t)announced ? UPGRADE_WHOLE : UPGRADE_PART;
}
