/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl clone`: submits a job with the spec of another and some changes, and prints its id. The controller
 * makes the spec, because it alone has the values that are not shown. */
#include <stdint.h>
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

struct clone_options {
    struct option_list set, env;
    int64_t gpus; /* -1: not given */
    const char *name;
};

static const struct option_row rows[] = {
    ROW_LIST(struct clone_options, set, 0, "set", "NAME=VALUE", "change a parameter; see below"),
    ROW_LIST(struct clone_options, env, 'e', "env", "NAME=VALUE", "set a variable of the ranks"),
    ROW_INT(struct clone_options, gpus, 'g', "gpus", "N", "so many GPUs in total", 0, LIMIT_GPUS,
            .absent = NOT_GIVEN, .sent_as = "gpus"),
    ROW_TEXT(struct clone_options, name, 'n', "name", "NAME", "another name", .sent_as = "name"),
    ROW_FORMAT,
    ROWS_END};

/* Puts "lr=0.1" into an object; a later item of the same name wins. */
static bool put_pairs(json_t *body, const char *member, const struct option_list *list, struct err *err)
{
    autojson json_t *pairs = json_object();
    for (size_t i = 0; i < list->count; i++) {
        const char *item = list->items[i];
        size_t length = strcspn(item, "=");
        autofree char *name = xstrndup(item, length);
        if (length == 0 || item[length] == '\0') {
            return err_field(err, ERR_USAGE, member, "write NAME=VALUE", "--%s \"%s\" has no %s", member,
                             item, length == 0 ? "name" : "value");
        }
        if (json_object_set_new(pairs, name, json_string(item + length + 1)) != 0) {
            return err_field(err, ERR_USAGE, member, "write it in UTF-8", "--%s %zu is not UTF-8", member,
                             i + 1);
        }
    }
    if (list->count > 0) {
        json_object_set(body, member, pairs);
    }
    return true;
}

static bool put_words(json_t *body, char **words, size_t count, struct err *err)
{
    autojson json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        if (json_array_append_new(list, json_string(words[i])) != 0) {
            return err_field(err, ERR_USAGE, "arguments", "write it in UTF-8", "argument %zu is not UTF-8",
                             i + 1);
        }
    }
    if (count > 0) {
        json_object_set(body, "arguments", list);
    }
    return true;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct clone_options *options = call->options;
    autojson json_t *body = json_object();
    option_send(rows, options, body);
    if (!put_pairs(body, "set", &options->set, err) || !put_pairs(body, "env", &options->env, err) ||
        !put_words(body, call->rest + 1, call->rest_count - 1, err)) {
        return false;
    }
    autojson json_t *job = api_clone(call->api, call->id, body, NULL, err);
    return job != NULL && answer_member(call, job, "id", err);
}

const struct verb verb_clone = {
    .name = "clone",
    .arguments = "ID [-- ARGUMENT...]",
    .summary = "Submit a job with the spec of another and some changes, and print its id.",
    .details =
        "The new job has the spec of the other, with its bundle, its files and its hidden values, and is "
        "yours. "
        "The other may\n"
        "run or have ended. ARRAY.17 becomes an array of this task alone.\n"
        "--set lr=0.1 replaces the values of lr in the sweep of the job (lr=0.1,0.2 gives it two). A job "
        "without "
        "such a sweep has\n"
        "the value replaced in its command, behind the first word, where it stands as --lr V, --lr=V or "
        "lr=V. A "
        "name that is\n"
        "nowhere, or there more than once, is refused. ARGUMENTs are added at the end of the command.\n"
        "\n"
        "Examples:\n"
        "  gpuctl clone x7k2 --set lr=0.1 --set batch=64\n"
        "  gpuctl clone x7k2 --gpus 8 --env NCCL_DEBUG=INFO -- --epochs 20",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = SIZE_MAX,
    .reach = REACH_CONTROLLER,
    .need = NEED_JOB,
    .options_size = sizeof(struct clone_options),
    .rows = {rows},
    .run = run,
};
