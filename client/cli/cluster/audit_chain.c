/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies rows of the audit. It promises that no row that was changed, put in or taken out goes unseen, but
 * for the newest ones: nothing lies behind them, so people note the head. */
#include "client/cli/cluster/audit_chain.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/wire/audit.h"

static bool broken(struct err *err, int64_t seq, const char *how)
{
    err_set(err, ERR_DAMAGED, "the audit was changed: row %lld %s", (long long)seq, how);
    return err_hint(err, "compare it with an export or a backup from before");
}

static bool is_hash(const char *hex)
{
    uint8_t hash[HASH_BYTES];
    return text_from_hex(hex, hash, sizeof hash);
}

/* The newest row has nothing behind it to compare with, so its hash is what to note. */
static bool fits(const struct audit_chain *chain, const struct audit_view *older, struct err *err)
{
    uint8_t before[HASH_BYTES], hash[HASH_BYTES];
    char hex[HASH_HEX + 1];
    const struct audit_view *newer = &chain->newer;
    if (newer->seq != older->seq + 1) {
        return broken(err, older->seq + 1, "is missing");
    }
    text_from_hex(older->hash, before, sizeof before);
    audit_hash(before, newer, hash);
    text_to_hex(hash, sizeof hash, hex);
    return strcmp(hex, newer->hash) == 0 || broken(err, newer->seq, "does not fit its hash");
}

static bool is_first(const struct audit_view *row, struct err *err)
{
    static const uint8_t nothing[HASH_BYTES];
    uint8_t hash[HASH_BYTES];
    char hex[HASH_HEX + 1];
    audit_hash(nothing, row, hash);
    text_to_hex(hash, sizeof hash, hex);
    return row->seq != 1 || strcmp(hex, row->hash) == 0 || broken(err, 1, "does not fit its hash");
}

bool audit_chain_take(struct audit_chain *chain, const json_t *json, struct err *err)
{
    struct audit_view row;
    if (!audit_view_decode(json_deep_copy(json), &row, err)) {
        return false;
    }
    bool good = (is_hash(row.hash) || broken(err, row.seq, "has no hash")) &&
                (chain->count == 0 || fits(chain, &row, err));
    if (good && row.seq == chain->head_seq) {
        chain->head_seen = true;
        good = strcmp(row.hash, chain->head_hash) == 0 ||
               broken(err, row.seq, "has another hash than the one that was noted");
    }
    if (chain->count++ == 0) {
        snprintf(chain->head, sizeof chain->head, "%lld:%s", (long long)row.seq, row.hash);
    }
    audit_view_finish(&chain->newer);
    chain->newer = row;
    return good;
}

bool audit_chain_take_file(struct audit_chain *chain, FILE *file, struct err *err)
{
    autofree char *line = NULL;
    size_t room = 0;
    ssize_t length;
    bool good = true;
    while (good && (length = getline(&line, &room, file)) > 0) {
        autojson json_t *row = json_parse(line, (size_t)length, err);
        good = row != NULL && audit_chain_take(chain, row, err);
    }
    return good;
}

bool audit_chain_read_head(const char *text, struct audit_chain *chain, struct err *err)
{
    autofree char *copy = text != NULL ? xstrdup(text) : NULL;
    char *colon = copy != NULL ? strchr(copy, ':') : NULL;
    if (text == NULL) {
        return true;
    }
    if (colon != NULL) {
        *colon = '\0';
        chain->head_hash = text + (colon - copy) + 1;
    }
    return (colon != NULL && text_to_int(copy, 1, INT64_MAX, &chain->head_seq) &&
            is_hash(chain->head_hash)) ||
           err_field(err, ERR_USAGE, "head", "take it from what an earlier gpuctl audit verify printed",
                     "--head must be SEQ:HASH, with a hash of 64 hex digits");
}

bool audit_chain_end(const struct audit_chain *chain, struct err *err)
{
    if (chain->count > 0 && !is_first(&chain->newer, err)) {
        return false;
    }
    return chain->head_seq == 0 || chain->head_seen || broken(err, chain->head_seq, "is not there");
}

void audit_chain_finish(struct audit_chain *chain)
{
    audit_view_finish(&chain->newer);
}
