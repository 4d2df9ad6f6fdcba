/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sum of the GPUs on nodes that leave too soon, for the sentence that says why a job waits. It
 * follows the rule of the core from rows alone, and decides nothing. */
#include "daemon/http/api/departing.h"

#include <string.h>

#include "daemon/http/api/windows.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"

static int64_t gpus_of(const char *text, const char *gpu_type)
{
    autojson json_t *devices = json_parse(text, strlen(text), NULL);
    int64_t count = 0;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const char *type = json_string_value(json_object_get(json_array_get(devices, i), "type"));
        count += gpu_type == NULL || (type != NULL && strcmp(type, gpu_type) == 0);
    }
    return count;
}

bool departing_count(struct reader *reader, const char *gpu_type, int64_t time_limit_ms, int64_t grace_ms,
                     int64_t wall_ms, int64_t *ret_gpus, struct err *err)
{
    const int64_t needs_until_ms = wall_ms + (time_limit_ms > 0 ? time_limit_ms + grace_ms : LEAVES_SOON_MS);
    autowindows struct windows *windows = windows_read(reader, err);
    if (windows == NULL) {
        return false;
    }
    autorows struct rows rows = reader_nodes(reader, NULL, err);
    struct node_row row;
    int64_t used_gpus;
    *ret_gpus = 0;
    while (rows_node(&rows, &row, &used_gpus)) {
        const struct span window = windows_of_node(windows, &row, wall_ms);
        bool expires = row.expires_at_ms != 0 && row.expires_at_ms < needs_until_ms;
        bool away = window.until_ms != 0 && window.from_ms < needs_until_ms;
        if (row.state == NODE_READY && (expires || away)) {
            *ret_gpus += gpus_of(row.devices, gpu_type);
        }
    }
    return !rows.failed;
}
