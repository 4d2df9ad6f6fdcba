/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for single things. It promises to ask only for what is wanted, with at most CLIENT_TOP_REQUESTS
 * requests at once, and for each key not again before its period is over. A request that fails leaves what
 * was known. Beyond CLIENT_TOP_KNOWN keys all are forgotten. */
#include "client/cli/top/data/top_lookups.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/top/data/top_requests.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/base/text/table.h"

struct known {
    struct top_lookups *lookups; /* borrowed */
    char *key;
    bool asked;
    int64_t asked_ms; /* boot clock */
    json_t *kept;     /* NULL: nothing */
    UT_hash_handle hh;
};

struct top_lookups {
    const struct top_lookup *lookup; /* borrowed */
    struct top_requests requests;
    struct known *known;     /* by key */
    struct text_list wanted; /* keys to ask for */
    size_t next;             /* of these */
};

struct top_lookups *top_lookups_create(struct api *api, const struct top_lookup *lookup)
{
    struct top_lookups *lookups = xzalloc(sizeof *lookups);
    lookups->lookup = lookup;
    lookups->requests.api = api;
    return lookups;
}

static void forget_all(struct top_lookups *lookups)
{
    struct known *known, *next;
    top_requests_drop(&lookups->requests);
    HASH_ITER (hh, lookups->known, known, next) {
        HASH_DEL(lookups->known, known);
        json_decref(known->kept);
        free(known->key);
        free(known);
    }
}

void top_lookups_destroy(struct top_lookups *lookups)
{
    if (lookups == NULL) {
        return;
    }
    forget_all(lookups);
    text_list_finish(&lookups->wanted);
    free(lookups);
}

static struct known *find(const struct top_lookups *lookups, const char *key)
{
    struct known *known;
    HASH_FIND_STR(lookups->known, key, known);
    return known;
}

static struct known *find_or_add(struct top_lookups *lookups, const char *key)
{
    struct known *known = find(lookups, key);
    if (known == NULL) {
        known = xzalloc(sizeof *known);
        known->lookups = lookups;
        known->key = xstrdup(key);
        HASH_ADD_KEYPTR(hh, lookups->known, known->key, strlen(known->key), known);
    }
    return known;
}

static void take_reply(void *closure, const struct text *body, const struct err *err)
{
    struct known *known = closure;
    autojson json_t *reply = body != NULL ? json_parse(body->bytes, body->length, NULL) : NULL;
    if (reply != NULL) {
        json_decref(known->kept);
        known->kept = known->lookups->lookup->take(reply);
    }
}

static void ask(struct known *known)
{
    autotext struct text path = {0};
    known->lookups->lookup->path(known->key, &path);
    known->asked = true;
    known->asked_ms = clock_boot_ms();
    top_requests_get(&known->lookups->requests, path.bytes, (struct top_taker){take_reply, known});
}

static bool is_due(const struct known *known)
{
    return !known->asked || clock_boot_ms() - known->asked_ms >= known->lookups->lookup->period_ms;
}

static void send_more(struct top_lookups *lookups)
{
    while (lookups->next < lookups->wanted.count && top_requests_room(&lookups->requests)) {
        struct known *known = find_or_add(lookups, lookups->wanted.items[lookups->next++]);
        if (is_due(known)) {
            ask(known);
        }
    }
}

void top_lookups_want(struct top_lookups *lookups, const struct text_list *keys)
{
    if (HASH_COUNT(lookups->known) > CLIENT_TOP_KNOWN) {
        forget_all(lookups);
    }
    text_list_finish(&lookups->wanted);
    lookups->next = 0;
    for (size_t i = 0; i < keys->count; i++) {
        text_list_add(&lookups->wanted, xstrdup(keys->items[i]));
    }
    send_more(lookups);
}

bool top_lookups_step(struct top_lookups *lookups)
{
    bool any = top_requests_step(&lookups->requests);
    send_more(lookups);
    return any;
}

bool top_lookups_idle(const struct top_lookups *lookups)
{
    return lookups->next == lookups->wanted.count && top_requests_idle(&lookups->requests);
}

const json_t *top_lookups_find(const struct top_lookups *lookups, const char *key)
{
    const struct known *known = find(lookups, key);
    return known != NULL ? known->kept : NULL;
}
