/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cli/top_rig.h"

#include <string.h>

#include "proto/base/text/json.h"

const char top_nodes[] = "[" NODE("n1", "READY", "H100", "8", "5", "1", ",\"unavailable\":\"ECC\"") "," NODE(
    "n2", "DRAINING", "H100", "8", "6", "0", ",\"reason\":\"disk\"") "," NODE("n3", "READY", "A10", "4", "4",
                                                                              "0", "") "]";

const char top_queue[] = "[" JOB("a1", "alpha", "2", "0", ",\"created_at\":\"2027-01-15T07:00:00Z\"") "," JOB(
    "b2", "beta", "16", "5", "") "," JOB("c3", "gamma", "8", "0",
                                         ",\"reason\":\"waits for 8 H100\",\"gpu_type\":\"H100\"") "]";

const struct top_look top_plain = {.width = 200, .now_ms = NOW_MS};

json_t *top_parse(const char *text)
{
    struct err err;
    json_t *json = json_parse(text, strlen(text), &err);
    ck_assert_msg(json != NULL, "%s", err.text);
    return json;
}

char *top_joined(const struct text_list *frame)
{
    struct text all = {0};
    for (size_t i = 0; i < frame->count; i++) {
        text_printf(&all, "%s\n", frame->items[i]);
    }
    return text_take(&all);
}

void top_press(struct top_keys *keys, const char *bytes)
{
    top_keys_add(keys, bytes, strlen(bytes));
}
