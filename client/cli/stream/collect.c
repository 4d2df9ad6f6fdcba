/* SPDX-License-Identifier: Apache-2.0 */
/* Opens one stream for each rank, and reads all of them as they come. A rank that cannot be reached fails
 * alone. */
#include "client/cli/stream/collect.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "client/cli/transport/channel.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"
#include "proto/members.h"

struct collection {
    const char *job_id;
    struct collected *items;
    struct channel **channels; /* NULL: it is over */
    size_t count;
};

static void keep(struct text *text, const struct frame *frame)
{
    size_t room = (size_t)CLIENT_COLLECT_BYTES - text->length;
    text_append_bytes(text, frame->bytes, frame->length < room ? frame->length : room);
}

/* False: nothing more comes. */
static bool take(struct collected *item, const struct frame *frame)
{
    switch (frame->kind) {
    case FRAME_DATA:
        keep(&item->output, frame);
        return true;
    case FRAME_STDERR:
        keep(&item->errors, frame);
        return true;
    case FRAME_EXIT:
        item->exit_code = (int)frame->numbers[0];
        return false;
    case FRAME_FAILURE:
        item->failed = true;
        err_set(&item->err, ERR_CONFLICT, "%.*s", (int)frame->length, frame->bytes);
        return false;
    case FRAME_END:
    case FRAME_SIZE:
    case FRAME_CREDIT:
        break;
    }
    return true;
}

static void end(struct collection *collection, size_t index)
{
    channel_close(collection->channels[index]);
    collection->channels[index] = NULL;
}

static void read_one(struct collection *collection, size_t index)
{
    struct collected *item = &collection->items[index];
    struct frame frame;
    for (;;) {
        switch (channel_receive(collection->channels[index], &frame, &item->err)) {
        case CHANNEL_NOTHING:
            return;
        case CHANNEL_ENDED:
            item->failed = true;
            channel_lost(collection->job_id, &item->err);
            end(collection, index);
            return;
        case CHANNEL_FRAME:
            if (!take(item, &frame)) {
                end(collection, index);
                return;
            }
            break;
        }
    }
}

static void open_one(struct api *api, struct collection *collection, size_t index, json_t *command)
{
    struct collected *item = &collection->items[index];
    autojson json_t *body = json_object();
    member_put_text(body, "kind", "exec");
    member_put_int(body, "rank", item->rank);
    member_put(body, "command", json_incref(command));
    collection->channels[index] = channel_open(api, collection->job_id, body, &item->err);
    item->failed = collection->channels[index] == NULL;
    if (!item->failed) {
        read_one(collection, index); /* what came with the answer wakes no poll */
    }
}

/* Reads until the last one is over. */
static bool read_all(struct collection *collection, struct err *err)
{
    autofree struct pollfd *files = xzalloc((collection->count + 1) * sizeof *files);
    for (;;) {
        bool any = false;
        for (size_t i = 0; i < collection->count; i++) {
            struct channel *channel = collection->channels[i];
            files[i] = (struct pollfd){.fd = channel != NULL ? channel_fd(channel) : -1, .events = POLLIN};
            any = any || channel != NULL;
        }
        if (!any) {
            return true;
        }
        if (poll(files, collection->count, -1) < 0 && errno != EINTR) {
            return err_errno(err, "cannot wait");
        }
        for (size_t i = 0; i < collection->count; i++) {
            if (files[i].fd >= 0 && files[i].revents != 0) {
                read_one(collection, i);
            }
        }
    }
}

bool collect_run(struct api *api, const char *job_id, json_t *command, struct collected *items, size_t count,
                 struct err *err)
{
    autofree struct channel **channels = xzalloc((count + 1) * sizeof(struct channel *));
    struct collection collection = {.job_id = job_id, .items = items, .channels = channels, .count = count};
    for (size_t i = 0; i < count; i++) {
        open_one(api, &collection, i, command);
    }
    bool good = read_all(&collection, err);
    for (size_t i = 0; i < count; i++) {
        end(&collection, i);
    }
    return good;
}

void collected_finish(struct collected *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text_finish(&items[i].output);
        text_finish(&items[i].errors);
    }
}
