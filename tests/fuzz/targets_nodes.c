/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent reads of files that it and its shims have written, and that a crash may have cut off. */
#include <string.h>

#include "agent/common/launch_file.h"
#include "agent/output/record.h"
#include "proto/base/cleanup.h"
#include "proto/base/http/upgrade.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/wire/frame.h"
#include "proto/wire/stream_request.h"
#include "tests/fuzz/fuzz.h"

/* Newlines stand for the NULs of the file. */
bool fuzz_launch(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct launch launch;
    char *copy = xalloc(size + 1);
    for (size_t i = 0; i < size; i++) {
        copy[i] = bytes[i] == '\n' ? '\0' : (char)bytes[i];
    }
    copy = xrealloc(copy, size > 0 ? size : 1);
    if (!launch_parse(copy, size, &launch, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    FUZZ_MUST(launch.argument_count > 0 && launch.arguments[launch.argument_count] == NULL);
    FUZZ_MUST(launch.rank_count > 0 && (launch.uid < 0) == (launch.gid < 0));
    launch_finish(&launch);
    return true;
}

bool fuzz_record(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct record record;
    autofree char *text = fuzz_text(bytes, size);
    if (!record_parse(text, &record, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    record_finish(&record);
    return true;
}

/* --- streams into jobs ---------------------------------------------------------------------------------- */

/* The reply to an upgrade, with frames behind it; or frames alone, or a request for a stream. */
bool fuzz_stream(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct upgrade_reply reply;
    autofree char *own = xzalloc(size + 1);
    memcpy(own, bytes, size);
    size_t at = 0, used = 0;
    if (upgrade_read(own, size, &reply) == UPGRADE_WHOLE) {
        FUZZ_MUST(reply.used <= size && reply.used + reply.body_length <= size);
        at = reply.status == 101 ? reply.used : size;
    }
    struct frame frame;
    enum frame_look look;
    size_t frames = 0;
    while ((look = frame_decode(own + at, size - at, &frame, &used, &err)) == FRAME_WHOLE) {
        FUZZ_MUST(used >= FRAME_HEAD_BYTES && used <= size - at && used <= FRAME_ROOM);
        FUZZ_MUST(frame.length == used - FRAME_HEAD_BYTES && frame.bytes == own + at + FRAME_HEAD_BYTES);
        at += used;
        frames++;
    }
    struct stream_request request;
    autojson json_t *json = json_parse(own, size, NULL);
    bool wanted = json != NULL && json_is_object(json) && stream_request_decode(json, &request, &err);
    FUZZ_MUST(!wanted || request.kind != STREAM_KIND_EXEC || json_array_size(request.command) > 0);
    FUZZ_MUST(!wanted || request.kind != STREAM_KIND_FORWARD || request.port > 0);
    return frames > 0 || wanted;
}
