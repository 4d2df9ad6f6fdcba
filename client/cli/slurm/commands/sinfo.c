/* SPDX-License-Identifier: Apache-2.0 */
/* sinfo: lists pools and nodes as Slurm's does. Nodes that are alike in the columns that are shown are one
 * line, as are all nodes of a name with -N. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/show/print.h"
#include "client/cli/slurm/commands/commands.h"
#include "client/cli/slurm/commands/format.h"
#include "client/cli/slurm/commands/node_list.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/states.h"

#define FORMAT_POOLS "%#P %.5a %.10l %.6D %.6t %N"
#define FORMAT_NODES "%#N %.6D %#P %6t"
#define MIB          (1024.0 * 1024.0)

struct sinfo_options {
    const char *partitions, *format;
    bool by_node, no_header;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct sinfo_options, by_node, 'N', "Node", "a line for each node"),
    ROW_FLAG(struct sinfo_options, no_header, 'h', "noheader", "no line of titles"),
    ROW_TEXT(struct sinfo_options, partitions, 'p', "partition", "NAME,...", "only these pools"),
    ROW_TEXT(struct sinfo_options, format, 'o', "format", "FORMAT", "the columns, such as \"%P %D %t\""),
    ROWS_END};

/* --- nodes --- */

/* A row has the list of its nodes. */
static const json_t *first_of(const json_t *row)
{
    return json_array_get(json_object_get(row, "nodes"), 0);
}

static double amount_of(const json_t *node, const char *member)
{
    return json_number_value(json_object_get(node, member));
}

enum use { USE_IDLE, USE_MIXED, USE_ALLOCATED, USE_OTHER };

/* By its GPUs, and of a node without any by its CPUs; a job without GPUs holds CPUs alone. */
static enum use use_of(const json_t *node)
{
    double gpus = amount_of(node, "gpus"), free_gpus = amount_of(node, "free_gpus");
    double cpus = amount_of(node, "cpus"), free_cpus = amount_of(node, "free_cpus");
    if (gpus > 0 && free_gpus < gpus) {
        return free_gpus > 0 ? USE_MIXED : USE_ALLOCATED;
    }
    return free_cpus == cpus ? USE_IDLE : free_cpus > 0 ? USE_MIXED : USE_ALLOCATED;
}

static enum node_state state_of(const json_t *node)
{
    enum node_state state = NODE_READY;
    const char *text = json_string_of(node, "state");
    if (text != NULL) {
        node_state_from_text(text, &state);
    }
    return state;
}

static bool is_in_window(const json_t *node)
{
    int64_t from_ms = print_time_of(json_object_get(node, "window"), "from");
    return from_ms != 0 && from_ms <= clock_wall_ms();
}

struct words {
    const char *compact, *whole;
};

static struct words words_of(const json_t *node)
{
    static const struct words uses[] = {{"idle", "idle"}, {"mix", "mixed"}, {"alloc", "allocated"}};
    static const struct words silent[] = {{"idle*", "idle*"}, {"mix*", "mixed*"}, {"alloc*", "allocated*"}};
    switch (state_of(node)) {
    case NODE_DRAINING:
        return (struct words){"drng", "draining"};
    case NODE_DRAINED:
        return (struct words){"drain", "drained"};
    case NODE_LOST:
        return (struct words){"down", "down"};
    case NODE_SUSPECT:
        return silent[use_of(node)];
    case NODE_READY:
    case NODE_STATE_COUNT:
        break;
    }
    return is_in_window(node) ? (struct words){"maint", "maint"} : uses[use_of(node)];
}

/* Allocated, idle or other, as sums count it. */
static enum use counted_as(const json_t *node)
{
    enum node_state state = state_of(node);
    enum use use = use_of(node);
    bool out = state == NODE_LOST || state == NODE_DRAINED || (use == USE_IDLE && is_in_window(node));
    return out || (state == NODE_DRAINING && use == USE_IDLE) ? USE_OTHER
           : use == USE_MIXED                                 ? USE_ALLOCATED
                                                              : use;
}

/* --- columns --- */

static void show_pool(const json_t *row, struct text *out)
{
    text_append(out, print_text_of(first_of(row), "pool"));
}

static void show_available(const json_t *row, struct text *out)
{
    text_append(out, "up");
}

static void show_limit(const json_t *row, struct text *out)
{
    text_append(out, "infinite");
}

static void show_count(const json_t *row, struct text *out)
{
    text_append_int(out, (int64_t)json_array_size(json_object_get(row, "nodes")));
}

static void show_compact_state(const json_t *row, struct text *out)
{
    text_append(out, words_of(first_of(row)).compact);
}

static void show_state(const json_t *row, struct text *out)
{
    text_append(out, words_of(first_of(row)).whole);
}

static void show_names(const json_t *row, struct text *out)
{
    json_t *names = json_array();
    const json_t *node;
    size_t i;
    json_array_foreach (json_object_get(row, "nodes"), i, node) {
        json_array_append_new(names, json_string(print_text_of(node, "name")));
    }
    node_list_append(names, out);
    json_decref(names);
}

static void show_gpus(const json_t *row, struct text *out)
{
    const char *type = json_string_of(first_of(row), "gpu_type");
    long long gpus = json_integer_value(json_object_get(first_of(row), "gpus"));
    if (gpus == 0) {
        text_append(out, "(null)");
    } else {
        text_printf(out, "gpu:%s%s%lld", type != NULL ? type : "", type != NULL ? ":" : "", gpus);
    }
}

/* The least of the nodes; "+" where others have more. */
static void show_least(const json_t *row, const char *member, double unit, struct text *out)
{
    double least = amount_of(first_of(row), member), most = least;
    const json_t *node;
    size_t i;
    json_array_foreach (json_object_get(row, "nodes"), i, node) {
        double amount = amount_of(node, member);
        least = amount < least ? amount : least;
        most = amount > most ? amount : most;
    }
    text_printf(out, "%lld%s", (long long)(least / unit), most > least ? "+" : "");
}

static void show_cpus(const json_t *row, struct text *out)
{
    show_least(row, "cpus", 1, out);
}

static void show_memory(const json_t *row, struct text *out)
{
    show_least(row, "memory_bytes", MIB, out);
}

/* "2/5/1/8": allocated, idle, other, all. */
static void put_counts(const long long counts[], struct text *out)
{
    long long all = counts[USE_ALLOCATED] + counts[USE_IDLE] + counts[USE_OTHER];
    text_printf(out, "%lld/%lld/%lld/%lld", counts[USE_ALLOCATED], counts[USE_IDLE], counts[USE_OTHER], all);
}

static void show_node_counts(const json_t *row, struct text *out)
{
    long long counts[USE_OTHER + 1] = {0};
    const json_t *node;
    size_t i;
    json_array_foreach (json_object_get(row, "nodes"), i, node) {
        counts[counted_as(node)]++;
    }
    put_counts(counts, out);
}

static void show_cpu_counts(const json_t *row, struct text *out)
{
    long long counts[USE_OTHER + 1] = {0};
    const json_t *node;
    size_t i;
    json_array_foreach (json_object_get(row, "nodes"), i, node) {
        long long cpus = (long long)amount_of(node, "cpus");
        long long idle = (long long)amount_of(node, "free_cpus");
        counts[USE_ALLOCATED] += cpus - idle;
        counts[counted_as(node) == USE_OTHER ? USE_OTHER : USE_IDLE] += idle;
    }
    put_counts(counts, out);
}

static const struct format_column columns[] = {
    {'P', "PARTITION", show_pool},
    {'R', "PARTITION", show_pool},
    {'a', "AVAIL", show_available},
    {'l', "TIMELIMIT", show_limit},
    {'D', "NODES", show_count},
    {'t', "STATE", show_compact_state},
    {'T', "STATE", show_state},
    {'N', "NODELIST", show_names},
    {'G', "GRES", show_gpus},
    {'c', "CPUS", show_cpus},
    {'m', "MEMORY", show_memory},
    {'C', "CPUS(A/I/O/T)", show_cpu_counts},
    {'F', "NODES(A/I/O/T)", show_node_counts},
    {.code = '\0'},
};

/* --- lines --- */

/* What nodes of one line have in common: their pool, and with -N their name; else the columns that are shown
 * of it. */
static char *key_of(const struct format *format, const json_t *row, bool by_node)
{
    autotext struct text key = {0};
    show_pool(row, &key);
    text_append(&key, "\n");
    if (by_node) {
        show_names(row, &key);
    }
    for (size_t i = 0; i < format->count; i++) {
        const struct format_column *column = format->fields[i].column;
        if (column->show == show_state || column->show == show_compact_state || column->show == show_gpus) {
            column->show(row, &key);
            text_append(&key, "\n");
        }
    }
    return text_take(&key);
}

static int compare_names(const void *a, const void *b)
{
    const json_t *const *x = a, *const *y = b;
    int order = strcmp(print_text_of(*x, "pool"), print_text_of(*y, "pool"));
    return order != 0 ? order : strcmp(print_text_of(*x, "name"), print_text_of(*y, "name"));
}

/* The nodes by pool and by name, borrowed; the caller frees the list. */
static json_t **sort_nodes(const json_t *nodes)
{
    size_t count = json_array_size(nodes);
    json_t **sorted = xzalloc((count + 1) * sizeof *sorted);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = json_array_get(nodes, i);
    }
    qsort(sorted, count, sizeof *sorted, compare_names);
    return sorted;
}

static bool is_wanted(const struct sinfo_options *options, const json_t *node)
{
    autofree char *copy = xstrdup(options->partitions != NULL ? options->partitions : "");
    char *rest = copy;
    bool wanted = options->partitions == NULL;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        wanted |= strcmp(word, print_text_of(node, "pool")) == 0;
    }
    return wanted;
}

/* The rows of the table: each with the nodes that share a key. */
static json_t *rows_of(const struct sinfo_options *options, const struct format *format, const json_t *nodes)
{
    size_t count = json_array_size(nodes);
    autofree json_t **sorted = sort_nodes(nodes);
    autojson json_t *by_key = json_object();
    json_t *found = json_array();
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(options, sorted[i])) {
            continue;
        }
        json_t *row = json_pack("{s:[O]}", "nodes", sorted[i]);
        autofree char *key = key_of(format, row, options->by_node);
        json_t *known = json_object_get(by_key, key);
        if (known != NULL) {
            json_array_append(json_object_get(known, "nodes"), sorted[i]);
        } else {
            json_object_set(by_key, key, row);
            json_array_append(found, row);
        }
        json_decref(row);
    }
    return found;
}

/* --- the command --- */

static bool parse(const struct sinfo_options *options, struct format *ret_format, struct err *err)
{
    const char *wanted = options->format != NULL ? options->format
                         : options->by_node      ? FORMAT_NODES
                                                 : FORMAT_POOLS;
    return format_parse(wanted, columns, ret_format, err);
}

static bool check(const struct call *call, struct err *err)
{
    struct format format;
    return parse(call->options, &format, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct sinfo_options *options = call->options;
    struct format format;
    autotext struct text out = {0};
    autojson json_t *nodes = api_list(call->api, "/v1/nodes", "nodes", "cursor", LIMIT_LISTED, err);
    if (nodes == NULL || !parse(options, &format, err)) {
        return false;
    }
    autojson json_t *found = rows_of(options, &format, nodes);
    format_rows(&format, found, !options->no_header, &out);
    return print_out(&out, err);
}

const struct verb command_sinfo = {
    .name = "sinfo",
    .summary = "List the pools and nodes of gpuctl as Slurm's sinfo does.",
    .details = "A partition is a pool. Codes of --format: %P partition, %a up, %l limit, %D nodes, %t and %T "
               "state, %N "
               "names, %G GPUs of a node,\n"
               "%c CPUs and %m MiB of a node, %F nodes and %C CPUs, allocated/idle/other/all. %.10P is ten "
               "characters "
               "wide, from the right.\n"
               "--version says which gpuctl this is.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct sinfo_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
