/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl ssh`: the ssh of this machine, connected with an sshd beside a rank; --stdio is that connection,
 * which ssh starts as its ProxyCommand. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/frame/verb.h"
#include "client/cli/stream/session.h"
#include "client/cli/stream/ssh_host.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

struct ssh_options {
    bool stdio;
    int64_t rank;
};

static const struct option_row rows[] = {
    ROW_INT(struct ssh_options, rank, 0, "rank", "N", "the rank beside which it runs (default: 0)", 0,
            LIMIT_GPUS - 1),
    ROW_FLAG(struct ssh_options, stdio, 0, "stdio", "be the connection, as a ProxyCommand of ssh"), ROWS_END};

/* The words behind the job. */
static size_t command_from(const struct call *call)
{
    return call->rest_count > 1 && strcmp(call->rest[1], "--") == 0 ? 2 : 1;
}

static bool check(const struct call *call, struct err *err)
{
    const struct ssh_options *options = call->options;
    if (call->rest_count > 1 && call->rest[1][0] == '-' && strcmp(call->rest[1], "--") != 0) {
        err_set(err, ERR_USAGE, "\"%s\" stands behind the job", call->rest[1]);
        return err_hint(err, "gpuctl ssh JOB -- COMMAND; options of ssh itself: gpuctl ssh-config --write, "
                             "then ssh OPTIONS JOB" SSH_DOMAIN);
    }
    return !options->stdio || call->rest_count == 1 ||
           err_set(err, ERR_USAGE, "--stdio takes no command: ssh sends it");
}

static bool serve(const struct call *call, const struct ssh_host *host, int *ret_exit, struct err *err)
{
    autofree char *key = ssh_public_key(err);
    if (key == NULL) {
        return false;
    }
    autojson json_t *command = ssh_host_serve(key);
    const struct session_request request = {
        .job_id = host->id, .rank = host->rank, .command = command, .input = true};
    return session_run(call->api, &request, ret_exit, err);
}

static void add_words(const struct call *call, const struct ssh_host *host,
                      const struct ssh_setting settings[SSH_SETTINGS], struct text_list *words)
{
    text_list_add(words, xstrdup("ssh"));
    for (size_t i = 0; settings[i].name != NULL; i++) {
        text_list_add(words, xstrdup("-o"));
        text_list_add(words, xprintf("%s=%s", settings[i].name, settings[i].value));
    }
    text_list_add(words, ssh_host_name(host));
    for (size_t i = command_from(call); i < call->rest_count; i++) {
        text_list_add(words, xstrdup(call->rest[i]));
    }
}

/* Becomes ssh. */
static bool connect_ssh(const struct call *call, const struct ssh_host *host, struct err *err)
{
    struct ssh_setting settings[SSH_SETTINGS];
    struct text_list words = {0};
    if (!ssh_host_settings(call, host, settings, err)) {
        return false;
    }
    add_words(call, host, settings, &words);
    autofree char **argv = xzalloc((words.count + 1) * sizeof *argv);
    memcpy(argv, words.items, words.count * sizeof *argv);
    execvp(argv[0], argv);
    err_errno(err, "cannot start ssh");
    err_hint(err, "install openssh-client on this machine, or use gpuctl exec -it");
    ssh_settings_finish(settings);
    text_list_finish(&words);
    return false;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct ssh_options *options = call->options;
    autossh_host struct ssh_host host = {0};
    bool refused = false;
    if (!ssh_host_resolve(call->api, call->rest[0], options->rank, &host, err)) {
        return false;
    }
    if (options->stdio) {
        return serve(call, &host, ret_exit, err);
    }
    if (!ssh_host_look(call->api, &host, &refused, err)) {
        return false;
    }
    *ret_exit = EXIT_OWN_FAILURE;
    return refused || connect_ssh(call, &host, err);
}

const struct verb verb_ssh = {
    .name = "ssh",
    .arguments = "JOB[.RANK] [--] [COMMAND [ARGUMENT]...]",
    .summary = "Log in beside a rank of a running job with ssh.",
    .details =
        "It is the ssh of this machine, and the sshd of the rank's node, which need not run there: gpuctl\n"
        "starts it for this connection alone. A session has the rank's user, environment, folder and\n"
        "limits, and ends with the job at the latest. It exits as ssh does: with the command's code, and\n"
        "with 255 when the connection failed; with 125 when gpuctl itself failed. Words of a command are\n"
        "joined by spaces, and read by the shell of the account. For scp, rsync, sftp and editors see\n"
        "gpuctl ssh-config. Options stand before JOB.\n"
        "\n"
        "Examples:\n"
        "  gpuctl ssh x7k2\n"
        "  gpuctl ssh x7k2.3 -- nvidia-smi          beside rank 3",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = SIZE_MAX,
    .stop_at_positional = true,
    .reach = REACH_CONTROLLER,
    .need = NEED_API,
    .own_failure = EXIT_OWN_FAILURE,
    .options_size = sizeof(struct ssh_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
