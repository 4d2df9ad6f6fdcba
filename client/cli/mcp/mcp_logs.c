/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a part of a rank's output: the end of what is stored, or the bytes from an offset on. It promises
 * that parts which follow one another have every byte once, and that bytes which are not UTF-8 become
 * U+FFFD. */
#include "client/cli/mcp/mcp_logs.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/mcp/mcp_arguments.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/limits_client.h"
#include "proto/states.h"

#define LONGEST_TAIL 3               /* bytes of a character of UTF-8 behind its first */
#define LARGEST_SIZE (INT64_MAX / 2) /* to which what is in memory can be added */

bool mcp_part_read_range(const char *content_range, struct mcp_part *part)
{
    long long first, last, size;
    if (content_range == NULL) {
        return false;
    }
    if (sscanf(content_range, "bytes %lld-%lld/%lld", &first, &last, &size) != 3) {
        if (sscanf(content_range, "bytes */%lld", &size) != 1) {
            return false;
        }
        first = size;
    }
    if (first < 0 || first > size || size > LARGEST_SIZE) {
        return false;
    }
    part->offset = first;
    part->size = size;
    return true;
}

static bool is_inside(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Bytes that its first byte says that a character has. */
static size_t told_length(char first)
{
    unsigned char byte = (unsigned char)first;
    return byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
}

static void trim_head(struct mcp_part *part)
{
    size_t cut = 0;
    while (part->offset > 0 && cut < LONGEST_TAIL && cut < part->length && is_inside(part->bytes[cut])) {
        cut++;
    }
    part->bytes += cut;
    part->length -= cut;
    part->offset += (int64_t)cut;
}

static void trim_end(struct mcp_part *part)
{
    size_t tail = 0;
    while (tail < LONGEST_TAIL && tail + 1 < part->length &&
           is_inside(part->bytes[part->length - 1 - tail])) {
        tail++;
    }
    if (tail + 1 < part->length && told_length(part->bytes[part->length - 1 - tail]) > tail + 1) {
        part->length -= tail + 1;
    }
}

void mcp_part_trim(struct mcp_part *part, bool head)
{
    if (head) {
        trim_head(part);
    }
    if (part->offset + (int64_t)part->length < part->size) {
        trim_end(part);
    }
}

/* --- the tool ------------------------------------------------------------------------------------------- */

/* What is asked for. */
struct question {
    int64_t rank, attempt, offset,
        bytes; /* attempt and offset: NOT_GIVEN stands for the newest and the end */
    const char *stream;
};

static void read_question(const json_t *arguments, struct question *question)
{
    const char *stream = json_string_value(json_object_get(arguments, "stream"));
    *question = (struct question){
        .rank = mcp_arguments_whole(arguments, "rank", 0),
        .attempt = mcp_arguments_whole(arguments, "attempt", NOT_GIVEN),
        .offset = mcp_arguments_whole(arguments, "offset", NOT_GIVEN),
        .bytes = mcp_arguments_whole(arguments, "bytes", DEFAULT_MCP_LOG_BYTES),
        .stream = stream != NULL ? stream : stream_text(STREAM_STDOUT),
    };
}

static char *range_of(const struct question *question)
{
    if (question->offset == NOT_GIVEN) {
        return xprintf("bytes=-%lld", (long long)question->bytes);
    }
    return xprintf("bytes=%lld-%lld", (long long)question->offset,
                   (long long)(question->offset + question->bytes - 1));
}

/* Fills body and *part, which borrows from it. A part that begins at the end of the stream is empty. */
static bool fetch(const struct mcp_call *call, const struct question *question, struct text *body,
                  struct mcp_part *part, struct err *err)
{
    autotext struct text path = {0};
    autofree char *range = range_of(question);
    autofree char *content_range = NULL;
    text_printf(&path, "/v1/jobs/%s/logs", call->id);
    pages_number(&path, "rank", question->rank);
    pages_number(&path, "attempt", question->attempt);
    api_query(&path, "stream", question->stream);
    struct request request = {
        .method = "GET", .path = path.bytes, .range = range, .ret_content_range = &content_range};
    bool sent = api_send(call->api, &request, body, err);
    bool ranged = mcp_part_read_range(content_range, part);
    if (!sent) {
        return ranged && err->code == ERR_RANGE && question->offset <= part->size;
    }
    part->size = ranged ? part->size : (int64_t)body->length;
    part->bytes = body->bytes != NULL ? body->bytes : "";
    part->length = body->length;
    return true;
}

static void put_part(const struct mcp_call *call, const struct question *question,
                     const struct mcp_part *part, struct text *out)
{
    text_printf(out, "{\"job\":\"%s\",\"rank\":%lld,\"stream\":\"%s\",\"offset\":%lld,", call->id,
                (long long)question->rank, question->stream, (long long)part->offset);
    text_printf(out, "\"next_offset\":%lld,\"size\":%lld,\"text\":",
                (long long)part->offset + (long long)part->length, (long long)part->size);
    text_json_string(out, part->bytes, part->length);
    text_append(out, "}");
}

bool mcp_job_logs(const struct mcp_call *call, struct text *out, struct err *err)
{
    autotext struct text body = {0};
    struct question question;
    struct mcp_part part = {.bytes = ""};
    read_question(call->arguments, &question);
    if (!fetch(call, &question, &body, &part, err)) {
        return false;
    }
    mcp_part_trim(&part, question.offset == NOT_GIVEN);
    put_part(call, &question, &part, out);
    return true;
}
