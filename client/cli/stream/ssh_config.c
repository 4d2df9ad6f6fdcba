/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl ssh-config`: settings with which ssh, and what uses it, reach running jobs as hosts. With --write
 * they are kept in a folder of gpuctl's, which ~/.ssh/config then includes. ssh asks gpuctl there for the
 * block of a job that it is to reach, because only the node knows the account to log in with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/frame/verb.h"
#include "client/cli/show/print.h"
#include "client/cli/stream/ssh_host.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_client.h"
#include "proto/states.h"

struct config_options {
    bool write;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct config_options, write, 0, "write", "have ~/.ssh/config know all jobs as JOB" SSH_DOMAIN),
    ROWS_END};

/* --- one block ------------------------------------------------------------------------------------------ */

static bool append_block(const struct call *call, const struct ssh_host *host, const char *name,
                         struct text *out, struct err *err)
{
    struct ssh_setting settings[SSH_SETTINGS];
    if (!ssh_host_settings(call, host, settings, err)) {
        return false;
    }
    text_printf(out, "Host %s\n", name);
    for (size_t i = 0; settings[i].name != NULL; i++) {
        text_printf(out, "    %s %s\n", settings[i].name, settings[i].value);
    }
    ssh_settings_finish(settings);
    return true;
}

static bool write_block(const char *folder, const char *name, const struct text *block, struct err *err)
{
    autofree char *path = xprintf("%s/hosts/%s", folder, name);
    return file_replace(path, block->bytes, block->length, 0600, err);
}

/* Of "x7k2", "x7k2.3" or "x7k2.gpuctl". ssh matches the name as it was written, so the block has that name.
 */
static bool take_word(const struct call *call, const char *word, const char *folder, bool *ret_refused,
                      struct err *err)
{
    autossh_host struct ssh_host host = {0};
    autotext struct text block = {0};
    size_t domain = strlen(SSH_DOMAIN), length = strlen(word);
    bool as_host = length > domain && strcmp(word + length - domain, SSH_DOMAIN) == 0;
    autofree char *name = xprintf("%s%s", word, as_host ? "" : SSH_DOMAIN);
    if (!ssh_host_resolve(call->api, word, 0, &host, err) ||
        !ssh_host_look(call->api, &host, ret_refused, err)) {
        return false;
    }
    if (*ret_refused) {
        return true;
    }
    if (!append_block(call, &host, name, &block, err)) {
        return false;
    }
    return folder != NULL ? write_block(folder, name, &block, err) : fputs(block.bytes, stdout) >= 0;
}

/* --- which jobs ----------------------------------------------------------------------------------------- */

/* The person's own jobs that run. New reference. */
static json_t *running(struct api *api, struct err *err)
{
    autotext struct text path = {0};
    autojson json_t *session = api_get(api, err, "/v1/session");
    if (session == NULL) {
        return NULL;
    }
    text_printf(&path, "/v1/jobs?limit=%d&state=%s", LIMIT_LIST_ROWS, job_state_text(JOB_RUNNING));
    api_query(&path, "owner", json_string_of(session, "owner"));
    return api_list(api, path.bytes, "jobs", "cursor", CLIENT_SSH_HOSTS, err);
}

/* A job that has just ended is left out, and so is one that ssh cannot reach, with its reason. */
static bool take_running(const struct call *call, const char *folder, struct err *err)
{
    autojson json_t *jobs = running(call->api, err);
    size_t i, count = 0;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        struct err problem = {0};
        bool refused = false;
        if (json_is_object(json_object_get(job, "array"))) {
            continue;
        }
        if (!take_word(call, print_text_of(job, "id"), folder, &refused, &problem)) {
            print_error(&problem);
        } else {
            count += !refused;
        }
    }
    if (jobs != NULL && folder == NULL && count == 0) {
        print_note("none of your jobs runs; gpuctl ssh-config --write makes each known as soon as it does");
    }
    return jobs != NULL;
}

static bool take_named(const struct call *call, const char *folder, int *ret_exit, struct err *err)
{
    for (size_t i = 0; i < call->rest_count; i++) {
        bool refused = false;
        if (!take_word(call, call->rest[i], folder, &refused, err)) {
            return false;
        }
        *ret_exit = refused ? EXIT_OWN_FAILURE : *ret_exit;
    }
    return true;
}

/* --- the files ------------------------------------------------------------------------------------------ */

/* Blocks of jobs that have ended are not looked for one by one: when there are many, all go, and ssh has
 * those that it wants made again. */
static bool make_hosts(const char *folder, bool anew, struct err *err)
{
    autofree char *hosts = xprintf("%s/hosts", folder);
    autonames struct file_names names = {0};
    bool there = file_list(hosts, &names, NULL);
    if (there && (anew || names.count >= CLIENT_SSH_HOSTS) && !file_remove_tree(hosts, err)) {
        return false;
    }
    return file_make_directories(hosts, 0700, err);
}

static bool write_main(const struct call *call, const char *folder, struct err *err)
{
    autotext struct text program = {0}, config = {0};
    autofree char *path = xprintf("%s/config", folder);
    if (!ssh_append_program(call, &program, err)) {
        return false;
    }
    text_printf(&config,
                "# Of gpuctl ssh-config --write. Names with a quote are left out: OpenSSH before 9.6 may "
                "give them to a\n"
                "# shell.\n"
                "Match originalhost \"*" SSH_DOMAIN ",!*'*\" exec \"%s ssh-config --write '%%n'\"\n"
                "Include \"%s/hosts/*\"\n",
                program.bytes, folder);
    return file_replace(path, config.bytes, config.length, 0600, err);
}

/* Puts the line that includes gpuctl's file at the top, where no Host of the person's is above it. */
static bool include_main(const char *folder, struct err *err)
{
    const char *home = getenv("HOME");
    autofree char *own = xprintf("%s/.ssh", home != NULL ? home : "");
    autofree char *named = xprintf("%s/config", own);
    autofree char *real = realpath(named, NULL); /* it may be a link into a folder with such files */
    const char *path = real != NULL ? real : named;
    autofree char *line = xprintf("Include \"%s/config\"\n", folder);
    autofree char *before = NULL;
    struct stat status = {.st_mode = 0600};
    if (!file_make_directories(own, 0700, err)) {
        return false;
    }
    if (stat(path, &status) == 0 && !file_read(path, CLIENT_SSH_CONFIG_BYTES, &before, NULL, err)) {
        return false;
    }
    if (before != NULL && strstr(before, line) != NULL) {
        return true;
    }
    autofree char *after = xprintf("%s\n%s", line, before != NULL ? before : "");
    if (!file_replace(path, after, strlen(after), status.st_mode & 0777, err)) {
        return false;
    }
    print_note("%s includes %s/config now: ssh, scp, rsync, sftp and editors reach running jobs as "
               "JOB" SSH_DOMAIN,
               path, folder);
    return true;
}

/* ssh reads no configuration at all in which a quote is open. */
static bool check_folder(const char *folder, struct err *err)
{
    return strpbrk(folder, "\"\\\n") == NULL ||
           err_field(err, ERR_USAGE, "XDG_STATE_HOME", "name a folder without quotes and backslashes",
                     "the configuration of ssh cannot name %s", folder);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct config_options *options = call->options;
    autofree char *folder = ssh_folder(err);
    bool all = call->rest_count == 0;
    if (folder == NULL ||
        (options->write && (!check_folder(folder, err) || !make_hosts(folder, all, err) ||
                            !write_main(call, folder, err) || !include_main(folder, err)))) {
        return false;
    }
    const char *into = options->write ? folder : NULL;
    return all ? take_running(call, into, err) : take_named(call, into, ret_exit, err);
}

const struct verb verb_ssh_config = {
    .name = "ssh-config",
    .arguments = "[JOB[.RANK]...]",
    .summary = "Settings with which ssh, scp, rsync, sftp and editors reach running jobs.",
    .details =
        "Prints a Host block for each of the jobs, or for all of your own that run. --write is wanted once:\n"
        "it keeps the blocks below the state folder, and adds one line to ~/.ssh/config. From then on\n"
        "JOB" SSH_DOMAIN " is a host, of jobs that start later, too: ssh asks gpuctl. JOB.RANK" SSH_DOMAIN
        " is another rank.\n"
        "VS Code lists the hosts of blocks that are there: --write again makes them of the jobs that run.\n"
        "\n"
        "Examples:\n"
        "  gpuctl ssh-config --write\n"
        "  scp x7k2" SSH_DOMAIN ":model.pt .\n"
        "  rsync -a src/ x7k2" SSH_DOMAIN ":src/\n"
        "  ssh -L 6006:localhost:6006 x7k2" SSH_DOMAIN,
    .argument = ARGUMENT_JOB,
    .most = SIZE_MAX,
    .reach = REACH_CONTROLLER,
    .need = NEED_API,
    .own_failure = EXIT_OWN_FAILURE,
    .options_size = sizeof(struct config_options),
    .rows = {rows},
    .run = run,
};
