/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl nodes add`: makes machines nodes over ssh, several at a time. It copies the agent there, runs a
 * script that joins, and waits until the controller knows the node. It promises that ssh asks nobody
 * anything, that no token shows in a list of processes, and that each machine's failure is one line. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/controller/connect.h"
#include "client/cli/cluster/nodes_join.h"
#include "client/cli/show/print.h"
#include "client/cli/controller/remote.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

#define AGENT_DEB "gpuctl-agent_*.deb"
#define CLI_DEB   "gpuctl_*.deb" /* that the agent's package needs */

#define KNOWN_POLL_MS 100

struct add_options {
    struct join_options join; /* first, as join_rows have it */
    struct option_list packages, settings;
    const char *name;
};

struct host {
    const char *address; /* user@host */
    struct remote remote;
    struct text output, errors;
    char *script; /* owned */
    bool failed;
};

/* Of one call. */
struct addition {
    const struct add_options *options;
    struct host *hosts;
    size_t count;
    struct text_list files; /* that are copied */
    bool packaged;          /* they are packages; else the programs */
    char *folder;           /* there; owned */
};

static const struct option_row add_rows[] = {
    ROW_LIST(struct add_options, packages, 0, "package", "FILE",
             "a .deb to install there; may be repeated (default: " CLI_DEB " and " AGENT_DEB
             " of this folder; else the programs are copied)"),
    ROW_TEXT(struct add_options, name, 0, "name", "NAME", "of the node (default: its host name)"),
    ROW_LIST(struct add_options, settings, 0, "set", "NAME=VALUE",
             "a setting of its agent, such as cpu-slots=4; may be repeated"),
    ROWS_END};
/* --- the files --- */

/* The one file of that pattern here, or none. */
static bool add_only(struct addition *addition, const char *pattern, struct err *err)
{
    glob_t found;
    bool good = true;
    if (glob(pattern, 0, NULL, &found) == 0) {
        if (found.gl_pathc > 1) {
            good = err_field(err, ERR_USAGE, "package", "name the ones to install with --package",
                             "there is more than one %s here", pattern);
        } else if (found.gl_pathc == 1) {
            text_list_add(&addition->files, xstrdup(found.gl_pathv[0]));
        }
    }
    globfree(&found);
    return good;
}

static bool find_files(struct addition *addition, struct err *err)
{
    const struct option_list *given = &addition->options->packages;
    for (size_t i = 0; i < given->count; i++) {
        if (access(given->items[i], R_OK) != 0) {
            return err_errno(err, "cannot read the package %s", given->items[i]);
        }
        text_list_add(&addition->files, xstrdup(given->items[i]));
    }
    if (given->count == 0 && (!add_only(addition, CLI_DEB, err) || !add_only(addition, AGENT_DEB, err))) {
        return false;
    }
    addition->packaged = addition->files.count > 0;
    for (int i = 0; i < 2 && !addition->packaged; i++) {
        char *program = file_find_program(i == 0 ? "gpuagent" : "gpushim", err);
        if (program == NULL) {
            return err_hint(err, "name the agent's package with --package");
        }
        text_list_add(&addition->files, program);
    }
    return true;
}

/* --- the script --- */

/* Packages are installed by root. Programs go into the folder of the user who logs in, and are started by
 * hand: no unit knows them. */
static const char begin_packaged[] =
    "as_root=\n"
    "[ \"$(id -u)\" = 0 ] || as_root='sudo -n'\n"
    "$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \"$dir\"/*.deb >\"$dir/log\" 2>&1 || "
    "{\n"
    "    grep -E '^(E|dpkg):' \"$dir/log\" >&2 || tail -n 2 \"$dir/log\" >&2\n"
    "    exit 1\n"
    "}\n"
    "agent=gpuagent\n";
static const char begin_programs[] = "as_root=\n"
                                     "place=\"$HOME/.local/lib/gpuctl\"\n"
                                     "[ \"$(id -u)\" != 0 ] || place=/usr/local/lib/gpuctl\n"
                                     "mkdir -p \"$place\"\n"
                                     "for program in gpuagent gpushim; do\n"
                                     "    cp \"$dir/$program\" \"$place/$program.new\"\n"
                                     "    chmod 755 \"$place/$program.new\"\n"
                                     "    mv -f \"$place/$program.new\" \"$place/$program\"\n"
                                     "done\n"
                                     "agent=\"$place/gpuagent\"\n";

static char *make_script(const struct addition *addition, const char *url, const struct join_token_view *view)
{
    const struct add_options *options = addition->options;
    autotext struct text script = {0};
    text_printf(&script, "set -e\ndir=%s\ntrap 'rm -rf \"$dir\"' EXIT\n", addition->folder);
    text_append(&script, addition->packaged ? begin_packaged : begin_programs);
    text_printf(&script, "printf '%%s\\n' '%s' | $as_root \"$agent\" join ", view->token);
    text_append_shell_word(&script, url);
    text_append(&script, " --token -");
    join_append_trust(url, view, &script);
    text_append(&script, addition->packaged ? "" : " --no-start");
    if (options->name != NULL) {
        text_append(&script, " --name ");
        text_append_shell_word(&script, options->name);
    }
    for (size_t i = 0; i < options->settings.count; i++) {
        autofree char *word = xprintf("--%s", options->settings.items[i]);
        text_append(&script, " ");
        text_append_shell_word(&script, word);
    }
    text_append(&script, "\n");
    if (!addition->packaged) {
        text_append(&script, "setsid -f \"$agent\" >>\"$place/agent.log\" 2>&1 </dev/null\n");
    }
    return text_take(&script);
}

/* --- on each machine --- */

/* The last line that says something, which is where ssh and gpuagent say why. */
static const char *last_line(struct text *text)
{
    if (text->length == 0) {
        return "it says nothing of why";
    }
    while (text->length > 0 && strchr(" \r\n", text->bytes[text->length - 1]) != NULL) {
        text->bytes[--text->length] = '\0';
    }
    char *line = strrchr(text->bytes, '\n');
    /* the remedy of our own programs is indented, below what is wrong */
    while (line != NULL && line[1] == ' ' && line > text->bytes) {
        *line = '\0';
        line = strrchr(text->bytes, '\n');
    }
    return line != NULL ? line + 1 : text->bytes;
}

static const char *remedy(const char *why)
{
    static const struct {
        const char *part, *remedy;
    } known[] = {
        {"Host key verification failed", "; connect once by hand with ssh, and accept its key"},
        {"Permission denied", "; see that ssh logs in there without a password"},
        {"a password is required", "; log in as root, or allow sudo without a password"},
        {"does not match system", "; build the package for that architecture"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strstr(why, known[i].part) != NULL) {
            return known[i].remedy;
        }
    }
    return "";
}

static void fail(struct host *host, const char *why)
{
    autofree char *shown = xstrdup(why);
    print_disarm(shown);
    print_note("%s: %s%s", host->address, shown, remedy(shown));
    host->failed = true;
}

enum step { STEP_FOLDER, STEP_COPY, STEP_JOIN };

/* The command line of one step; the caller finishes the list. */
static struct text_list words_of(const struct addition *addition, const struct host *host, enum step step)
{
    const char *const begin[] = {
        step == STEP_COPY ? "scp" : "ssh",       "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
        step == STEP_COPY ? "-q" : host->address};
    struct text_list words = {0};
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++) {
        text_list_add(&words, xstrdup(begin[i]));
    }
    for (size_t i = 0; step == STEP_COPY && i < addition->files.count; i++) {
        text_list_add(&words, xstrdup(addition->files.items[i]));
    }
    text_list_add(&words, step == STEP_COPY     ? xprintf("%s:%s/", host->address, addition->folder)
                          : step == STEP_FOLDER ? xprintf("mkdir -m 700 %s", addition->folder)
                                                : xstrdup("sh -s"));
    return words;
}

static void run_step(const struct addition *addition, enum step step)
{
    for (size_t i = 0; i < addition->count; i++) {
        struct host *host = &addition->hosts[i];
        struct err err;
        struct text_list words = words_of(addition, host, step);
        if (!host->failed &&
            !remote_start(words.items, step == STEP_JOIN ? host->script : NULL, &host->remote, &err)) {
            fail(host, err.text);
        }
        text_list_finish(&words);
    }
    for (size_t i = 0; i < addition->count; i++) {
        struct host *host = &addition->hosts[i];
        if (host->failed) {
            continue;
        }
        text_clear(&host->output);
        text_clear(&host->errors);
        if (remote_wait(&host->remote, &host->output, &host->errors) != 0) {
            fail(host, last_line(&host->errors));
        }
    }
}

/* The node's name, from what `gpuagent join` says: "joined URL as NAME", and that its agent runs. The
 * caller's; NULL: the agent was not started. */
static char *started_name(const struct addition *addition, const struct host *host)
{
    const char *said = host->output.bytes != NULL ? host->output.bytes : "";
    size_t line = strcspn(said, "\n");
    if (addition->packaged && strstr(said, "\nthe agent is started") == NULL) {
        return NULL;
    }
    const char *name = memmem(said, line, " as ", 4);
    return name != NULL ? xstrndup(name + 4, (size_t)(said + line - name) - 4) : NULL;
}

/* Agents register a moment after they are started: what is typed next may name the node. */
static void wait_known(const struct addition *addition, struct api *api)
{
    int64_t deadline = clock_boot_ms() + CLIENT_START_MS;
    for (size_t i = 0; i < addition->count; i++) {
        struct host *host = &addition->hosts[i];
        autofree char *name = host->failed ? NULL : started_name(addition, host);
        for (bool known = name == NULL; !known && !host->failed;) {
            struct err err;
            autojson json_t *node = api_get(api, &err, "/v1/nodes/%s", name);
            known = node != NULL;
            if (!known && clock_boot_ms() > deadline) {
                autofree char *why = xprintf("joined as %s, but its agent is not heard: %s; see "
                                             "journalctl -u gpuagent there",
                                             name, err.text);
                fail(host, why);
            } else if (!known) {
                api_pause(api, KNOWN_POLL_MS);
            }
        }
    }
}

static void tell(const struct addition *addition)
{
    for (size_t i = 0; i < addition->count; i++) {
        struct host *host = &addition->hosts[i];
        if (host->failed) {
            continue;
        }
        autofree char *shown = xstrndup(host->output.bytes != NULL ? host->output.bytes : "",
                                        strcspn(host->output.bytes != NULL ? host->output.bytes : "", "\n"));
        print_disarm(shown);
        print_note("%s: %s%s", host->address, shown,
                   addition->packaged ? "" : "; it will not start by itself after a reboot: packages do");
    }
}

/* --- all of it --- */

static bool check_hosts(const struct call *call, const struct add_options *options, struct err *err)
{
    for (size_t i = 0; i < call->rest_count; i++) {
        if (call->rest[i][0] == '-' || call->rest[i][0] == '\0') {
            return err_field(err, ERR_USAGE, "HOST", "write user@host", "\"%s\" is not a host",
                             call->rest[i]);
        }
    }
    if (options->name != NULL && call->rest_count > 1) {
        return err_field(err, ERR_USAGE, "name", "leave it out: each takes its host name",
                         "--name is for one machine");
    }
    return true;
}

static bool make_scripts(struct addition *addition, struct api *api, struct err *err)
{
    for (size_t i = 0; i < addition->count; i++) {
        struct join_token_view view;
        if (!join_make_token(api, &addition->options->join, &view, err)) {
            return false;
        }
        autofree char *url = join_url(api, &view);
        addition->hosts[i].script = make_script(addition, url, &view);
        join_token_view_finish(&view);
    }
    return true;
}

static void finish(struct addition *addition)
{
    for (size_t i = 0; i < addition->count; i++) {
        text_finish(&addition->hosts[i].output);
        text_finish(&addition->hosts[i].errors);
        free(addition->hosts[i].script);
    }
    text_list_finish(&addition->files);
    free(addition->hosts);
    free(addition->folder);
}

static bool add_run(const struct call *call, int *ret_exit, struct err *err)
{
    autoapi struct api *api = NULL;
    char id[ID_LENGTH + 1];
    struct addition addition = {.options = call->options, .count = call->rest_count};
    addition.hosts = xzalloc(call->rest_count * sizeof addition.hosts[0]);
    for (size_t i = 0; i < call->rest_count; i++) {
        addition.hosts[i].address = call->rest[i];
    }
    random_id(id);
    addition.folder = xprintf("/tmp/gpuctl-join-%s", id);
    bool good = check_hosts(call, call->options, err) && find_files(&addition, err) &&
                connect_controller(call, false, &api, err) && make_scripts(&addition, api, err);
    if (good) {
        run_step(&addition, STEP_FOLDER);
        run_step(&addition, STEP_COPY);
        run_step(&addition, STEP_JOIN);
        wait_known(&addition, api);
        tell(&addition);
    }
    for (size_t i = 0; good && i < addition.count; i++) {
        *ret_exit = addition.hosts[i].failed ? 1 : *ret_exit;
    }
    finish(&addition);
    return good;
}

const struct verb verb_nodes_add = {
    .name = "add",
    .arguments = "USER@HOST...",
    .summary = "Make machines nodes over ssh: copy the agent there, and have it join.",
    .details =
        "ssh asks nothing: it must log in by key, to a host that it knows. Packages need root there, or sudo "
        "without a password.",
    .least = 1,
    .most = LIMIT_NODES_ADDED,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct add_options),
    .rows = {add_rows, join_rows},
    .run = add_run,
};
