/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the reports about an attempt for the controller. An exit report carries the last log bytes if they
 * are few, and says whether they are complete. A taken MASTER_PORT is not blamed on the job. The failure of a
 * rank is explained by the rank's own message. A report never exceeds its limit. reconciler.c decides when a
 * report is due. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/attempt/attempt.h"
#include "agent/output/rank_file.h"
#include "agent/output/port_taken.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

#define REPORT_BASE_BYTES (4 * KIB) /* of a report: headers, a cause, a sentence */
#define RANK_EXIT_BYTES   200       /* of a report: the exit of one rank */

/* --- a taken port --------------------------------------------------------------------------------------- */

/* The end of rank 0's stderr; the caller frees it. */
static char *read_last_words(const struct attempt *attempt)
{
    autofree char *name = xprintf("0.%s", stream_text(STREAM_STDERR));
    int64_t size = 0;
    autoclose int file = rank_file_open(attempt->logs, NULL, name, &size);
    char *bytes = xzalloc(LIMIT_PORT_SCAN_BYTES + 1);
    if (size > 0) {
        off_t from = size > LIMIT_PORT_SCAN_BYTES ? (off_t)(size - LIMIT_PORT_SCAN_BYTES) : 0;
        ssize_t got = pread(file, bytes, LIMIT_PORT_SCAN_BYTES, from);
        for (ssize_t i = 0; i < got; i++) {
            bytes[i] = bytes[i] == '\0' ? ' ' : bytes[i];
        }
    }
    return bytes;
}

static bool port_was_taken(const struct attempt *attempt, int64_t rank, enum cause cause, const char *text)
{
    if (!attempt->holds_port || rank != 0 || cause != CAUSE_RANK_FAILED) {
        return false;
    }
    autofree char *last = read_last_words(attempt);
    return port_taken(last, attempt->port, text != NULL && strstr(text, SHIM_PORT_HEARD) != NULL);
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

/* --- reports -------------------------------------------------------------------------------------------- */

static void fill_failed(const struct attempt *attempt, struct report_message *message)
{
    bool taken = port_was_taken(attempt, attempt->failed.rank, attempt->failed_cause, attempt->failed_text);
    message->cause = taken ? CAUSE_PORT_TAKEN : attempt->failed_cause;
    message->text = attempt->failed_text;
    message->ranks = (struct rank_exit *)(uintptr_t)&attempt->failed;
    message->rank_count = 1;
}

static void fill_results(const struct attempt *attempt, struct report_message *message)
{
    if (attempt->results == NULL) {
        return;
    }
    message->results = results_list(attempt->results, &message->result_count);
    const char *problem = results_problem(attempt->results);
    if (message->cause == CAUSE_NONE && problem != NULL) {
        message->cause = CAUSE_RESULT_MISSING;
        message->text = problem;
    }
}

/* --- where the time went -------------------------------------------------------------------------------- */

/* 0: a moment is unknown. */
static int64_t between(int64_t from_us, int64_t to_us)
{
    return from_us > 0 && to_us > from_us ? to_us - from_us : 0;
}

/* When RUN or START arrived. An agent that was not there for START uses the moment at which its shim got it,
 * a little later. */
static int64_t start_came(const struct attempt *attempt)
{
    const struct record_moments *moments = &attempt->record.moments;
    if (attempt->told_us > 0) {
        return attempt->told_us;
    }
    return moments->prepared_us > 0 ? moments->begun_us : attempt->received_us;
}

static void fill_marks(const struct record_moments *moments, int64_t start_us, struct node_timing *timing)
{
    timing->marks = xzalloc((moments->mark_count + 1) * sizeof *timing->marks);
    for (size_t i = 0; start_us > 0 && i < moments->mark_count; i++) {
        const struct record_mark *mark = &moments->marks[i];
        timing->marks[timing->mark_count++] = (struct timing_mark){
            .name = mark->name, .rank = mark->rank, .after_us = between(start_us, mark->at_us)};
    }
}

static void fill_timing(const struct attempt *attempt, struct report_message *message)
{
    const struct record_moments *moments = &attempt->record.moments;
    int64_t prepared_us = moments->prepared_us > 0 ? moments->prepared_us : attempt->prepared_us;
    int64_t running_us = moments->running_us > 0 ? moments->running_us : attempt->running_us;
    int64_t start_us = start_came(attempt);
    message->timing = (struct node_timing){.prepared_us = between(attempt->received_us, prepared_us),
                                           .begun_us = between(start_us, moments->begun_us),
                                           .running_us = between(start_us, running_us),
                                           .output_us = between(start_us, moments->output_us),
                                           .ended_us = between(start_us, moments->gone_us)};
    fill_marks(moments, start_us, &message->timing);
}

/* The start text, cut to the controller's limit; characters outside printable ASCII are replaced, because
 * their encoding could be longer. */
static char *start_of(const struct attempt *attempt, enum report_kind kind)
{
    bool told = kind == REPORT_RUNNING || kind == REPORT_EXITED;
    if (!told || attempt->how == NULL) {
        return NULL;
    }
    char *start = xstrndup(attempt->how, LIMIT_START_TEXT);
    for (char *at = start; *at != '\0'; at++) {
        *at = *at >= ' ' && *at <= '~' ? *at : '?';
    }
    return start;
}

/* Whether the report has room for the last log bytes, which can be sent separately. Results cannot. */
static bool tails_have_room(const struct attempt *attempt)
{
    size_t weight = attempt->results != NULL ? results_weight(attempt->results) : 0;
    weight += REPORT_BASE_BYTES + attempt->record.rank_count * RANK_EXIT_BYTES;
    return weight + LIMIT_EXIT_TAIL_BYTES * 4 / 3 <= LIMIT_REPORT_BYTES;
}

static bool fill_tails(const struct attempt *attempt, struct report_message *message)
{
    if (attempt->output == NULL) {
        return true;
    }
    return tails_have_room(attempt) ? output_tails(attempt->output, &message->tails, &message->tail_count)
                                    : output_is_sent(attempt->output);
}

static void fill_exited(struct attempt *attempt, struct report_message *message)
{
    const struct record *record = &attempt->record;
    bool taken = port_was_taken(attempt, first_failed(record), record->cause, record->text);
    message->cause = taken ? CAUSE_PORT_TAKEN : record->cause;
    message->master_port = attempt->port;
    message->text = record->text;
    message->ranks = record->ranks;
    message->rank_count = record->rank_count;
    message->checkpoint_ms = record->checkpoint_ms;
    message->use = attempt->sampler.use;
    fill_results(attempt, message);
    attempt->tails_flushed = fill_tails(attempt, message);
    message->flushed = attempt->tails_flushed;
}

/* Combines a rank's note and its error. The note comes first, because it names the cause. */
static char *said_and_noted(const char *logs, int64_t rank)
{
    autofree char *said = rank_file_error(logs, rank);
    autofree char *note = rank_file_note(logs, rank);
    if (said == NULL || note == NULL) {
        return note != NULL ? give(note) : give(said);
    }
    return xprintf("%s (%s)", note, said);
}

static char *note_of_any(const struct attempt *attempt)
{
    char *note = NULL;
    for (size_t i = 0; i < attempt->record.rank_count && note == NULL; i++) {
        note = rank_file_note(attempt->logs, attempt->record.ranks[i].rank);
    }
    return note;
}

/* The message of the rank whose failure is reported; it writes its error file before it ends. Without a
 * failed rank, the note of any rank. */
static char *said_of(const struct attempt *attempt, enum report_kind kind)
{
    int64_t rank = kind == REPORT_FAILED   ? attempt->failed.rank
                   : kind == REPORT_EXITED ? first_failed(&attempt->record)
                                           : -1;
    if (rank < 0) {
        return kind == REPORT_EXITED ? note_of_any(attempt) : NULL;
    }
    const char *text = kind == REPORT_FAILED ? attempt->failed_text : attempt->record.text;
    char *said = said_and_noted(attempt->logs, rank);
    if (text == NULL || strstr(text, SHIM_PROCESSES_OUT) == NULL) {
        return said;
    }
    char *whole = xprintf("the job had as many processes as it may have (gpuagent --max-processes)%s%s",
                          said != NULL ? "; " : "", said != NULL ? said : "");
    free(said);
    return whole;
}

json_t *report_make(struct attempt *attempt, enum report_kind kind)
{
    const struct agent_context *context = attempt->context;
    autofree char *said = mask_text(attempt->secrets.mask, said_of(attempt, kind));
    autofree char *start = start_of(attempt, kind);
    struct report_message message = {.node = context->config.name,
                                     .boot_id = context->boot_id,
                                     .agent_id = context->agent_id,
                                     .attempt_id = attempt->attempt_id,
                                     .kind = kind,
                                     .said = said,
                                     .start = start};
    switch (kind) {
    case REPORT_PREPARED:
        fill_timing(attempt, &message);
        message.address = attempt->holds_port ? context->address : NULL;
        message.master_port = attempt->port;
        break;
    case REPORT_DECLINED:
        message.cause = CAUSE_DECLINED;
        message.text = attempt->declined;
        break;
    case REPORT_RUNNING:
        fill_timing(attempt, &message);
        message.at_ms = attempt->running_ms;
        message.master_port = attempt->port;
        break;
    case REPORT_FAILED:
        fill_failed(attempt, &message);
        break;
    case REPORT_EXITED:
        fill_timing(attempt, &message);
        fill_exited(attempt, &message);
        break;
    case REPORT_KIND_COUNT:
        break;
    }
    if (kind == REPORT_DECLINED || kind == REPORT_EXITED) {
        message.faults = context->faults(context->closure);
        message.faults.told = message.faults.count > 0;
    }
    json_t *json = report_message_encode(&message);
    free(message.faults.items);
    output_free_tails(message.tails, message.tail_count);
    free(message.results);
    timing_finish(&message.timing);
    return json;
}

enum reconciler_answer report_taken(struct attempt *attempt, enum report_kind kind)
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

/* A controller that was restored from a backup, or lost its power, may have fewer bytes than it had
 * confirmed. */
static bool tails_do_not_join(const struct attempt *attempt, const struct err *problem)
{
    return attempt->output != NULL && problem->code == ERR_CONFLICT && strcmp(problem->field, "offset") == 0;
}

bool report_refused(struct attempt *attempt, enum report_kind kind, const struct err *problem)
{
    if (kind == REPORT_EXITED && tails_do_not_join(attempt, problem)) {
        output_doubt(attempt->output);
        return true;
    }
    return kind == REPORT_EXITED && attempt->results != NULL &&
           results_refuse(attempt->results, problem->text);
}

void report_idle(struct attempt *attempt)
{
    if (attempt->phase == PHASE_SHIM) {
        shim_process_tell(&attempt->shim, "seen");
    } else if (attempt->draining && output_is_sent(attempt->output)) {
        attempt->draining = false;
        attempt->context->heard(attempt->context->closure, attempt->attempt_id, NEWS_DRAINED);
    }
}
