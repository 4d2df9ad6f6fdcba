/* SPDX-License-Identifier: Apache-2.0 */
/* A verb of gpuctl: a row with its name, its help, its options and its function. Parsing, --help and
 * completion use the same rows. */
#ifndef CLI_VERB_H
#define CLI_VERB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/cli/show/print.h"
#include "proto/base/err.h"
#include "proto/base/settings/options.h"
#include "proto/base/text/text.h"

/* Room for "ID.TASK". */
#define RESOLVED_BYTES (ID_LENGTH + sizeof ".1000000")

#define NOT_GIVEN (-1) /* a number that the command line does not have, where 0 would be one */

#define EXIT_OWN_FAILURE 125 /* of `run` and `wait`, where 1..124 may be the job's own */

/* The kinds of positional arguments; completion offers them. */
enum argument_kind {
    ARGUMENT_NONE,
    ARGUMENT_JOB,
    ARGUMENT_NODE,
    ARGUMENT_COMMAND,
    ARGUMENT_FILE,
    ARGUMENT_SHELL
};

/* How far a verb reaches: it decides which of the common options the verb takes. */
enum reach { REACH_NOTHING, REACH_STATE, REACH_CONTROLLER };

/* The preparation before the verb's own function is called. */
enum need {
    NEED_NOTHING,
    NEED_API, /* the controller of the call */
    NEED_JOB, /* that, and the job that the first argument names, if there is one */
};

/* Options that verbs share. All strings are borrowed from argv. */
struct common {
    bool help;
    const char *url;
    const char *context; /* the name of a saved one */
    const char *token_file;
    const char *cacert;
    const char *state;
    bool insecure_plain_http;
    const char *format; /* of -o */
    bool quiet, watch;
};

/* An option of a verb. Rows are constant: the place of the value is an offset, in the verb's own struct or in
 * struct common. A list of rows ends with ROWS_END. */
struct option_row {
    struct option_spec spec; /* without its target */
    size_t offset;
    bool is_common;
    int64_t absent;          /* the value of a number that is not given */
    const char *absent_text; /* the same of a text, or NULL */
    const char *sent_as;     /* the member of a request that takes the value; or NULL */
};

/* Behind the last argument other members may be set: "the help", .absent = -1. */
#define ROW(struct_, member_, kind_, letter_, name_, value_, ...)                                            \
    {                                                                                                        \
        .offset = offsetof(struct_, member_), .spec.kind = (kind_), .spec.letter = (letter_),                \
        .spec.name = (name_), .spec.value_name = (value_), .spec.help = __VA_ARGS__                          \
    }
#define ROW_FLAG(struct_, member_, letter_, name_, ...)                                                      \
    ROW(struct_, member_, OPTION_FLAG, letter_, name_, NULL, __VA_ARGS__)
#define ROW_TEXT(struct_, member_, letter_, name_, value_, ...)                                              \
    ROW(struct_, member_, OPTION_TEXT, letter_, name_, value_, __VA_ARGS__)
#define ROW_CHOICE(struct_, member_, letter_, name_, value_, help_, ...)                                     \
    ROW_TEXT(struct_, member_, letter_, name_, value_, help_, .spec.choices = __VA_ARGS__)
#define ROW_INT(struct_, member_, letter_, name_, value_, help_, min_, ...)                                  \
    ROW(struct_, member_, OPTION_INT, letter_, name_, value_, help_, .spec.min = (min_),                     \
        .spec.max = __VA_ARGS__)
#define ROW_DURATION(struct_, member_, letter_, name_, ...)                                                  \
    ROW(struct_, member_, OPTION_DURATION, letter_, name_, "DURATION", __VA_ARGS__)
/* One that may be given again and again. */
#define ROW_LIST(struct_, member_, letter_, name_, value_, ...)                                              \
    ROW(struct_, member_, OPTION_LIST, letter_, name_, value_, __VA_ARGS__)
/* -o, -w and -q, which are the same for all verbs. */
#define ROW_FORMAT                                                                                           \
    ROW_CHOICE(struct common, format, 'o', "output", "FORMAT", "how to show it", PRINT_FORMATS,              \
               .is_common = true)
#define ROW_WATCH                                                                                            \
    ROW_FLAG(struct common, watch, 'w', "watch", "show it again when it changes", .is_common = true)
#define ROW_QUIET(help_) ROW_FLAG(struct common, quiet, 'q', "quiet", help_, .is_common = true)
#define ROWS_END                                                                                             \
    {                                                                                                        \
        .spec.name = NULL                                                                                    \
    }

/* The rows of verbs that take -o alone, and of those that take -w and -o. */
extern const struct option_row rows_format[], rows_watched[];

struct option_table {
    struct option_spec *items;
    size_t count;
    struct common *common; /* borrowed */
};

/* One invocation. */
struct call {
    const struct verb *verb;
    const void *options; /* the verb's own struct */
    const struct common *common;
    enum print_format format;
    char **rest; /* positional arguments, borrowed from argv */
    size_t rest_count;
    struct api *api;         /* as the verb's need says */
    char id[RESOLVED_BYTES]; /* of the job, whole */
};

struct verb {
    const char *name;
    const char *arguments; /* of the usage line, or NULL */
    const char *summary;
    const char *details; /* more paragraphs of --help, or NULL */
    enum argument_kind argument;
    size_t least, most; /* positional arguments */
    bool stop_at_positional;
    enum reach reach;
    enum need need;
    int own_failure; /* exit code of every error but a wait's timeout; 0: by the table of proto/errors.h */
    size_t options_size;
    const struct option_row *rows[3]; /* of its options, in up to two lists; ends with NULL */
    const struct listing *listing;    /* of a verb whose function is list_run; or NULL */
    bool (*check)(const struct call *call, struct err *err); /* of the options, before the need; or NULL */
    /* *ret_exit starts as 0. */
    bool (*run)(const struct call *call, int *ret_exit, struct err *err);
    const struct verb *const *nested; /* ends with NULL; then the fields from argument on do not apply */
    /* The nested verb that may be left out before this word; returns NULL where none may. Or NULL. */
    const struct verb *(*choose)(const char *word);
};

/* Members of verbs about one job, about several jobs, about a node, and of verbs that only need the
 * controller. */
#define OF_A_JOB .argument = ARGUMENT_JOB, .least = 1, .most = 1, .reach = REACH_CONTROLLER, .need = NEED_JOB
#define OF_JOBS                                                                                              \
    .argument = ARGUMENT_JOB, .least = 1, .most = SIZE_MAX, .reach = REACH_CONTROLLER, .need = NEED_API
#define OF_A_NODE                                                                                            \
    .argument = ARGUMENT_NODE, .least = 1, .most = 1, .reach = REACH_CONTROLLER, .need = NEED_API
#define OF_THE_CONTROLLER .reach = REACH_CONTROLLER, .need = NEED_API

extern const struct verb verb_up, verb_down, verb_submit, verb_run, verb_ps, verb_get, verb_logs,
    verb_results, verb_metrics, verb_cancel, verb_rm, verb_wait, verb_events, verb_nodes, verb_secret,
    verb_token, verb_version, verb_completion, verb_sbatch, verb_convert, verb_simulate, verb_hold,
    verb_release, verb_update, verb_quotas, verb_shares, verb_pools, verb_explain, verb_plan, verb_preempt,
    verb_admin, verb_login, verb_logout, verb_open, verb_mcp, verb_usage, verb_top, verb_retry, verb_queue,
    verb_gpus, verb_webhooks, verb_audit, verb_ls, verb_cp, verb_exec, verb_attach, verb_debug, verb_ssh,
    verb_ssh_config, verb_port_forward, verb_context, verb_whoami, verb_doctor, verb_clone, verb_notebook,
    verb_schedule;

/* Nested verbs that are in another file than their group. */
extern const struct verb verb_windows, verb_nodes_join_command, verb_nodes_add, verb_nodes_remove,
    verb_retention, verb_store;

/* All verbs in the order of the help; ends with NULL. */
const struct verb *const *verb_all(void);

/* The verb of that name in a list that ends with NULL. NULL with ERR_USAGE, which suggests the nearest. */
const struct verb *verb_find(const struct verb *const *verbs, const char *name, struct err *err);

/* The rows that may stand before the verb: the common ones. */
void verb_describe_common(struct common *common, struct option_table *ret_table);

/* Whether it takes those of them that were given; the error names one that it does not. */
bool verb_takes(const struct verb *verb, const struct common *common, const char *path, struct err *err);

/* Are the values that a request will carry UTF-8? */
bool verb_can_send(const struct verb *verb, const void *options, struct err *err);

/* The whole option table of a verb: its own rows, then the common ones. Targets are in *options and *common.
 */
void verb_describe(const struct verb *verb, void *options, struct common *common,
                   struct option_table *ret_table);

/* Sets the values of options that are not given. */
void option_rows_default(const struct option_row *rows, void *options);
/* Adds the values that are given, of options that a request has as members, to its body. */
void option_send(const struct option_row *rows, const void *options, json_t *body);
/* Adds the rows for values in *options, and sets the values of options that are not given. */
void option_table_add(struct option_table *table, const struct option_row *rows, void *options);
/* Frees the table and the lists that it has filled. */
void option_table_finish(struct option_table *table);

/* Writes --help of a verb; path is "gpuctl nodes drain". */
void verb_help(FILE *out, const struct verb *verb, const char *path);

#endif
