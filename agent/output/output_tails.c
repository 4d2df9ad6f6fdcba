/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the last log bytes of an attempt into its exit report if they are few, so that an end costs one
 * request. */
#include <stdlib.h>

#include "agent/output/output_parts.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

bool output_is_sent(const struct output *output)
{
    for (size_t i = 0; i < output->count && !output->refused; i++) {
        int64_t size = output_size(output, &output->follows[i]);
        if (size > output->follows[i].received && !output->follows[i].full) {
            return false;
        }
    }
    return true;
}

static bool tails_fit(const struct output *output)
{
    int64_t unsent = 0;
    for (size_t i = 0; i < output->count; i++) {
        const struct follow *follow = &output->follows[i];
        int64_t size = output_size(output, follow);
        if (follow->full) {
            continue;
        }
        bool apart = follow->stream == STREAM_FILES && size > follow->received;
        if (apart || (!follow->known && size > 0)) {
            return false;
        }
        unsent += size > follow->received ? size - follow->received : 0;
    }
    return unsent <= LIMIT_EXIT_TAIL_BYTES;
}

bool output_tails(struct output *output, struct log_tail **ret_tails, size_t *ret_count)
{
    *ret_tails = NULL;
    *ret_count = 0;
    if (output->refused || !tails_fit(output)) {
        return output->refused;
    }
    struct log_tail *tails = xzalloc((output->count + 1) * sizeof *tails);
    for (size_t i = 0; i < output->count; i++) {
        const struct follow *follow = &output->follows[i];
        int64_t size = output_size(output, follow);
        if (size > follow->received && !follow->full) {
            size_t length = (size_t)(size - follow->received);
            autofree char *bytes = output_part(output, follow, follow->received, &length);
            tails[(*ret_count)++] = (struct log_tail){follow->rank, follow->stream, follow->received,
                                                      text_to_base64((const uint8_t *)bytes, length)};
        }
    }
    *ret_tails = tails;
    return true;
}

void output_free_tails(struct log_tail *tails, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)tails[i].base64);
    }
    free(tails);
}

void output_doubt(struct output *output)
{
    for (size_t i = 0; i < output->count; i++) {
        output->follows[i].known = false;
        output->follows[i].received = 0;
    }
}

void output_taken(struct output *output)
{
    for (size_t i = 0; i < output->count; i++) {
        int64_t size = output_size(output, &output->follows[i]);
        struct follow *follow = &output->follows[i];
        follow->received = size > follow->received ? size : follow->received;
    }
}
