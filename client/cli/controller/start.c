/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the user's own instance. It promises that two starts never race, that running daemons are left
 * alone, and that a start that fails leaves nothing behind but its logs. instance.c knows where the files
 * are. */
#include "client/cli/controller/start.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "client/cli/transport/api.h"
#include "client/cli/controller/daemons.h"
#include "client/cli/transport/instance.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/process.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_client.h"
#include "proto/wire/views.h"

#define READY_POLL_MS 20
#define SHOWN_BYTES   2048 /* of a log after a failure */
#define SHOWN_LINES   8
#define OPTIONS_BYTES 65536

void start_defaults(struct start_options *options)
{
    *options = (struct start_options){.nodes = 1, .idle_exit_ms = DEFAULT_IDLE_EXIT_MS};
}

/* One start. */
struct start {
    const char *state;
    const struct start_options *options;
    struct daemons daemons;
    struct api *api;
    int *pidfds; /* of what this start has started: the controller, then the agents by number; -1: was there,
                    or is not */
    char *failed_log; /* of the program that failed, or NULL */
};

static int *pidfd_of_node(const struct start *start, int64_t number)
{
    return &start->pidfds[1 + number];
}

static void start_finish(struct start *start)
{
    daemons_finish(&start->daemons);
    api_destroy(start->api);
    for (int64_t i = 0; i <= start->options->nodes; i++) {
        if (start->pidfds[i] >= 0) {
            close(start->pidfds[i]);
        }
    }
    free(start->pidfds);
    free(start->failed_log);
}

/* --- the controller --- */

/* Says that the program whose output went to the file has failed. */
static bool failed(struct start *start, char *log, struct err *err, const char *what)
{
    free(start->failed_log);
    start->failed_log = log;
    err_set(err, ERR_IO, "%s", what);
    return err_hint(err, "its output is in %s", log);
}

/* Waits for the endpoint file, the end of the controller, or the end of patience. */
static bool wait_serving(struct start *start, struct err *err)
{
    autoclose int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch < 0 || inotify_add_watch(watch, start->state, IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE) < 0) {
        return err_errno(err, "cannot watch %s", start->state);
    }
    int64_t deadline = clock_boot_ms() + CLIENT_START_MS;
    struct pollfd waited[] = {{.fd = start->pidfds[0], .events = POLLIN}, {.fd = watch, .events = POLLIN}};
    for (;;) {
        autofree char *url = instance_url(start->state);
        int64_t left = deadline - clock_boot_ms();
        if (url != NULL) {
            return true;
        }
        if (left <= 0) {
            return failed(start, instance_file(start->state, "controller.log"), err,
                          "gpuctld does not serve in time");
        }
        if (process_wait(start->pidfds[0], 0)) {
            return failed(start, instance_file(start->state, "controller.log"), err,
                          "gpuctld ended while it was started");
        }
        poll(waited, 2, (int)left);
        char events[4096];
        while (read(watch, events, sizeof events) > 0) {
        }
    }
}

static bool start_controller(struct start *start, struct err *err)
{
    /* agents of a controller that died know its old place only; the shims keep what runs, and the new agents
     * adopt it */
    if (!instance_stop(start->state, 0, err)) {
        return false;
    }
    struct text_list words = daemons_controller_words(&start->daemons);
    autofree char *log = instance_file(start->state, "controller.log");
    autofree char *record = instance_file(start->state, "controller.pid");
    bool good = process_start(words.items, log, record, &start->pidfds[0], err) && wait_serving(start, err);
    text_list_finish(&words);
    return good;
}

/* --- the agents --- */

static bool connect_as(const char *url, const char *token_file, struct api **ret_api, struct err *err)
{
    struct context context = {0};
    if (!file_read(token_file, 4096, &context.token, NULL, err)) {
        return false;
    }
    context.token[strcspn(context.token, "\r\n")] = '\0';
    context.url = xstrdup(url);
    *ret_api = api_create(&context);
    return true;
}

/* Does the token in the file open this controller? It may be of a state that was deleted. */
static bool token_works(const char *url, const char *path)
{
    autoapi struct api *api = NULL;
    if (!connect_as(url, path, &api, NULL)) {
        return false;
    }
    json_t *version = api_get(api, NULL, "/version");
    json_decref(version);
    return version != NULL;
}

static bool make_node_token(struct start *start, const char *url, struct err *err)
{
    autofree char *path = instance_file(start->state, "node.token");
    if (token_works(url, path)) {
        return true;
    }
    autojson json_t *wanted = json_pack("{s:s, s:s}", "role", "node", "owner", "embedded");
    autojson json_t *made = api_ask(start->api, "POST", wanted, err, "/v1/tokens");
    const char *secret = NULL;
    if (made == NULL || !json_need_text(made, "secret", &secret, err)) {
        return false;
    }
    autofree char *line = xprintf("%s\n", secret);
    return file_replace(path, line, strlen(line), 0600, err);
}

static bool start_agent(struct start *start, int64_t number, const char *url, struct err *err)
{
    autofree char *record = instance_node_file(start->state, number, ".pid");
    autofree char *log = instance_node_file(start->state, number, ".log");
    autoclose int running = process_open(record, NULL);
    if (running >= 0) {
        return true;
    }
    struct text_list words = daemons_agent_words(&start->daemons, number, url);
    bool good = process_start(words.items, log, record, pidfd_of_node(start, number), err);
    text_list_finish(&words);
    return good;
}

static bool start_agents(struct start *start, const char *url, struct err *err)
{
    for (int64_t i = 0; i < start->options->nodes; i++) {
        if (!start_agent(start, i, url, err)) {
            return false;
        }
    }
    return true;
}

/* Has the node registered with this controller, and does the controller hear it? */
static bool is_ready(const json_t *nodes, int64_t number)
{
    autofree char *name = xprintf("node%lld", (long long)number);
    size_t i;
    json_t *node;
    json_array_foreach (nodes, i, node) {
        struct node_view view;
        if (!node_view_decode(json_incref(node), &view, NULL)) {
            continue;
        }
        bool ready = strcmp(view.name, name) == 0 && view.heartbeat_age_ms >= 0 &&
                     view.state != NODE_SUSPECT && view.state != NODE_LOST;
        node_view_finish(&view);
        if (ready) {
            return true;
        }
    }
    return false;
}

/* The number of a started node that is not ready; -1 when there is none, -2 with *err when one has ended. */
static int64_t find_unready(struct start *start, struct err *err)
{
    autojson json_t *nodes = api_list(start->api, "/v1/nodes", "nodes", "cursor", LIMIT_NODES_STARTED, err);
    for (int64_t i = 0; i < start->options->nodes; i++) {
        int pidfd = *pidfd_of_node(start, i);
        if (pidfd >= 0 && process_wait(pidfd, 0)) {
            autofree char *what = xprintf("gpuagent of node%lld ended while it was started", (long long)i);
            failed(start, instance_node_file(start->state, i, ".log"), err, what);
            return -2;
        }
        if (pidfd >= 0 && !is_ready(nodes, i)) {
            return i;
        }
    }
    return -1;
}

static bool wait_ready(struct start *start, struct err *err)
{
    int64_t deadline = clock_boot_ms() + CLIENT_START_MS;
    for (;;) {
        int64_t unready = find_unready(start, err);
        if (unready < 0) {
            return unready == -1;
        }
        if (clock_boot_ms() > deadline) {
            autofree char *what = xprintf("node%lld is not READY in time", (long long)unready);
            return failed(start, instance_node_file(start->state, unready, ".log"), err, what);
        }
        process_wait(*pidfd_of_node(start, unready), READY_POLL_MS);
    }
}

/* --- all of it --- */

/* Where the last lines begin. */
static const char *last_lines(const char *bytes, size_t length)
{
    const char *at = bytes + length;
    for (int lines = 0; at > bytes; at--) {
        lines += at[-1] == '\n' && at < bytes + length;
        if (lines == SHOWN_LINES) {
            break;
        }
    }
    return at;
}

static void show_log(const char *path)
{
    char bytes[SHOWN_BYTES + 1];
    autofclose FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    if (fseek(file, -SHOWN_BYTES, SEEK_END) != 0) {
        rewind(file);
    }
    size_t length = fread(bytes, 1, SHOWN_BYTES, file);
    bytes[length] = '\0';
    print_note("the end of %s:", path);
    fputs(last_lines(bytes, length), stderr);
}

static void undo(struct start *start)
{
    for (int64_t i = start->options->nodes; i >= 0; i--) {
        if (start->pidfds[i] >= 0) {
            process_end(start->pidfds[i], CLIENT_TERM_MS);
        }
    }
    if (start->failed_log != NULL) {
        show_log(start->failed_log);
    }
}

static bool bring_up(struct start *start, bool *ret_started, struct err *err)
{
    autofree char *running = instance_url(start->state);
    if (!daemons_find(start->state, start->options, &start->daemons, err)) {
        return false;
    }
    if (running == NULL && !start_controller(start, err)) {
        return false;
    }
    autofree char *url = running != NULL ? give(running) : instance_url(start->state);
    autofree char *token_file = instance_token_file(start->state);
    if (url == NULL) {
        return failed(start, instance_file(start->state, "controller.log"), err,
                      "gpuctld ended while it was started");
    }
    *ret_started = start->pidfds[0] >= 0;
    return connect_as(url, token_file, &start->api, err) && make_node_token(start, url, err) &&
           start_agents(start, url, err) && wait_ready(start, err);
}

/* Keeps the options with which the nodes were started. A folder that cannot be written is noticed elsewhere.
 */
static void keep_options(const char *state, const struct start_options *options)
{
    autofree char *path = instance_file(state, "options");
    autojson json_t *kept =
        json_pack("{s:I, s:s*, s:s*, s:s*}", "cpu_slots", (json_int_t)options->cpu_slots, "devices",
                  options->devices, "gpu_type", options->gpu_type, "python", options->python);
    autofree char *text = json_text(kept);
    file_replace(path, text, strlen(text), 0600, NULL);
}

/* The nodes of a controller that died still have their records. Nobody else can end their jobs, so they are
 * started again, with their former options unless others are given. Returns the JSON that the options borrow
 * from. */
static json_t *recall_nodes(const char *state, struct start_options *options)
{
    autofree char *url = instance_url(state);
    autofree char *path = instance_file(state, "options");
    autofree char *bytes = NULL;
    size_t length;
    int64_t before = instance_nodes(state);
    if (before <= options->nodes) {
        return NULL;
    }
    if (url == NULL) {
        print_note("there were %lld nodes: all of them are started again", (long long)before);
    }
    options->nodes = before;
    json_t *kept =
        file_read(path, OPTIONS_BYTES, &bytes, &length, NULL) ? json_parse(bytes, length, NULL) : NULL;
    if (options->cpu_slots == 0 && options->devices == NULL) {
        json_read_int(kept, "cpu_slots", 0, LIMIT_NODE_DEVICES, &options->cpu_slots, NULL);
        json_read_text(kept, "devices", &options->devices, NULL);
    }
    if (options->gpu_type == NULL) {
        json_read_text(kept, "gpu_type", &options->gpu_type, NULL);
    }
    if (options->python == NULL) {
        json_read_text(kept, "python", &options->python, NULL);
    }
    return kept;
}

bool start_instance(const char *state, const struct start_options *options, bool *ret_started,
                    struct err *err)
{
    autoclose int lock = -1;
    *ret_started = false;
    if (!instance_lock(state, &lock, err)) {
        return false;
    }
    struct start_options all = *options;
    autojson json_t *kept = recall_nodes(state, &all); /* all points into it */
    (void)kept;
    options = &all;
    struct start start = {.state = state, .options = options};
    start.pidfds = xzalloc((size_t)(options->nodes + 1) * sizeof start.pidfds[0]);
    for (int64_t i = 0; i <= options->nodes; i++) {
        start.pidfds[i] = -1;
    }
    bool good = bring_up(&start, ret_started, err);
    if (!good) {
        undo(&start);
    } else if (*ret_started) {
        keep_options(state, options);
    }
    start_finish(&start);
    return good;
}
