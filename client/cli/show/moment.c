/* SPDX-License-Identifier: Apache-2.0 */
/* Reads moments from the command line. It promises to refuse one without an offset: its time zone would be a
 * guess. */
#include "client/cli/show/moment.h"

#include "proto/base/clock.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

bool moment_read(const char *what, const char *text, const char *hint, int64_t *ret_wall_ms, struct err *err)
{
    int64_t wall_ms;
    if (!text_to_moment_ms(text, clock_wall_ms(), &wall_ms) || wall_ms < 0 || wall_ms > LIMIT_WALL_MS) {
        return err_field(err, ERR_USAGE, what, hint, "%s is not a time", text);
    }
    *ret_wall_ms = wall_ms;
    return true;
}

json_t *moment_json(int64_t wall_ms)
{
    char at[32];
    clock_format_wall(wall_ms, at, sizeof at);
    return json_string(at);
}
