/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl doctor`: looks at all that has to work between this shell and a GPU, and says for each fault what
 * to do. It changes nothing, and goes on after a fault as far as it can. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "client/cli/doctor/findings.h"
#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/settings/settings.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

struct doctor_options {
    bool node;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct doctor_options, node, 0, "node",
             "look at this machine as a node, too; without it only where an agent is set up"),
    ROW_FORMAT, ROWS_END};

static const char *const states[] = {"ok", "warn", "FAIL"};

void findings_add(struct findings *findings, enum finding state, const char *check, const char *remedy,
                  const char *format, ...)
{
    char found[512];
    va_list args;
    va_start(args, format);
    vsnprintf(found, sizeof found, format, args);
    va_end(args);
    findings->failed |= state == FINDING_FAIL;
    json_t *item = json_pack("{s:s, s:s, s:s, s:s?}", "check", check, "state", states[state], "found", found,
                             "remedy", remedy);
    if (item != NULL) { /* else a text was not UTF-8 */
        json_array_append_new(findings->items, item);
    }
}

void findings_add_error(struct findings *findings, const char *check, const struct err *err)
{
    findings_add(findings, FINDING_FAIL, check, err->hint[0] != '\0' ? err->hint : NULL, "%s", err->text);
}

static void print_findings(const json_t *items, struct text *out)
{
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        autofree char *found = xstrdup(print_text_of(item, "found"));
        const char *remedy = json_string_of(item, "remedy");
        print_disarm(found);
        text_printf(out, "%-4s  %-13s  %s", print_text_of(item, "state"), print_text_of(item, "check"),
                    found);
        if (remedy != NULL) {
            autofree char *what_to_do = xstrdup(remedy);
            print_disarm(what_to_do);
            text_printf(out, "; %s", what_to_do);
        }
        text_append(out, "\n");
    }
}

/* Is an agent set up here? */
static bool is_node(void)
{
    autofree char *path = settings_place(SETTINGS_AGENT);
    return access(path, F_OK) == 0;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct doctor_options *options = call->options;
    autojson json_t *items = json_array();
    autotext struct text out = {0};
    struct findings findings = {.items = items};
    findings_of_controller(call, &findings);
    if (options->node || is_node()) {
        findings_of_node(&findings);
    }
    if (print_is_json(call->format)) {
        print_list(call->format, "checks", items, &out);
    } else {
        print_findings(items, &out);
    }
    *ret_exit = findings.failed ? 1 : 0;
    return print_out(&out, err);
}

const struct verb verb_doctor = {
    .name = "doctor",
    .summary = "Check settings, controller, token, clock, versions and nodes, and say what to do.",
    .details =
        "A line for each check: ok, warn or FAIL, what was found, and what to do. Exits with 1 when one "
        "failed.",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct doctor_options),
    .rows = {rows},
    .run = run,
};
