/* SPDX-License-Identifier: Apache-2.0 */
/* A batch script for Slurm: its text, the options of its #SBATCH lines and of the command line, and the job
 * that they amount to. */
#ifndef CLI_BATCH_H
#define CLI_BATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/cli/frame/verb.h"
#include "client/cli/show/notes.h"
#include "client/cli/slurm/slurm_values.h"
#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/wire/views.h"

/* How an option is treated. */
enum batch_fate {
    BATCH_HONOURED,
    BATCH_NOTED,   /* it changes nothing that matters; a note says so */
    BATCH_REFUSED, /* without it the job would be another one; the remark is the remedy */
};

#define NOT_HERE "means nothing here"

/* X(member, letter, name, value, help, fate, remark): options of sbatch and of srun, */
#define JOB_TEXTS(X)                                                                                         \
    X(nodes, 'N', "nodes", "N", "nodes", BATCH_HONOURED, "")                                                 \
    X(ntasks, 'n', "ntasks", "N", "tasks that srun starts, over all nodes", BATCH_HONOURED, "")              \
    X(ntasks_per_node, 0, "ntasks-per-node", "N", "tasks of each node", BATCH_HONOURED, "")                  \
    X(gpus, 'G', "gpus", "[TYPE:]N", "GPUs over all nodes", BATCH_HONOURED, "")                              \
    X(gpus_per_node, 0, "gpus-per-node", "[TYPE:]N", "GPUs of each node", BATCH_HONOURED, "")                \
    X(gpus_per_task, 0, "gpus-per-task", "[TYPE:]N", "GPUs that each task sees", BATCH_HONOURED, "")         \
    X(gres, 0, "gres", "gpu[:TYPE]:N", "GPUs of each node", BATCH_HONOURED, "")                              \
    X(time, 't', "time", "TIME", "limit: MINUTES, HH:MM:SS, DAYS-HH:MM", BATCH_HONOURED, "")                 \
    X(job_name, 'J', "job-name", "NAME", "of the job", BATCH_HONOURED, "")                                   \
    X(partition, 'p', "partition", "NAME", "the pool", BATCH_HONOURED, "")                                   \
    X(account, 'A', "account", "NAME", "the project", BATCH_HONOURED, "")                                    \
    X(cpus_per_task, 'c', "cpus-per-task", "N", "CPUs of each task", BATCH_HONOURED, "")                     \
    X(export_, 0, "export", "NAME[=VALUE],...", "variables of the job", BATCH_HONOURED, "")                  \
    X(chdir, 'D', "chdir", "DIR", "run there on the nodes", BATCH_HONOURED, "")                              \
    X(dependency, 'd', "dependency", "LIST", "start after others: afterok:ID:ID,afterany:ID",                \
      BATCH_HONOURED, "")                                                                                    \
    X(begin, 'b', "begin", "TIME", "not before: now+1hour, 18:00, 2026-11-30T18:00", BATCH_HONOURED, "")     \
    X(nodelist, 'w', "nodelist", "NODES", "not supported", BATCH_REFUSED,                                    \
      "--constraint node=NODE keeps the job on them")                                                        \
    X(exclude, 'x', "exclude", "NODE,...", "not on these nodes", BATCH_HONOURED, "")                         \
    X(constraint, 'C', "constraint", "LABELS", "only nodes with labels: zone=a|b&disk!=hdd", BATCH_HONOURED, \
      "")                                                                                                    \
    X(nice, 0, "nice", "N", "the priority is -N", BATCH_HONOURED, "")                                        \
    X(priority, 0, "priority", "N", "the higher, the earlier: -1000 to 1000", BATCH_HONOURED, "")            \
    X(container, 0, "container", "PATH", "not supported", BATCH_REFUSED, "install it on the nodes")          \
    X(mem, 0, "mem", "SIZE", "memory of each node, in MiB without a unit", BATCH_HONOURED, "")               \
    X(mem_per_cpu, 0, "mem-per-cpu", "SIZE", "of each CPU", BATCH_HONOURED, "")                              \
    X(mem_per_gpu, 0, "mem-per-gpu", "SIZE", "of each GPU", BATCH_HONOURED, "")                              \
    X(tmp, 0, "tmp", "SIZE", NOT_HERE, BATCH_NOTED, "space on disks is not reserved")                        \
    X(cpus_per_gpu, 0, "cpus-per-gpu", "N", "CPUs of each GPU", BATCH_HONOURED, "")                          \
    X(threads_per_core, 0, "threads-per-core", "N", NOT_HERE, BATCH_NOTED,                                   \
      "CPUs are what the nodes say they have")                                                               \
    X(hint, 0, "hint", "TYPE", NOT_HERE, BATCH_NOTED, "CPUs are what the nodes say they have")               \
    X(gpu_bind, 0, "gpu-bind", "HOW", NOT_HERE, BATCH_NOTED, "tasks see what --gpus-per-task says, or all")  \
    X(qos, 'q', "qos", "NAME", NOT_HERE, BATCH_NOTED, "quality of service is not known")                     \
    X(reservation, 0, "reservation", "NAME", NOT_HERE, BATCH_NOTED,                                          \
      "reserved pools are named by --partition")                                                             \
    X(mail_type, 0, "mail-type", "TYPES", NOT_HERE, BATCH_NOTED, "nobody is sent mail")                      \
    X(mail_user, 0, "mail-user", "USER", NOT_HERE, BATCH_NOTED, "nobody is sent mail")                       \
    X(comment, 0, "comment", "TEXT", NOT_HERE, BATCH_NOTED, "it is not kept")

/* and of sbatch alone. */
#define BATCH_TEXTS(X)                                                                                       \
    JOB_TEXTS(X)                                                                                             \
    X(output, 'o', "output", "PATTERN", "with --wait: write what ranks say there", BATCH_HONOURED, "")       \
    X(error, 'e', "error", "PATTERN", "with --wait: the same for stderr", BATCH_HONOURED, "")                \
    X(signal, 0, "signal", "[B:]SIG@SECONDS", "before the time limit", BATCH_HONOURED, "")                   \
    X(wrap, 0, "wrap", "COMMAND", "a line of shell instead of a script", BATCH_HONOURED, "")                 \
    X(array, 'a', "array", "INDEXES", "a task for each index: 0-15%4, 1,3,5-7:2", BATCH_HONOURED, "")        \
    X(input, 'i', "input", "FILE", "not supported", BATCH_REFUSED, "read the file inside of the script")     \
    X(open_mode, 0, "open-mode", "MODE", NOT_HERE, BATCH_NOTED, "output is kept by the controller")

/* X(member, letter, name, help, fate, remark), likewise */
#define JOB_FLAGS(X)                                                                                         \
    X(exclusive, 0, "exclusive", NOT_HERE, BATCH_NOTED, "only the GPUs of a node are the job's own")         \
    X(oversubscribe, 's', "oversubscribe", NOT_HERE, BATCH_NOTED, "GPUs are never shared")                   \
    X(verbose, 'v', "verbose", NOT_HERE, BATCH_NOTED, "it changes nothing")

#define BATCH_FLAGS(X)                                                                                       \
    JOB_FLAGS(X)                                                                                             \
    X(wait, 'W', "wait", "wait for the end, and exit as the job did", BATCH_HONOURED, "")                    \
    X(parsable, 0, "parsable", "print nothing but the id", BATCH_HONOURED, "")                               \
    X(requeue, 0, "requeue", "start again when a node fails (so it is anyway)", BATCH_HONOURED, "")          \
    X(no_requeue, 0, "no-requeue", "do not", BATCH_HONOURED, "")                                             \
    X(hold, 'H', "hold", "wait until gpuctl release ID", BATCH_HONOURED, "")                                 \
    X(get_user_env, 0, "get-user-env", NOT_HERE, BATCH_NOTED, "name variables by --export")                  \
    X(quiet, 'Q', "quiet", NOT_HERE, BATCH_NOTED, "it changes nothing")

#define BATCH_TEXT_MEMBER(member, ...) const char *member;
#define BATCH_FLAG_MEMBER(member, ...) bool member;

/* Borrowed strings; NULL and false: not given. */
struct batch_options {
    BATCH_TEXTS(BATCH_TEXT_MEMBER)
    BATCH_FLAGS(BATCH_FLAG_MEMBER)
};

extern const struct option_row batch_rows[];

struct batch {
    char *name; /* as it was given */
    char *text; /* the script */
    size_t length;
    struct batch_options options;
    struct text_list words; /* that options point into */
};

/* path NULL: the script is --wrap's. Options of the command line win over the script's. ERR_USAGE names file
 * and line. */
bool batch_read(const char *path, const struct batch_options *given, struct batch *ret_batch,
                struct err *err);
/* The same from text in memory. */
bool batch_parse(const char *name, const char *text, size_t length, const struct batch_options *given,
                 struct batch *ret_batch, struct err *err);
void batch_finish(struct batch *batch);

/* Does the text begin like a script? */
bool batch_is_script(const char *text);

/* The job spec that the batch amounts to, its files with it. arguments are the script's; here is the current
 * directory where the nodes share it, or NULL. With ignore, what would be refused is noted. New reference;
 * NULL with ERR_USAGE that names the option. */
json_t *batch_spec(const struct batch *batch, char **arguments, size_t count, const char *here, bool ignore,
                   struct notes *notes, struct err *err);

/* --- size --- */

/* gpus and tasks are totals over all nodes, and the nodes have equal shares of both. A job without GPUs has
 * one node. */
struct batch_size {
    int64_t nodes, gpus, tasks;
    bool slots;       /* no GPU was asked for, but several nodes: the GPUs are one slot for each task */
    int64_t per_task; /* GPUs that a task sees; 0: all of its node */
    char type[LIMIT_NAME_BYTES + 1];
};

/* ERR_USAGE names the option that is wrong, or those that contradict each other. */
bool batch_measure(const struct batch_options *options, struct batch_size *ret_size, struct notes *notes,
                   struct err *err);

/* --- CPUs and memory --- */

/* Adds cpus and memory to the spec, where they follow from the options. ERR_USAGE names the option. */
bool batch_amounts(const struct batch_options *options, const struct batch_size *size, json_t *spec,
                   struct notes *notes, struct err *err);

/* --- arrays --- */

/* Adds the array to the spec, and what Slurm says of it to env. ERR_USAGE names the option. */
bool batch_array(const struct batch_options *options, json_t *spec, json_t *env, struct err *err);

/* --- place --- */

/* Adds to the spec the jobs to follow, hold, priority, nodes to exclude and constraints. Jobs are named as
 * they were, by beginnings of ids: after_fill makes them whole. ERR_USAGE names the option. */
bool batch_place(const struct batch_options *options, json_t *spec, struct notes *notes, struct err *err);

/* --- output --- */

/* Does nothing where neither was given, and for an array. Without --error both streams go into the one file.
 */
bool batch_write_output(struct api *api, const struct batch_options *options, const struct job_view *job,
                        struct err *err);

/* Replaces %j, %J and %A by the job's id, %x by its name, %u by the user's, and %% by %; other letters are
 * refused. The caller frees it; NULL with ERR_USAGE. */
char *batch_output_path(const char *pattern, const char *id, const char *name, struct err *err);

#endif
