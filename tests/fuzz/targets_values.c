/* SPDX-License-Identifier: Apache-2.0 */
/* Values that people and programs write as one text: in options, settings, queries, headers, batch scripts.
 * The first line of an input names the kind of value. targets_client_values.c has those of gpuctl. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "daemon/blob/logs.h"
#include "daemon/http/logs/metric_run.h"
#include "daemon/http/request/head.h"
#include "daemon/http/usage/prices.h"
#include "daemon/identity/group_roles.h"
#include "proto/base/http/networks.h"
#include "daemon/simulate/replay.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/pin.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/spec/node_label.h"
#include "proto/spec/tasks.h"
#include "proto/wire/token.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/values.h"

#define NOW_MS 1800000000000LL

/* --- of all programs ------------------------------------------------------------------------------------ */

static bool read_duration(const char *text)
{
    int64_t ms;
    char shown[32];
    if (!text_to_duration_ms(text, &ms)) {
        return false;
    }
    FUZZ_MUST(ms >= 0);
    text_from_duration_ms(ms, shown, sizeof shown);
    FUZZ_MUST(shown[0] != '\0');
    return true;
}

static bool read_size(const char *text)
{
    int64_t bytes;
    bool taken = text_to_size(text, &bytes);
    FUZZ_MUST(!taken || bytes >= 0);
    return taken;
}

static bool read_moment(const char *text)
{
    int64_t wall_ms, same_ms;
    if (!text_to_moment_ms(text, NOW_MS, &wall_ms)) {
        FUZZ_MUST(!text_to_wall_ms(text, &same_ms));
        return false;
    }
    FUZZ_MUST(text[0] == '+' ? wall_ms >= NOW_MS : text_to_wall_ms(text, &same_ms) && same_ms == wall_ms);
    return true;
}

static bool read_number(const char *text)
{
    int64_t number, again;
    if (!text_to_int(text, INT64_MIN, INT64_MAX, &number)) {
        return false;
    }
    autofree char *shown = xprintf("%" PRId64, number);
    FUZZ_MUST(text_to_int(shown, number, number, &again) && again == number);
    return true;
}

static bool read_base64(const char *text)
{
    uint8_t *bytes;
    size_t length;
    if (!text_from_base64(text, strlen(text), &bytes, &length)) {
        return false;
    }
    FUZZ_MUST(length <= strlen(text) / 4 * 3);
    autofree char *shown = text_to_base64(bytes, length);
    FUZZ_MUST(strlen(shown) == strlen(text));
    free(bytes);
    return true;
}

static bool read_pin(const char *text)
{
    struct err err = {0};
    return pin_check_form(text, "pin", &err) || refused(&err);
}

/* Of PEM. */
static bool read_certificate(const char *text)
{
    char pin[PIN_BYTES];
    if (!pin_of(text, pin)) {
        return false;
    }
    FUZZ_MUST(pin_fits(pin, text));
    return true;
}

static bool read_token(const char *text)
{
    const char *rest = token_after_prefix(text, TOKEN_PREFIX);
    FUZZ_MUST(rest == NULL || strlen(text) == TOKEN_LENGTH);
    const char *join = token_after_prefix(text, TOKEN_JOIN_PREFIX);
    FUZZ_MUST(rest == NULL || join == NULL);
    return rest != NULL || join != NULL;
}

static bool read_label(const char *text)
{
    struct err err = {0};
    autojson json_t *labels = json_object();
    if (!node_label_take(text, labels, &err)) {
        return refused(&err);
    }
    FUZZ_MUST(node_labels_check(labels, &err));
    return true;
}

static bool read_task(const char *text)
{
    size_t length;
    int64_t task;
    if (!task_reference(text, &length, &task)) {
        return false;
    }
    FUZZ_MUST(length < strlen(text) && task >= 0 && task < LIMIT_ARRAY_TASKS);
    return true;
}

/* --- of the controller ---------------------------------------------------------------------------------- */

static bool read_range(const char *text)
{
    static const int64_t sizes[] = {0, 1, 20, INT64_MAX};
    bool taken = false;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t first, last;
        if (head_range(text, sizes[i], &first, &last)) {
            FUZZ_MUST(first >= 0 && last < sizes[i]);
            taken = true;
        }
    }
    return taken;
}

static bool read_log_id(const char *text)
{
    int64_t attempt, record, offset, same;
    if (!log_id_parse(text, &attempt, &record, &offset)) {
        return false;
    }
    FUZZ_MUST(attempt >= 0 && record >= 0 && offset >= 0);
    FUZZ_MUST(log_id_attempt(text, &same) && same == attempt);
    return true;
}

static bool read_metric_place(const char *text)
{
    struct metric_place place;
    if (!metric_place_read(text, &place)) {
        return false;
    }
    FUZZ_MUST(place.attempt >= 1 && place.number >= 0);
    FUZZ_MUST(place.log[0] == '\0' || (place.log >= text && place.log <= text + strlen(text)));
    return true;
}

static bool read_prices(const char *text)
{
    struct err err = {0};
    struct prices prices;
    if (!prices_read(text, &prices, &err)) {
        return refused(&err);
    }
    for (size_t i = 0; i < prices.count; i++) {
        FUZZ_MUST(prices.items[i].amount >= 0);
        FUZZ_MUST(prices_find(&prices, prices.items[i].gpu_type, "default") >= 0);
    }
    prices_finish(&prices);
    return true;
}

static bool read_networks(const char *text)
{
    struct err err = {0};
    struct networks networks;
    if (!networks_parse("--webhook-networks", text, &networks, &err)) {
        return refused(&err);
    }
    for (size_t i = 0; i < networks.count; i++) {
        FUZZ_MUST(networks.items[i].bits <= 128);
    }
    return true;
}

static bool read_group_role(const char *text)
{
    struct err err = {0};
    const struct group_roles roles = {.items = &text, .count = 1};
    if (!group_roles_check(&roles, &err)) {
        return refused(&err);
    }
    autofree char *groups = xprintf("\n%.*s\n", (int)(strrchr(text, '=') - text), text);
    FUZZ_MUST(group_roles_find(&roles, groups) >= ROLE_VIEWER);
    return true;
}

static bool read_fleet(const char *text)
{
    struct err err = {0};
    struct fleet fleet, again;
    if (!fleet_parse(text, &fleet, &err)) {
        return refused(&err);
    }
    autotext struct text shown = {0};
    fleet_write(&fleet, &shown);
    FUZZ_MUST(fleet_parse(shown.bytes, &again, &err));
    FUZZ_MUST(fleet_gpus(&again) == fleet_gpus(&fleet) && fleet_nodes(&again) == fleet_nodes(&fleet));
    fleet_finish(&again);
    fleet_finish(&fleet);
    return true;
}

/* --- the target ----------------------------------------------------------------------------------------- */

static const struct value_kind kinds[] = {
    {"duration", read_duration},
    {"size", read_size},
    {"moment", read_moment},
    {"number", read_number},
    {"base64", read_base64},
    {"pin", read_pin},
    {"certificate", read_certificate},
    {"token", read_token},
    {"label", read_label},
    {"task", read_task},
    {"range", read_range},
    {"log id", read_log_id},
    {"metric place", read_metric_place},
    {"prices", read_prices},
    {"networks", read_networks},
    {"group role", read_group_role},
    {"fleet", read_fleet},
};

bool fuzz_value(const uint8_t *bytes, size_t size)
{
    return value_read(kinds, sizeof kinds / sizeof kinds[0], bytes, size);
}
