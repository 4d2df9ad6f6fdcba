/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes W3C Trace Context, level 1, and derives the ids of a job's spans from its id by SHA-256,
 * so that controller and nodes agree on them and a span that is sent again is the same span. An id is never
 * all zero, which the recommendation forbids. */
#include "proto/trace_context.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

/* Where the parts of "00-<32 hex>-<16 hex>-<2 hex>" begin. */
#define TRACE_AT 3
#define SPAN_AT  36
#define FLAGS_AT 53
#define END_AT   55

#define FLAG_SAMPLED 1

static bool read_hex(const char *at, uint8_t *out, size_t length)
{
    char digits[2 * TRACE_ID_BYTES + 1];
    memcpy(digits, at, 2 * length);
    digits[2 * length] = '\0';
    return strspn(digits, "0123456789abcdef") == 2 * length && text_from_hex(digits, out, length);
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
    uint8_t any = 0;
    for (size_t i = 0; i < length; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

/* Version 00 ends with its flags; a later one may go on behind a hyphen; ff is none. */
static bool ends_well(const char *text, uint8_t version)
{
    return text[END_AT] == '\0' || (version > 0 && text[END_AT] == '-');
}

bool trace_parent_read(const char *text, struct trace_parent *ret_parent)
{
    struct trace_parent parent;
    uint8_t version, flags;
    if (strnlen(text, END_AT) < END_AT || !read_hex(text, &version, 1) || version == 0xff ||
        text[TRACE_AT - 1] != '-' || text[SPAN_AT - 1] != '-' || text[FLAGS_AT - 1] != '-' ||
        !read_hex(text + TRACE_AT, parent.trace, TRACE_ID_BYTES) ||
        !read_hex(text + SPAN_AT, parent.span, SPAN_ID_BYTES) || !read_hex(text + FLAGS_AT, &flags, 1) ||
        !ends_well(text, version) || is_zero(parent.trace, TRACE_ID_BYTES) ||
        is_zero(parent.span, SPAN_ID_BYTES)) {
        return false;
    }
    parent.sampled = (flags & FLAG_SAMPLED) != 0;
    *ret_parent = parent;
    return true;
}

void trace_parent_write(const struct trace_parent *parent, char out[TRACE_PARENT_BYTES])
{
    char trace[2 * TRACE_ID_BYTES + 1], span[2 * SPAN_ID_BYTES + 1];
    text_to_hex(parent->trace, TRACE_ID_BYTES, trace);
    text_to_hex(parent->span, SPAN_ID_BYTES, span);
    snprintf(out, TRACE_PARENT_BYTES, "00-%s-%s-%02x", trace, span, parent->sampled ? FLAG_SAMPLED : 0);
}

bool trace_state_is_sound(const char *text)
{
    size_t length = strnlen(text, LIMIT_TRACE_STATE + 1);
    if (length == 0 || length > LIMIT_TRACE_STATE || strchr(text, '=') == NULL) {
        return false;
    }
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            return false;
        }
    }
    return true;
}

bool trace_parent_of_spec(const json_t *spec, struct trace_parent *ret_parent)
{
    const char *text = json_string_of(spec, "traceparent");
    return text != NULL && trace_parent_read(text, ret_parent);
}

/* --- ids ------------------------------------------------------------------------------------------------ */

static void derive(const char *text, uint8_t *out, size_t length)
{
    uint8_t hash[HASH_BYTES];
    hash_bytes(text, strlen(text), hash);
    memcpy(out, hash, length);
    out[length - 1] |= is_zero(out, length);
}

void trace_id_of_job(const char *job_id, uint8_t out[TRACE_ID_BYTES])
{
    autofree char *text = xprintf("gpuctl trace %s", job_id);
    derive(text, out, TRACE_ID_BYTES);
}

void trace_span_id(const char *job_id, const char *kind, int64_t number, int64_t part,
                   uint8_t out[SPAN_ID_BYTES])
{
    autofree char *text =
        xprintf("gpuctl span %s %s %lld %lld", job_id, kind, (long long)number, (long long)part);
    derive(text, out, SPAN_ID_BYTES);
}
