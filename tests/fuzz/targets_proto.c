/* SPDX-License-Identifier: Apache-2.0 */
/* What the controller, agents and clients read of one another. */
#include <jansson.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/spec/account_limits.h"
#include "proto/spec/jobspec.h"
#include "proto/trace_context.h"
#include "proto/wire/messages.h"
#include "proto/wire/staging.h"
#include "proto/wire/views.h"
#include "tests/fuzz/fuzz.h"

#define LEASE_MS 60000

/* As the HTTP thread parses a body. NULL: it is none. */
static json_t *parse(const uint8_t *bytes, size_t size)
{
    return json_loadb((const char *)bytes, size, JSON_REJECT_DUPLICATES, NULL);
}

bool fuzz_jobspec(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct job_spec spec;
    json_t *json = parse(bytes, size);
    if (json == NULL) {
        return false;
    }
    if (!job_spec_decode(json, LEASE_MS, &spec, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    FUZZ_MUST((spec.command != NULL) != job_spec_is_function(&spec));
    job_spec_finish(&spec);
    return true;
}

bool fuzz_account_limits(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct account_limits limits;
    autojson json_t *json = size > 0 ? parse(bytes + 1, size - 1) : NULL;
    if (json == NULL) {
        return false;
    }
    bool taken =
        account_limits_decode(json, (enum account_kind)(bytes[0] % ACCOUNT_KIND_COUNT), &limits, &err);
    if (taken) {
        account_limits_finish(&limits);
    } else {
        FUZZ_REFUSED(err);
    }
    return taken;
}

bool fuzz_staging(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct staging staging;
    json_t *json = parse(bytes, size);
    bool taken = json != NULL && staging_decode(json, &staging, &err);
    if (taken) {
        staging_finish(&staging);
    } else if (json != NULL) {
        FUZZ_REFUSED(err);
    }
    return taken;
}

/* What is decoded and encoded again is decoded once more. */
#define READ_AGAIN(name)                                                                                     \
    static bool read_##name(json_t *json)                                                                    \
    {                                                                                                        \
        struct err err = {0};                                                                                \
        struct name message, again;                                                                          \
        if (!name##_decode(json, &message, &err)) {                                                          \
            FUZZ_REFUSED(err);                                                                               \
            return false;                                                                                    \
        }                                                                                                    \
        FUZZ_MUST(name##_decode(name##_encode(&message), &again, &err));                                     \
        name##_finish(&again);                                                                               \
        name##_finish(&message);                                                                             \
        return true;                                                                                         \
    }
READ_AGAIN(register_message)
READ_AGAIN(register_reply)
READ_AGAIN(join_message)
READ_AGAIN(join_reply)
READ_AGAIN(leave_message)
READ_AGAIN(leave_reply)
READ_AGAIN(heartbeat_message)
READ_AGAIN(heartbeat_reply)
READ_AGAIN(poll_message)
READ_AGAIN(poll_reply)
READ_AGAIN(report_message)
READ_AGAIN(staging_message)
READ_AGAIN(journal_message)
READ_AGAIN(log_reply)

#define READ_VIEW(name)                                                                                      \
    static bool read_##name(json_t *json)                                                                    \
    {                                                                                                        \
        struct err err = {0};                                                                                \
        struct name view;                                                                                    \
        bool taken = name##_decode(json, &view, &err);                                                       \
        if (taken) {                                                                                         \
            name##_finish(&view);                                                                            \
        } else {                                                                                             \
            FUZZ_REFUSED(err);                                                                               \
        }                                                                                                    \
        return taken;                                                                                        \
    }
READ_VIEW(job_view)
READ_VIEW(event_view)
READ_VIEW(node_view)
READ_VIEW(window_view)
READ_VIEW(token_view)
READ_VIEW(join_token_view)
READ_VIEW(audit_view)

struct reader {
    const char *name;
    bool (*read)(json_t *json);
};

/* The first line names what the rest is. */
static bool read_named(const uint8_t *bytes, size_t size, const struct reader *readers, size_t count)
{
    const uint8_t *end = memchr(bytes, '\n', size);
    size_t length = end != NULL ? (size_t)(end - bytes) : size;
    for (size_t i = 0; i < count && end != NULL; i++) {
        if (strlen(readers[i].name) == length && memcmp(readers[i].name, bytes, length) == 0) {
            json_t *json = parse(end + 1, size - length - 1);
            return json != NULL && readers[i].read(json);
        }
    }
    return false;
}

#define READER(name)                                                                                         \
    {                                                                                                        \
#name, read_##name                                                                                   \
    }

bool fuzz_message(const uint8_t *bytes, size_t size)
{
    static const struct reader readers[] = {
        READER(register_message), READER(register_reply), READER(join_message),      READER(join_reply),
        READER(leave_message),    READER(leave_reply),    READER(heartbeat_message), READER(heartbeat_reply),
        READER(poll_message),     READER(poll_reply),     READER(report_message),    READER(staging_message),
        READER(journal_message),  READER(log_reply),
    };
    return read_named(bytes, size, readers, sizeof readers / sizeof readers[0]);
}

bool fuzz_view(const uint8_t *bytes, size_t size)
{
    static const struct reader readers[] = {
        READER(job_view),   READER(event_view),      READER(node_view),  READER(window_view),
        READER(token_view), READER(join_token_view), READER(audit_view),
    };
    return read_named(bytes, size, readers, sizeof readers / sizeof readers[0]);
}

bool fuzz_problem(const uint8_t *bytes, size_t size)
{
    struct err problem = {0};
    autojson json_t *json = parse(bytes, size);
    problem_decode((const char *)bytes, size, 422, &problem);
    FUZZ_REFUSED(problem);
    return json_is_string(json_object_get(json, "code"));
}

bool fuzz_trace_context(const uint8_t *bytes, size_t size)
{
    struct trace_parent parent, again;
    char out[TRACE_PARENT_BYTES];
    autofree char *text = fuzz_text(bytes, size);
    bool sound = trace_state_is_sound(text);
    FUZZ_MUST(!sound || strlen(text) <= LIMIT_TRACE_STATE);
    if (!trace_parent_read(text, &parent)) {
        return false;
    }
    trace_parent_write(&parent, out);
    FUZZ_MUST(trace_parent_read(out, &again));
    FUZZ_MUST(memcmp(parent.trace, again.trace, sizeof parent.trace) == 0);
    FUZZ_MUST(memcmp(parent.span, again.span, sizeof parent.span) == 0 && parent.sampled == again.sampled);
    return true;
}
