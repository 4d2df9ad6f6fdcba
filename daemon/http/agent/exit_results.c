/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the results of ranks when they arrive with a report. A result that reaches the core has the bytes
 * that its hash names, here or in the store, and its JSON may be written into an answer as it is. A report
 * has at most 64 KiB to hash, so the HTTP thread may do it. The core decides whose results they may be. */
#include "daemon/http/agent/exit_results.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/uploads.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "proto/members.h"

/* How deep in an answer the JSON of a result stands. */
#define SHOWN_DEPTH 3

/* --- JSON ----------------------------------------------------------------------------------------------- */

/* Parses the text as deep as it will be shown, so that the answer has no more levels than our limit. Text
 * that is not exactly one value makes one of the arrays longer or shorter. NULL: it is none. */
static json_t *parse_shown(const char *text)
{
    autofree char *wrapped = xprintf("[[[%s]]]", text);
    autojson json_t *whole = json_parse(wrapped, strlen(wrapped), NULL);
    json_t *value = whole;
    for (int i = 0; i < SHOWN_DEPTH && value != NULL; i++) {
        value = json_array_size(value) == 1 ? json_array_get(value, 0) : NULL;
    }
    return json_incref(value);
}

static bool refuse_json(const char *what, struct err *err)
{
    return err_field(err, ERR_FIELD, "json", "leave it out where there is none", "json %s", what);
}

/* JSON that is sound but too deep to be shown is left out: it is a copy for people. */
static bool take_json(struct rank_result *result, struct err *err)
{
    if (result->json == NULL) {
        return result->hash != NULL ||
               err_field(err, ERR_FIELD, "sha256", NULL, "sha256 is missing, and json, too");
    }
    bool object = result->kind == RESULT_EXCEPTION;
    autojson json_t *shown = parse_shown(result->json);
    if (shown != NULL) {
        return !object || json_is_object(shown) || refuse_json("of an exception must be an object", err);
    }
    autojson json_t *deep = json_parse(result->json, strlen(result->json), NULL);
    if (deep == NULL || (object && !json_is_object(deep))) {
        return refuse_json("is not one JSON value", err);
    }
    result->json = NULL;
    return true;
}

/* --- pickles -------------------------------------------------------------------------------------------- */

/* A pickle that did not come along was put before, by the same node: one that could name the bytes of others
 * would hand them to the owner of its job, who sees results. */
static bool check_stored(const struct rank_result *result, const struct result_store *store, struct err *err)
{
    autorows struct rows rows = reader_blob(store->reader, result->digest, err);
    struct blob_row row;
    bool sent = store->sender == NULL || uploads_has(store->uploads, store->sender, result->digest);
    return (rows_blob(&rows, &row) && row.size == result->size && sent) ||
           (!rows.failed && err_field(err, ERR_FIELD, "sha256", "PUT /v1/blobs/{sha256} before the report",
                                      "sha256 names no stored blob of %lld bytes", (long long)result->size));
}

/* A pickle that did. */
static bool take_inline(struct rank_result *result, uint8_t **ret_bytes, struct err *err)
{
    uint8_t digest[HASH_BYTES];
    size_t length = 0;
    if (!text_from_base64(result->base64, strlen(result->base64), ret_bytes, &length)) {
        return err_field(err, ERR_FIELD, "base64", "RFC 4648, with padding", "base64 does not decode");
    }
    hash_bytes(*ret_bytes, length, digest);
    if ((int64_t)length != result->size || !hash_equal(digest, result->digest)) {
        return err_field(err, ERR_FIELD, "base64", NULL,
                         "base64 holds %zu bytes that are not those of size and sha256", length);
    }
    result->bytes = *ret_bytes;
    return true;
}

static bool take_pickle(struct rank_result *result, uint8_t digest[HASH_BYTES], uint8_t **ret_bytes,
                        const struct result_store *store, struct err *err)
{
    if (result->hash == NULL) {
        return (result->kind == RESULT_EXCEPTION && result->base64 == NULL) ||
               err_field(err, ERR_FIELD, "sha256", NULL, "sha256 is missing");
    }
    if (!text_from_hex(result->hash, digest, HASH_BYTES)) {
        return err_field(err, ERR_FIELD, "sha256", NULL, "sha256 must be 64 hex digits");
    }
    result->digest = digest;
    return result->base64 != NULL ? take_inline(result, ret_bytes, err) : check_stored(result, store, err);
}

/* --- all ------------------------------------------------------------------------------------------------ */

static bool check_sum(const struct report_message *message, struct err *err)
{
    size_t sum = 0;
    for (size_t i = 0; i < message->result_count; i++) {
        const char *base64 = message->results[i].base64;
        sum += base64 != NULL ? strlen(base64) / 4 * 3 : 0;
    }
    /* Padding counts here for up to two bytes a result. */
    return sum <= LIMIT_EXIT_RESULT_BYTES + 2 * message->result_count ||
           err_field(err, ERR_FIELD, "results", "PUT /v1/blobs/{sha256} what is more, before the report",
                     "results carry more than %lld bytes in base64", LIMIT_EXIT_RESULT_BYTES);
}

bool exit_results_take(struct exit_results *results, struct report_message *message,
                       const struct result_store *store, struct err *err)
{
    if (!check_sum(message, err)) {
        return false;
    }
    results->count = message->result_count;
    results->digests = xzalloc(results->count * sizeof *results->digests);
    results->pickles = xzalloc(results->count * sizeof(uint8_t *));
    for (size_t i = 0; i < results->count; i++) {
        struct rank_result *result = &message->results[i];
        if (!take_json(result, err) ||
            !take_pickle(result, results->digests[i], &results->pickles[i], store, err)) {
            return member_err_inside(err, "results", i);
        }
    }
    return true;
}

void exit_results_finish(struct exit_results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        free(results->pickles[i]);
    }
    free(results->pickles);
    free(results->digests);
    *results = (struct exit_results){0};
}
