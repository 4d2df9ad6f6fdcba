/* SPDX-License-Identifier: Apache-2.0 */
/* Translates a batch script into a job spec. The script runs on every node of the job, started by
 * slurm/start.sh, which sets Slurm's variables; srun in it starts the tasks of that node. It promises that
 * every option is honoured, noted or refused. batch_size.c calculates the size, batch_amounts.c CPUs and
 * memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/slurm/batch.h"
#include "client/cli/spec/jobfile.h"
#include "client/cli/slurm/parts.h"
#include "client/cli/slurm/slurm_values.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/limits.h"

#define START  ".gpuctl/start"
#define SCRIPT ".gpuctl/batch/" /* and its name */

struct translation {
    const struct batch *batch;
    const struct batch_options *options;
    const char *here; /* or NULL */
    struct batch_size size;
    struct slurm_signal signal; /* name "": none */
    json_t *spec, *env;         /* borrowed */
    struct notes *notes;
    struct err *err;
};

/* --- options that are noted or refused --- */

static bool take_fate(const char *option, enum batch_fate fate, const char *remark, bool ignore,
                      struct notes *notes, struct err *err)
{
    if (fate == BATCH_HONOURED) {
        return true;
    }
    if (fate == BATCH_NOTED || ignore) {
        notes_add(notes, "--%s is left out: %s", option, remark);
        return true;
    }
    return err_field(err, ERR_USAGE, option, remark, "--%s is not supported", option);
}

static bool take_fates(const struct batch_options *options, bool ignore, struct notes *notes, struct err *err)
{
#define X(member, letter, name, value, help, fate, remark)                                                   \
    if (options->member != NULL && !take_fate(name, fate, remark, ignore, notes, err)) {                     \
        return false;                                                                                        \
    }
    BATCH_TEXTS(X)
#undef X
#define X(member, letter, name, help, fate, remark)                                                          \
    if (options->member && !take_fate(name, fate, remark, ignore, notes, err)) {                             \
        return false;                                                                                        \
    }
    BATCH_FLAGS(X)
#undef X
    return true;
}

/* --- the environment --- */

static bool put_env(struct translation *t, const char *name, const char *value)
{
    if (value == NULL) {
        return true;
    }
    return json_object_set_new(t->env, name, json_string(value)) == 0 ||
           err_field(t->err, ERR_USAGE, "export", NULL, "the value of %s is not UTF-8", name);
}

/* One item of --export. */
static bool export_one(struct translation *t, const char *item)
{
    size_t length = strcspn(item, "=");
    autofree char *name = xstrndup(item, length);
    if (strcmp(item, "ALL") == 0) {
        notes_add(t->notes, "--export ALL: only variables that are named are sent to the nodes");
        return true;
    }
    if (strcmp(item, "NONE") == 0 || strcmp(item, "NIL") == 0 || item[0] == '\0') {
        return true;
    }
    const char *value = item[length] == '=' ? item + length + 1 : getenv(name);
    return value != NULL ? put_env(t, name, value)
                         : err_field(t->err, ERR_USAGE, "export", "set it, or write --export NAME=VALUE",
                                     "--export %s: there is no such variable here", name);
}

static bool set_exports(struct translation *t)
{
    autofree char *copy = xstrdup(t->options->export_ != NULL ? t->options->export_ : "");
    char *rest = copy;
    for (char *item; (item = strsep(&rest, ",")) != NULL;) {
        if (!export_one(t, item)) {
            return false;
        }
    }
    return true;
}

static bool set_env(struct translation *t)
{
    const struct batch_options *o = t->options;
    char gpus[24];
    snprintf(gpus, sizeof gpus, "%lld", (long long)t->size.gpus);
    bool has_gpus = t->size.gpus > 0;
    return put_env(t, "SLURM_JOB_NAME", o->job_name != NULL ? o->job_name : basename(t->batch->name)) &&
           put_env(t, "SLURM_GPUS", has_gpus ? gpus : NULL) &&
           put_env(t, "SLURM_JOB_PARTITION", o->partition) && put_env(t, "SLURM_JOB_ACCOUNT", o->account) &&
           put_env(t, "SLURM_CPUS_PER_TASK", o->cpus_per_task) &&
           put_env(t, "SLURM_CPUS_PER_GPU", o->cpus_per_gpu) &&
           put_env(t, "SLURM_NTASKS_PER_NODE", o->ntasks_per_node) && set_exports(t);
}

/* --- names and times --- */

static bool put_name(struct translation *t, const char *member, const char *option, const char *value)
{
    if (value == NULL) {
        return true;
    }
    json_object_set_new(t->spec, member, json_string(value));
    return text_is_name(value, LIMIT_NAME_BYTES) ||
           err_field(t->err, ERR_USAGE, option, "letters, digits, '.', '_' and '-', a letter or digit first",
                     "--%s must be a name of 1 to %d characters", option, LIMIT_NAME_BYTES);
}

static bool set_names(struct translation *t)
{
    const struct batch_options *o = t->options;
    const char *said = o->job_name != NULL ? o->job_name : basename(t->batch->name);
    autofree char *name = jobfile_job_name(said);
    if (strcmp(name, said) != 0) {
        notes_add(t->notes, "--job-name: the job is named %s", name);
    }
    return put_name(t, "name", "job-name", name) && put_name(t, "pool", "partition", o->partition) &&
           put_name(t, "project", "account", o->account);
}

static void put_seconds(struct translation *t, const char *member, int64_t ms)
{
    json_object_set_new(t->spec, member, json_integer(ms / 1000));
}

/* Scripts may name signals by their numbers, too. */
static const char *signal_name(const char *said)
{
    static const struct {
        const char *number, *name;
    } numbers[] = {{"1", "HUP"},   {"2", "INT"},   {"10", "USR1"}, {"12", "USR2"},
                   {"15", "TERM"}, {"18", "CONT"}, {"23", "URG"}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(said, numbers[i].number) == 0) {
            return numbers[i].name;
        }
    }
    return said;
}

static bool set_signal(struct translation *t, int64_t limit_ms)
{
    const char *said = t->options->signal;
    enum early_signal signal;
    if (!slurm_signal(said, &t->signal) || t->signal.before_ms == 0) {
        return err_field(t->err, ERR_USAGE, "signal", "USR1@120 or B:TERM@60 for instance",
                         "--signal must be [B:]SIGNAL[@SECONDS], not \"%s\"", said);
    }
    if (!jobspec_early_signal_from_text(signal_name(t->signal.name), &signal)) {
        return err_field(t->err, ERR_USAGE, "signal", "USR1 is what most programs listen for",
                         "--signal %s: the signal must be one of " JOBSPEC_EARLY_NAMES, said);
    }
    if (limit_ms > 0 && limit_ms <= t->signal.before_ms) {
        return err_field(t->err, ERR_USAGE, "signal", "raise --time",
                         "--signal comes before the job starts: --time is no longer");
    }
    json_object_set_new(t->spec, "early_signal",
                        json_pack("{s:s, s:I}", "signal", early_signal_text(signal), "before_s",
                                  (json_int_t)(t->signal.before_ms / 1000)));
    return true;
}

static bool set_begin(struct translation *t)
{
    const char *begin = t->options->begin;
    int64_t at_ms;
    char moment[32];
    if (begin == NULL) {
        return true;
    }
    if (!slurm_begin(begin, clock_wall_ms(), &at_ms)) {
        return err_field(t->err, ERR_USAGE, "begin", "now+1hour, 18:00 or 2026-11-30T18:00",
                         "--begin \"%s\" is no time", begin);
    }
    clock_format_wall(at_ms, moment, sizeof moment);
    json_object_set_new(t->spec, "not_before", json_string(moment));
    return true;
}

static bool set_time(struct translation *t)
{
    int64_t limit_ms = 0;
    const char *time = t->options->time;
    if (time != NULL && !slurm_time(time, &limit_ms)) {
        return err_field(t->err, ERR_USAGE, "time",
                         "MINUTES, MM:SS, HH:MM:SS, DAYS-HH, DAYS-HH:MM or DAYS-HH:MM:SS",
                         "--time \"%s\" is no time", time);
    }
    if (limit_ms > 0) {
        put_seconds(t, "time_limit_s", limit_ms);
    }
    if (t->options->no_requeue && !t->options->requeue) {
        json_object_set_new(t->spec, "infra_retries", json_integer(0));
    }
    return t->options->signal == NULL || set_signal(t, limit_ms);
}

/* --- files and command --- */

static bool add_file(struct translation *t, const char *path, const char *text, size_t length)
{
    json_t *files = json_object_get(t->spec, "files");
    json_t *entry = json_pack("{s:s,s:s%,s:b}", "path", path, "text", text, length, "executable", 1);
    if (entry == NULL) {
        return err_field(t->err, ERR_USAGE, NULL, "write it as UTF-8", "%s: the script is not UTF-8",
                         t->batch->name);
    }
    json_array_append_new(files, entry);
    return true;
}

static bool set_files(struct translation *t, const char *script)
{
    const struct {
        const char *path;
        const unsigned char *text;
        size_t length;
    } parts[] = {
        {START, slurm_start, slurm_start_length},
        {".gpuctl/bin/srun", slurm_srun, slurm_srun_length},
        {".gpuctl/bin/scontrol", slurm_scontrol, slurm_scontrol_length},
    };
    json_object_set_new(t->spec, "files", json_array());
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!add_file(t, parts[i].path, (const char *)parts[i].text, parts[i].length)) {
            return false;
        }
    }
    return add_file(t, script, t->batch->text, t->batch->length);
}

/* Where the script runs: "" is the job's own folder. The caller frees it. */
static char *directory_of(const struct translation *t)
{
    const char *chdir = t->options->chdir;
    if (chdir == NULL || chdir[0] == '/' || t->here == NULL) {
        return xstrdup(chdir != NULL ? chdir : t->here != NULL ? t->here : "");
    }
    return xprintf("%s/%s", t->here, chdir);
}

static void put_word(json_t *command, const char *name, const char *value)
{
    if (value[0] != '\0') {
        autofree char *word = xprintf("%s=%s", name, value);
        json_array_append_new(command, json_string(word));
    }
}

static void put_number(json_t *command, const char *name, int64_t value)
{
    autofree char *word = xprintf("%s=%lld", name, (long long)value);
    json_array_append_new(command, json_string(word));
}

static void put_start(struct translation *t, json_t *command)
{
    autofree char *directory = directory_of(t);
    put_number(command, "nodes", t->size.nodes);
    put_number(command, "gpus", t->size.gpus);
    put_number(command, "tasks", t->size.tasks);
    if (t->size.per_task > 0) {
        put_number(command, "each", t->size.per_task);
    }
    put_word(command, "signal", signal_name(t->signal.name));
    put_word(command, "to", t->signal.to_batch ? "batch" : "");
    put_word(command, "directory", directory);
    if (directory[0] == '\0') {
        notes_add(
            t->notes,
            "the nodes do not share this folder: the job runs in its own, with what --file sends; --chdir "
            "names a folder of the nodes");
    }
}

static bool set_command(struct translation *t, char **arguments, size_t count)
{
    autofree char *script = xprintf(SCRIPT "%s", basename(t->batch->name));
    json_t *command = json_pack("[s,s]", "bash", START);
    json_object_set_new(t->spec, "command", command);
    put_start(t, command);
    json_array_append_new(command, json_string("--"));
    json_array_append_new(command, json_string(script));
    for (size_t i = 0; i < count; i++) {
        if (json_array_append_new(command, json_string(arguments[i])) != 0) {
            return err_field(t->err, ERR_USAGE, "command", "put such bytes into a file",
                             "argument %zu of the script is not UTF-8", i + 1);
        }
    }
    return set_files(t, script);
}

/* --- the whole --- */

static void note_differences(struct translation *t)
{
    const struct batch_options *o = t->options;
    if (t->size.nodes > 1) {
        notes_add(t->notes,
                  "the script runs on each of the %lld nodes, and srun starts the tasks of that node",
                  (long long)t->size.nodes);
    }
    if ((o->output != NULL || o->error != NULL) && (!o->wait || o->array != NULL)) {
        notes_add(t->notes, "--%s: output is kept by the controller, see gpuctl logs%s",
                  o->output != NULL ? "output" : "error",
                  o->array == NULL ? "; files are written with --wait" : "");
    }
}

json_t *batch_spec(const struct batch *batch, char **arguments, size_t count, const char *here, bool ignore,
                   struct notes *notes, struct err *err)
{
    autojson json_t *spec = json_object();
    struct translation t = {.batch = batch,
                            .options = &batch->options,
                            .here = here,
                            .spec = spec,
                            .env = json_object(),
                            .notes = notes,
                            .err = err};
    json_object_set_new(spec, "env", t.env);
    if (!take_fates(t.options, ignore, notes, err) || !batch_measure(t.options, &t.size, notes, err) ||
        !batch_amounts(t.options, &t.size, spec, notes, err) || !set_names(&t) || !set_time(&t) ||
        !set_begin(&t) || !batch_array(t.options, spec, t.env, err) ||
        !batch_place(t.options, spec, notes, err) || !set_env(&t) || !set_command(&t, arguments, count)) {
        return NULL;
    }
    json_object_set_new(spec, "gpus", json_integer(t.size.gpus));
    json_object_set_new(spec, "launch_mode", json_string("node"));
    if (t.size.type[0] != '\0') {
        json_object_set_new(spec, "gpu_type", json_string(t.size.type));
    }
    note_differences(&t);
    return give(spec);
}
