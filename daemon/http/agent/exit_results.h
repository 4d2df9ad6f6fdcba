/* SPDX-License-Identifier: Apache-2.0 */
/* The results that come with an exit report, from text to bytes. */
#ifndef HTTP_EXIT_RESULTS_H
#define HTTP_EXIT_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"
#include "proto/base/crypto/hash.h"
#include "proto/wire/messages.h"

struct uploads;

/* The bytes that the results of a report point to; live as long as the results are used. Starts as {0}. */
struct exit_results {
    uint8_t (*digests)[HASH_BYTES];
    uint8_t **pickles; /* NULL where none came with the report */
    size_t count;
};

/* Where the pickles are that do not come with a report. */
struct result_store {
    struct reader *reader;
    const struct uploads *uploads;
    const char *sender; /* who must have sent them; NULL: anybody */
};

/* Fills in digest and bytes of the message's results. false with ERR_FIELD, naming the member, when bytes are
 * not what their hash says, when a pickle that is only named is not stored or was sent by another, or when
 * JSON is none; then *results is to be finished all the same. */
bool exit_results_take(struct exit_results *results, struct report_message *message,
                       const struct result_store *store, struct err *err);
void exit_results_finish(struct exit_results *results);

#endif
