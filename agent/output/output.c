/* SPDX-License-Identifier: Apache-2.0 */
/* Ships log files to the controller. Bytes leave in order and at once, whole lines together. A flooding job
 * does not delay others. No file is removed before the controller has said that its bytes are on its disk, or
 * that it does not want them. The shim writes the files. The controller, not the node, keeps the position in
 * each stream. */
#include "agent/output/output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/output/rank_file.h"
#include "agent/output/output_parts.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

static void ship(struct output *output);

/* --- files ---------------------------------------------------------------------------------------------- */

static char *file_name(const struct follow *follow)
{
    return xprintf("%lld.%s", (long long)follow->rank, stream_text(follow->stream));
}

static char *file_path(const struct output *output, const struct follow *follow)
{
    autofree char *name = file_name(follow);
    return xprintf("%s/%s", output->folder, name);
}

/* No GPU waits for the content of large files. Their head and index are in the first upload. */
static int64_t kept_size(const struct output *output, const struct follow *follow)
{
    int64_t bytes = follow->tree != NULL ? kept_tree_bytes(follow->tree) : 0;
    bool all = output->phase == PHASE_RETIRES || bytes <= LIMIT_LOG_CHUNK_BYTES;
    return all ? bytes : LIMIT_LOG_CHUNK_BYTES;
}

int64_t output_size(const struct output *output, const struct follow *follow)
{
    if (follow->stream == STREAM_FILES) {
        return kept_size(output, follow);
    }
    autofree char *path = file_path(output, follow);
    struct stat status;
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) ? (int64_t)status.st_size : 0;
}

/* Reads up to length bytes; the caller frees them. */
char *output_part(const struct output *output, const struct follow *follow, int64_t offset, size_t *length)
{
    autofree char *name = file_name(follow);
    int64_t ignored;
    char *bytes = xalloc(*length);
    if (follow->stream == STREAM_FILES) {
        *length = kept_tree_read(follow->tree, offset, bytes, *length);
        return bytes;
    }
    autoclose int fd = rank_file_open(output->folder, NULL, name, &ignored);
    ssize_t got = fd >= 0 ? pread(fd, bytes, *length, (off_t)offset) : 0;
    *length = got > 0 ? (size_t)got : 0;
    return bytes;
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct outputs *outputs_create(const char *node, int64_t kept_limit, struct controller_client *controller,
                               struct loop *loop, struct folder_pool *folder_pool)
{
    struct outputs *outputs = xzalloc(sizeof *outputs);
    *outputs = (struct outputs){.node = xstrdup(node),
                                .kept_limit = kept_limit,
                                .controller = controller,
                                .loop = loop,
                                .folder_pool = folder_pool};
    return outputs;
}

void outputs_destroy(struct outputs *outputs)
{
    if (outputs == NULL) {
        return;
    }
    while (outputs->list != NULL) {
        output_destroy(outputs->list);
    }
    free(outputs->node);
    free(outputs);
}

static void timer_due(void *closure)
{
    ship(closure);
}

struct output *output_create(struct outputs *outputs, uint64_t attempt_id, const char *folder, bool resume,
                             void (*idle)(void *closure), void *closure)
{
    struct output *output = xzalloc(sizeof *output);
    output->outputs = outputs;
    output->attempt_id = attempt_id;
    output->folder = xstrdup(folder);
    output->resume = resume;
    output->idle = idle;
    output->closure = closure;
    output->timer = (struct loop_timer){.due = timer_due, .closure = output};
    DL_APPEND(outputs->list, output);
    return output;
}

static void add_follow(struct output *output, int64_t rank, enum stream stream)
{
    output->follows = xrealloc(output->follows, (output->count + 1) * sizeof *output->follows);
    output->follows[output->count++] =
        (struct follow){.rank = rank, .stream = stream, .known = !output->resume};
}

void output_add_rank(struct output *output, int64_t rank)
{
    add_follow(output, rank, STREAM_STDOUT);
    add_follow(output, rank, STREAM_STDERR);
    add_follow(output, rank, STREAM_FILES);
}

void output_add_metrics(struct output *output, int64_t first_rank)
{
    add_follow(output, first_rank, STREAM_METRICS);
}

void output_destroy(struct output *output)
{
    if (output == NULL) {
        return;
    }
    DL_DELETE(output->outputs->list, output);
    if (output->request != NULL) {
        controller_cancel(output->request);
        output->outputs->uploads--;
    }
    loop_disarm(output->outputs->loop, &output->timer);
    for (size_t i = 0; i < output->count; i++) {
        kept_tree_close(output->follows[i].tree);
    }
    free(output->piece);
    free(output->follows);
    free(output->folder);
    free(output);
}

/* --- uploads -------------------------------------------------------------------------------------------- */

static void take_reply(struct output *output, struct follow *follow, json_t *json)
{
    struct log_reply reply;
    struct err err;
    if (!log_reply_decode(json_incref(json), &reply, &err)) {
        log_error("log reply", "attempt_id=%llu problem=\"%s\"", (unsigned long long)output->attempt_id,
                  err.text);
        output->refused = true;
        return;
    }
    follow->known = true;
    follow->received = reply.received;
    follow->durable = reply.durable;
    log_reply_finish(&reply);
}

/* The controller has fewer bytes than assumed, or does not want more. */
static void take_refusal(struct output *output, struct follow *follow, const struct controller_answer *answer)
{
    int64_t received = -1;
    if (answer->status == 409 && answer->problem.code != ERR_FENCED && answer->json != NULL) {
        json_read_int(answer->json, "received", 0, INT64_MAX, &received, NULL);
    }
    if (received >= 0 && received != output->offset) {
        follow->known = true;
        follow->received = received;
        return;
    }
    if (answer->status == 413) {
        log_warning("stream refused", "attempt_id=%llu rank=%lld stream=%s problem=\"%s\"",
                    (unsigned long long)output->attempt_id, (long long)follow->rank,
                    stream_text(follow->stream), answer->problem.text);
        follow->full = true;
        return;
    }
    if (answer->status == 404 && output->phase != PHASE_RETIRES) {
        output->hold_ms = clock_boot_ms() + LOG_SETTLE_MS; /* the node is about to register again */
        return;
    }
    if (answer->problem.code != ERR_FENCED) {
        log_warning("logs refused", "attempt_id=%llu status=%d problem=\"%s\"",
                    (unsigned long long)output->attempt_id, answer->status, answer->problem.text);
    }
    output->refused = true;
}

static struct output *next_waiting(const struct outputs *outputs)
{
    struct output *output;
    DL_SEARCH_SCALAR(outputs->list, output, waiting, true);
    return output;
}

/* Outputs take turns. One that waited may have nothing left to send, so the loop goes on to the next. */
static void serve_waiting(struct outputs *outputs)
{
    struct output *next;
    while (outputs->uploads < LIMIT_AGENT_UPLOADS && (next = next_waiting(outputs)) != NULL) {
        next->waiting = false;
        DL_DELETE(outputs->list, next);
        DL_APPEND(outputs->list, next);
        ship(next);
    }
}

static void upload_done(void *closure, const struct controller_answer *answer)
{
    struct output *output = closure;
    struct outputs *outputs = output->outputs;
    output->request = NULL;
    outputs->uploads--;
    free(give(output->piece));
    if (answer->status == 200) {
        take_reply(output, output->asked, answer->json);
    } else {
        take_refusal(output, output->asked, answer);
    }
    serve_waiting(outputs);
    ship(output);
    serve_waiting(outputs);
}

/* Sends length bytes of piece, and takes piece over. With no bytes it asks for the controller's position. */
static void upload(struct output *output, struct follow *follow, int64_t offset, char *piece, size_t length)
{
    autofree char *path = xprintf("/v1/agent/logs?node=%s&epoch=%llu&rank=%lld&stream=%s&offset=%lld",
                                  output->outputs->node, (unsigned long long)output->attempt_id,
                                  (long long)follow->rank, stream_text(follow->stream), (long long)offset);
    output->asked = follow;
    output->offset = offset;
    output->piece = piece;
    output->outputs->uploads++;
    output->request = controller_send(output->outputs->controller, &(struct controller_call){
                                                                       .path = path,
                                                                       .bytes = piece,
                                                                       .length = length,
                                                                       .timeout_ms = 6 * REQUEST_TIMEOUT_MS,
                                                                       .persistent = true,
                                                                       .done = upload_done,
                                                                       .closure = output,
                                                                   });
}

/* The length without an incomplete character at the end. */
static size_t whole_characters(const char *bytes, size_t length)
{
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        unsigned char byte = (unsigned char)bytes[length - back];
        if ((byte & 0xc0) == 0x80) {
            continue; /* inside a character */
        }
        size_t needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
        return needed > back ? length - back : length;
    }
    return length;
}

size_t output_cut(const char *bytes, size_t length, bool full, bool final, bool old)
{
    if (final && !full) {
        return length;
    }
    const char *newline = memrchr(bytes, '\n', length);
    if (newline != NULL) {
        return (size_t)(newline - bytes) + 1;
    }
    if (!full && !old) {
        return 0;
    }
    size_t whole = whole_characters(bytes, length);
    return whole > 0 ? whole : length;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Sends the next bytes of one stream. False: none are due now; *wake_ms is the time to try again, if there is
 * one. */
static bool send_bytes(struct output *output, struct follow *follow, int64_t size, int64_t *wake_ms)
{
    int64_t now = clock_boot_ms();
    size_t most = LIMIT_LOG_CHUNK_BYTES;
    size_t length = size - follow->received < (int64_t)most ? (size_t)(size - follow->received) : most;
    char *piece = output_part(output, follow, follow->received, &length);
    bool old = follow->partial_ms != 0 && now >= follow->partial_ms + LOG_PARTIAL_MS;
    size_t cut = follow->stream == STREAM_FILES
                     ? length
                     : output_cut(piece, length, length == most, output->phase != PHASE_GROWS, old);
    if (cut > 0) {
        follow->partial_ms = 0;
        upload(output, follow, follow->received, piece, cut);
        return true;
    }
    free(piece);
    follow->partial_ms = follow->partial_ms != 0 ? follow->partial_ms : now;
    *wake_ms = earlier(*wake_ms, follow->partial_ms + LOG_PARTIAL_MS);
    return false;
}

/* Starts an upload for one stream if there are bytes to send or a position to ask for. */
static bool send_next(struct output *output, struct follow *follow, int64_t *wake_ms)
{
    int64_t size = output_size(output, follow);
    if (follow->full) {
        return false;
    }
    if (!follow->known && size > 0) {
        upload(output, follow, 0, NULL, 0);
        return true;
    }
    if (size > follow->received) {
        return send_bytes(output, follow, size, wake_ms);
    }
    if (output->phase != PHASE_RETIRES || follow->durable >= size) {
        return false;
    }
    if (clock_boot_ms() < follow->probe_ms) {
        *wake_ms = earlier(*wake_ms, follow->probe_ms);
        return false;
    }
    upload(output, follow, size, NULL, 0);
    follow->probe_ms = clock_boot_ms() + LOG_SETTLE_MS;
    return true;
}

/* Nothing is left to send. In PHASE_RETIRES, returns the folder and frees the output. */
static void rest(struct output *output)
{
    if (output->phase != PHASE_RETIRES) {
        output->idle(output->closure);
        return;
    }
    folder_pool_return(output->outputs->folder_pool, output->folder);
    output_destroy(output);
}

static void ship(struct output *output)
{
    int64_t wake_ms = INT64_MAX;
    loop_disarm(output->outputs->loop, &output->timer);
    if (output->request != NULL || output->waiting) {
        return;
    }
    if (clock_boot_ms() < output->hold_ms) {
        loop_arm(output->outputs->loop, &output->timer, output->hold_ms);
        return;
    }
    for (size_t i = 0; i < output->count && !output->refused; i++) {
        if (output->outputs->uploads == LIMIT_AGENT_UPLOADS) {
            output->waiting = true;
            return;
        }
        size_t index = (output->turn + i) % output->count;
        if (send_next(output, &output->follows[index], &wake_ms)) {
            output->turn = index + 1;
            return;
        }
    }
    if (wake_ms != INT64_MAX) {
        loop_arm(output->outputs->loop, &output->timer, wake_ms);
    }
    if (wake_ms == INT64_MAX || output->phase != PHASE_RETIRES) {
        rest(output);
    }
}

void output_grown(struct output *output)
{
    ship(output);
}

static void look_for_files(struct output *output)
{
    for (size_t i = 0; i < output->count; i++) {
        struct follow *follow = &output->follows[i];
        if (follow->stream == STREAM_FILES) {
            autofree char *name = file_name(follow);
            follow->tree = kept_tree_open(output->folder, name, output->outputs->kept_limit);
        }
    }
}

void output_close(struct output *output)
{
    if (output->phase == PHASE_GROWS) {
        look_for_files(output);
        output->phase = PHASE_CLOSED;
    }
    ship(output);
}

void output_retire(struct output *output)
{
    if (output->phase == PHASE_GROWS) {
        look_for_files(output);
    }
    output->phase = PHASE_RETIRES;
    for (size_t i = 0; i < output->count; i++) {
        output->follows[i].probe_ms = clock_boot_ms() + LOG_SETTLE_MS;
    }
    ship(output);
}
