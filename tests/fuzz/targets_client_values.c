/* SPDX-License-Identifier: Apache-2.0 */
/* Values of gpuctl's options, of batch scripts, and of headers of answers. The first line of an input names
 * the kind of value. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <string.h>

#include "client/cli/mcp/mcp_logs.h"
#include "client/cli/slurm/commands/format.h"
#include "client/cli/slurm/commands/job_states.h"
#include "client/cli/slurm/commands/node_list.h"
#include "client/cli/slurm/commands/squeue.h"
#include "client/cli/slurm/slurm_values.h"
#include "client/cli/spec/short_forms.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/spec/tasks.h"
#include "tests/fuzz/values.h"

static bool read_early(const char *text)
{
    struct err err = {0};
    autojson json_t *early = early_read("signal", text, &err);
    return early != NULL || refused(&err);
}

static bool read_array(const char *text)
{
    struct err err = {0};
    autojson json_t *spec = json_object();
    const struct array_options options = {.count = text};
    if (!array_put(&options, spec, &err)) {
        return refused(&err);
    }
    FUZZ_MUST(array_asked(spec));
    return true;
}

static bool read_sweep(const char *text)
{
    struct err err = {0};
    autojson json_t *spec = json_object();
    const struct array_options options = {.sweep = {.items = &text, .count = 1}};
    if (!array_put(&options, spec, &err)) {
        return refused(&err);
    }
    FUZZ_MUST(array_asked(spec) && task_values_count(json_object_get(spec, "sweep")) > 0);
    return true;
}

static bool read_after(const char *text)
{
    struct err err = {0};
    autojson json_t *spec = json_object();
    const struct option_list list = {.items = &text, .count = 1};
    if (!after_add(spec, &list, &err)) {
        return refused(&err);
    }
    after_spell_out(spec);
    FUZZ_MUST(after_job(json_array_get(json_object_get(spec, "after"), 0)) != NULL);
    after_pretend(spec);
    return true;
}

static bool read_content_range(const char *text)
{
    char bytes[] = "\xa9 and \xe2\x82";
    struct mcp_part part = {.bytes = bytes, .length = sizeof bytes - 1};
    if (!mcp_part_read_range(text, &part)) {
        return false;
    }
    mcp_part_trim(&part, true);
    FUZZ_MUST(part.bytes >= bytes && part.bytes + part.length <= bytes + sizeof bytes - 1);
    return true;
}

static bool read_slurm_begin(const char *text)
{
    int64_t at_ms;
    return slurm_begin(text, 1764000000000, &at_ms);
}

static bool read_slurm_time(const char *text)
{
    int64_t ms;
    bool taken = slurm_time(text, &ms);
    FUZZ_MUST(!taken || ms >= 0);
    return taken;
}

static bool read_slurm_gres(const char *text)
{
    struct slurm_gpus gpus = {0}, same = {0};
    bool taken = slurm_gres(text, &gpus);
    FUZZ_MUST(!taken || (gpus.count >= 0 && gpus.count <= LIMIT_GPUS));
    return slurm_gpus(text, &same) || taken;
}

static bool read_slurm_memory(const char *text)
{
    int64_t bytes;
    bool taken = slurm_memory(text, &bytes);
    FUZZ_MUST(!taken || (bytes >= 0 && bytes <= LIMIT_MEMORY_BYTES));
    return taken;
}

static bool read_slurm_signal(const char *text)
{
    struct slurm_signal signal;
    bool taken = slurm_signal(text, &signal);
    FUZZ_MUST(!taken || (signal.name[0] != '\0' && signal.before_ms >= 0));
    return taken;
}

static bool read_slurm_words(const char *text)
{
    bool whole, any = false;
    char *word;
    while ((whole = slurm_word(&text, &word)) && word != NULL) {
        free(word);
        any = true;
    }
    return whole && any;
}

static bool read_slurm_format(const char *text)
{
    struct err err = {0};
    struct format format;
    if (!format_parse(text, squeue_columns, &format, &err)) {
        return refused(&err);
    }
    autojson json_t *rows = json_pack("[{s:{s:s,s:s}}]", "job", "id", "x7k2", "name", text);
    autotext struct text out = {0};
    format_rows(&format, rows, true, &out);
    FUZZ_MUST(out.length > 0 && out.bytes[out.length - 1] == '\n');
    return true;
}

static bool read_slurm_states(const char *text)
{
    struct err err = {0};
    unsigned states;
    bool taken = slurm_states_read(text, &states, &err);
    FUZZ_MUST(!taken || (states & ~SLURM_ALL) == 0);
    return taken || refused(&err);
}

/* Names of nodes, a line each. */
static bool read_slurm_nodes(const char *text)
{
    autojson json_t *names = json_array();
    autofree char *copy = xstrdup(text);
    autotext struct text out = {0};
    char *rest = copy;
    for (char *name; (name = strsep(&rest, "\n")) != NULL;) {
        json_t *word = json_string(name);
        if (word != NULL) {
            json_array_append_new(names, word);
        }
    }
    node_list_append(names, &out);
    return json_array_size(names) > 0;
}

static const struct value_kind kinds[] = {
    {"early signal", read_early},
    {"array", read_array},
    {"sweep", read_sweep},
    {"after", read_after},
    {"content range", read_content_range},
    {"slurm time", read_slurm_time},
    {"slurm begin", read_slurm_begin},
    {"slurm gres", read_slurm_gres},
    {"slurm memory", read_slurm_memory},
    {"slurm signal", read_slurm_signal},
    {"slurm words", read_slurm_words},
    {"slurm format", read_slurm_format},
    {"slurm states", read_slurm_states},
    {"slurm nodes", read_slurm_nodes},
};
bool fuzz_client_value(const uint8_t *bytes, size_t size)
{
    return value_read(kinds, sizeof kinds / sizeof kinds[0], bytes, size);
}
