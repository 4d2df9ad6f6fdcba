/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the controller is told of an attempt. It promises that an exit report carries the last log bytes
 * where they are few, and says when they are not all; and that a taken MASTER_PORT is not blamed on the job.
 * When a report is due is left to duty.c. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/attempt.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"
#include "proto/limits.h"

/* --- a taken port -------------------------------------------------------------------------------- */

/* The end of rank 0's stderr; the caller frees it. */
static char *read_last_words(const struct attempt *attempt)
{
    autofree char *path = xprintf("%s/0.%s", attempt->logs, stream_text(STREAM_STDERR));
    autoclose int file = open(path, O_RDONLY | O_CLOEXEC);
    char *bytes = xzalloc(LIMIT_PORT_SCAN_BYTES + 1);
    off_t size = file >= 0 ? lseek(file, 0, SEEK_END) : 0;
    if (size > 0) {
        off_t from = size > LIMIT_PORT_SCAN_BYTES ? size - LIMIT_PORT_SCAN_BYTES : 0;
        ssize_t got = pread(file, bytes, LIMIT_PORT_SCAN_BYTES, from);
        for (ssize_t i = 0; i < got; i++) {
            bytes[i] = bytes[i] == '\0' ? ' ' : bytes[i];
        }
    }
    return bytes;
}

/* torch says it in one of these ways, as its store does, or the system's own words. */
static bool port_was_taken(const struct attempt *attempt, int64_t rank, enum cause cause)
{
    static const char *const words[] = {"EADDRINUSE", "errno: 98", "address already in use"};
    if (!attempt->holds_port || rank != 0 || cause != CAUSE_RANK_FAILED) {
        return false;
    }
    autofree char *last = read_last_words(attempt);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasestr(last, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* The rank that ended the attempt: the first that failed by itself. -1: none did. */
static int64_t first_failed(const struct record *record)
{
    const struct rank_exit *first = NULL;
    for (size_t i = 0; i < record->rank_count; i++) {
        const struct rank_exit *rank = &record->ranks[i];
        if (rank->code != 0 && !rank->by_us && (first == NULL || rank->at_ms < first->at_ms)) {
            first = rank;
        }
    }
    return first != NULL ? first->rank : -1;
}

/* --- reports ------------------------------------------------------------------------------------- */

static void fill_failed(const struct attempt *attempt, struct report_message *message)
{
    bool taken = port_was_taken(attempt, attempt->failed.rank, attempt->failed_cause);
    message->cause = taken ? CAUSE_PORT_TAKEN : attempt->failed_cause;
    message->text = attempt->failed_text;
    message->ranks = (struct rank_exit *)(uintptr_t)&attempt->failed;
    message->rank_count = 1;
}

static void fill_exited(struct attempt *attempt, struct report_message *message)
{
    const struct record *record = &attempt->record;
    bool taken = port_was_taken(attempt, first_failed(record), record->cause);
    message->cause = taken ? CAUSE_PORT_TAKEN : record->cause;
    message->text = record->text;
    message->ranks = record->ranks;
    message->rank_count = record->rank_count;
    attempt->tails_flushed =
        attempt->output == NULL || output_tails(attempt->output, &message->tails, &message->tail_count);
    message->flushed = attempt->tails_flushed;
}

json_t *account_report(struct attempt *attempt, enum report_kind kind)
{
    const struct site *site = attempt->site;
    struct report_message message = {
        .node = site->config.name, .boot_id = site->boot_id, .epoch = attempt->epoch, .kind = kind};
    switch (kind) {
    case REPORT_PREPARED:
        message.address = attempt->holds_port ? site->address : NULL;
        message.master_port = attempt->port;
        break;
    case REPORT_DECLINED:
        message.cause = CAUSE_DECLINED;
        message.text = attempt->declined;
        break;
    case REPORT_RUNNING:
        message.at_ms = attempt->running_ms;
        message.master_port = attempt->port;
        break;
    case REPORT_FAILED:
        fill_failed(attempt, &message);
        break;
    case REPORT_EXITED:
        fill_exited(attempt, &message);
        break;
    case REPORT_KIND_COUNT:
        break;
    }
    json_t *json = report_message_encode(&message);
    output_free_tails(message.tails, message.tail_count);
    return json;
}

enum duty_answer account_taken(struct attempt *attempt, enum report_kind kind)
{
    if (kind != REPORT_EXITED) {
        return ANSWER_TAKEN;
    }
    if (attempt->tails_flushed) {
        if (attempt->output != NULL) {
            output_taken(attempt->output);
        }
        return ANSWER_FLUSHED;
    }
    attempt->draining = true;
    return ANSWER_TAKEN;
}

void account_idle(struct attempt *attempt)
{
    if (attempt->stage == STAGE_SHIM) {
        shim_process_tell(&attempt->shim, "seen");
    } else if (attempt->draining && output_is_sent(attempt->output)) {
        attempt->draining = false;
        attempt->site->heard(attempt->site->closure, attempt->epoch, NEWS_DRAINED);
    }
}
