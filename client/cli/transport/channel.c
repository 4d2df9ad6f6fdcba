/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the connection of a stream, and reads and writes its frames. It waits only where it sends: the other
 * side always reads. */
#include "client/cli/transport/channel.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/transport/api_parts.h"
#include "proto/base/cleanup.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/http/upgrade.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_client.h"
#include "proto/wire/stream_request.h"
#include "proto/wire/views.h"

struct channel {
    CURL *easy;
    int fd;
    size_t credit;
    size_t from, length;       /* of what has come and was not read */
    char came[FRAME_ROOM + 1]; /* a NUL stands behind what has come */
};

static bool unreachable(const struct api *api, const char *why, struct err *err)
{
    return err_set(err, ERR_UNREACHABLE, "the controller at %s cannot be reached: %s", api->context.url, why);
}

static bool wait_for(const struct channel *channel, short events)
{
    struct pollfd ready = {.fd = channel->fd, .events = events};
    return poll(&ready, 1, CLIENT_REPLY_MS) > 0;
}

static bool send_all(struct channel *channel, const char *bytes, size_t length, struct err *err)
{
    while (length > 0) {
        size_t sent = 0;
        CURLcode code = curl_easy_send(channel->easy, bytes, length, &sent);
        if (code == CURLE_AGAIN && wait_for(channel, POLLOUT)) {
            continue;
        }
        if (code != CURLE_OK) {
            return err_set(err, ERR_UNREACHABLE, "the connection to the job has ended");
        }
        bytes += sent;
        length -= sent;
    }
    return true;
}

/* --- opening -------------------------------------------------------------------------------------------- */

static bool connect_to(const struct api *api, struct channel *channel, struct err *err)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    channel->easy = curl_use_easy();
    api_set_connection(api, channel->easy);
    curl_use_set(channel->easy, CURLOPT_URL, api->context.url);
    curl_use_set(channel->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CLIENT_CONNECT_MS);
    upgrade_only_connect(channel->easy);
    CURLcode code = curl_easy_perform(channel->easy);
    if (code != CURLE_OK) {
        return unreachable(api, curl_easy_strerror(code), err);
    }
    curl_easy_getinfo(channel->easy, CURLINFO_ACTIVESOCKET, &fd);
    channel->fd = fd;
    return fd != CURL_SOCKET_BAD || unreachable(api, "it has closed the connection", err);
}

static bool ask(const struct api *api, struct channel *channel, const char *id, struct err *err)
{
    autofree char *path = xprintf("/v1/streams/%s", id);
    autofree char *head =
        upgrade_head(api->context.url, path, STREAM_UPGRADE, api->context.token, "gpuctl/" GPUCTL_VERSION);
    bool sent = send_all(channel, head, strlen(head), err);
    explicit_bzero(head, strlen(head));
    return sent;
}

/* False: nothing more comes. */
static bool receive_some(struct channel *channel, bool *ret_more)
{
    size_t got = 0;
    CURLcode code = curl_easy_recv(channel->easy, channel->came + channel->length,
                                   sizeof channel->came - channel->length - 1, &got);
    *ret_more = code == CURLE_OK && got > 0;
    channel->length += got;
    channel->came[channel->length] = '\0';
    return *ret_more || code == CURLE_AGAIN;
}

static bool await_upgrade(const struct api *api, struct channel *channel, struct err *err)
{
    struct upgrade_reply reply;
    bool more;
    for (;;) {
        if (!receive_some(channel, &more)) {
            return unreachable(api, "it has closed the connection", err);
        }
        enum upgrade_look look = upgrade_read(channel->came, channel->length, &reply);
        if (look == UPGRADE_WRONG) {
            return unreachable(api, "what answers is no controller", err);
        }
        if (look == UPGRADE_WHOLE) {
            break;
        }
        if (!more && !wait_for(channel, POLLIN)) {
            return unreachable(api, "it does not answer", err);
        }
    }
    if (reply.status != 101) {
        problem_decode(reply.body, reply.body_length, reply.status, err);
        return false;
    }
    channel->from = reply.used;
    return true;
}

struct channel *channel_open(struct api *api, const char *job_id, const json_t *body, struct err *err)
{
    autojson json_t *stream = api_ask(api, "POST", body, err, "/v1/jobs/%s/streams", job_id);
    const char *id = stream != NULL ? json_string_of(stream, "id") : NULL;
    if (stream != NULL && id == NULL) {
        err_set(err, ERR_MALFORMED, "the controller's answer names no stream");
    }
    if (id == NULL) {
        return NULL;
    }
    autochannel struct channel *channel = xzalloc(sizeof *channel);
    channel->credit = STREAM_CREDIT_BYTES;
    bool open =
        connect_to(api, channel, err) && ask(api, channel, id, err) && await_upgrade(api, channel, err);
    return open ? give(channel) : NULL;
}

void channel_close(struct channel *channel)
{
    if (channel != NULL) {
        curl_easy_cleanup(channel->easy);
        free(channel);
    }
}

/* --- frames --------------------------------------------------------------------------------------------- */

int channel_fd(const struct channel *channel)
{
    return channel->fd;
}

size_t channel_credit(const struct channel *channel)
{
    return channel->credit;
}

bool channel_send(struct channel *channel, enum frame_kind kind, const char *bytes, size_t length,
                  struct err *err)
{
    char head[FRAME_HEAD_BYTES];
    frame_head(kind, length, head);
    channel->credit -= length;
    return send_all(channel, head, sizeof head, err) && send_all(channel, bytes, length, err);
}

bool channel_send_numbers(struct channel *channel, enum frame_kind kind, unsigned first, unsigned second,
                          struct err *err)
{
    char frame[FRAME_NUMBERS_BYTES];
    return send_all(channel, frame, frame_numbers(kind, first, second, frame), err);
}

/* Makes room for the rest of a frame. */
static void settle(struct channel *channel)
{
    memmove(channel->came, channel->came + channel->from, channel->length - channel->from);
    channel->length -= channel->from;
    channel->from = 0;
}

enum channel_news channel_receive(struct channel *channel, struct frame *ret_frame, struct err *err)
{
    size_t used;
    bool more = true;
    for (;;) {
        switch (frame_decode(channel->came + channel->from, channel->length - channel->from, ret_frame, &used,
                             err)) {
        case FRAME_WHOLE:
            channel->from += used;
            if (ret_frame->kind == FRAME_CREDIT) {
                channel->credit += ret_frame->numbers[0];
            }
            return CHANNEL_FRAME;
        case FRAME_WRONG:
            return CHANNEL_ENDED;
        case FRAME_PART:
            break;
        }
        if (!more) {
            return CHANNEL_NOTHING;
        }
        settle(channel);
        if (!receive_some(channel, &more)) {
            return CHANNEL_ENDED;
        }
    }
}

bool channel_lost(const char *job_id, struct err *err)
{
    err_set(err, ERR_UNREACHABLE, "the connection into job %s has ended", job_id);
    return err_hint(err,
                    "the controller or the agent of its node was stopped, or your token has ended; the job "
                    "itself goes on");
}
