/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end of a stream into a running job. */
#ifndef CLI_CHANNEL_H
#define CLI_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/wire/frame.h"

struct channel;

/* Asks for the stream that the body describes (proto/wire/stream_request.h), and joins it. NULL with *err. */
struct channel *channel_open(struct api *api, const char *job_id, const json_t *body, struct err *err);
void channel_close(struct channel *channel);

static inline void cleanup_channel(struct channel **channel)
{
    channel_close(*channel);
}
#define autochannel __attribute__((cleanup(cleanup_channel)))

/* To be polled for reading, once channel_receive has said that there is nothing. */
int channel_fd(const struct channel *channel);

/* Waits until it is sent. */
bool channel_send(struct channel *channel, enum frame_kind kind, const char *bytes, size_t length,
                  struct err *err);
bool channel_send_numbers(struct channel *channel, enum frame_kind kind, unsigned first, unsigned second,
                          struct err *err);

/* How many bytes of DATA the other side takes now. */
size_t channel_credit(const struct channel *channel);

/* The next frame, borrowed until the next call; it counts credit itself. NOTHING: none has come. */
enum channel_news { CHANNEL_FRAME, CHANNEL_NOTHING, CHANNEL_ENDED };
enum channel_news channel_receive(struct channel *channel, struct frame *ret_frame, struct err *err);

/* The error of a stream that has ended without a last frame. */
bool channel_lost(const char *job_id, struct err *err);

#endif
