/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the command lines of gpuctld and gpuagent in the user's own instance. It promises that two nodes
 * never share a GPU or a folder, and that the run folder is as old as the state, so that attempt ids of a
 * deleted state are not mistaken for ours. start.c starts the daemons. */
#include "client/cli/controller/daemons.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/transport/instance.h"
#include "client/cli/transport/process.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/settings/settings.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define LIST_BYTES (1024 * 1024) /* 1,024 devices of 200 bytes are a fifth of it */

void daemons_divide(int64_t count, int64_t nodes, int64_t number, int64_t *ret_first, int64_t *ret_count)
{
    *ret_first = count * number / nodes;
    *ret_count = count * (number + 1) / nodes - *ret_first;
}

/* --- devices --- */

static void read_named_devices(struct daemons *daemons, const char *list)
{
    if (strcmp(list, "none") == 0) {
        return;
    }
    for (const char *at = list; *at != '\0'; at += *at == ',') {
        size_t length = strcspn(at, ",");
        text_list_add(&daemons->devices, xstrndup(at, length));
        at += length;
    }
}

/* Asks the agent which GPUs there are. One that cannot tell has none. */
static void find_devices(struct daemons *daemons)
{
    char option[] = "--list-devices";
    char *argv[] = {daemons->agent, option, NULL};
    autofree char *listed = process_output(argv, LIST_BYTES);
    autojson json_t *devices = listed != NULL ? json_parse(listed, strlen(listed), NULL) : NULL;
    size_t i;
    json_t *device;
    json_array_foreach (devices, i, device) {
        int64_t index = (int64_t)i;
        if (json_read_int(device, "index", 0, LIMIT_NODE_DEVICES, &index, NULL)) {
            text_list_add(&daemons->devices, xprintf("%lld", (long long)index));
        }
    }
}

static bool choose_devices(struct daemons *daemons, struct err *err)
{
    const struct start_options *options = daemons->options;
    if (options->devices != NULL) {
        read_named_devices(daemons, options->devices);
    } else if (options->cpu_slots == 0) {
        find_devices(daemons);
    }
    if (daemons->devices.count > 0 && (int64_t)daemons->devices.count < options->nodes) {
        return err_field(err, ERR_USAGE, "nodes", "ask for fewer nodes, or for CPU slots with --devices none",
                         "%lld GPU%s cannot be divided between %lld nodes", (long long)daemons->devices.count,
                         daemons->devices.count == 1 ? "" : "s", (long long)options->nodes);
    }
    return true;
}

/* --- the run folder --- */

static bool own_folder(const char *path, struct err *err)
{
    struct stat status;
    if (!file_make_directories(path, 0700, err)) {
        return false;
    }
    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
        (status.st_mode & 022) != 0) {
        return err_set(err, ERR_IO, "%s is not a folder of yours alone", path);
    }
    return true;
}

/* A name that is drawn with the state and goes with it; the caller frees it. */
static char *state_id(const char *state, struct err *err)
{
    autofree char *folder = instance_file(state, "controller");
    autofree char *path = instance_file(state, "controller/run.id");
    autofree char *known = NULL;
    if (file_read(path, ID_LENGTH, &known, NULL, NULL) && text_is_id(known)) {
        return give(known);
    }
    char id[ID_LENGTH + 1];
    random_id(id);
    bool kept = file_make_directories(folder, 0700, err) && file_replace(path, id, ID_LENGTH, 0600, err);
    return kept ? xstrdup(id) : NULL;
}

static bool make_run_folder(struct daemons *daemons, struct err *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    bool given = runtime != NULL && runtime[0] == '/' && access(runtime, W_OK) == 0;
    autofree char *top = given            ? xprintf("%s/gpuctl", runtime)
                         : geteuid() == 0 ? xstrdup("/run/gpuctl")
                                          : xprintf("/dev/shm/gpuctl-%u", (unsigned)geteuid());
    autofree char *id = state_id(daemons->state, err);
    if (id == NULL) {
        return false;
    }
    daemons->run = xprintf("%s/%s", top, id);
    return own_folder(top, err) && own_folder(daemons->run, err);
}

/* --- command lines --- */

static void add_option(struct text_list *words, const char *name, char *value)
{
    text_list_add(words, xstrdup(name));
    text_list_add(words, value);
}

struct text_list daemons_controller_words(const struct daemons *daemons)
{
    struct text_list words = {0};
    text_list_add(&words, xstrdup(daemons->controller));
    add_option(&words, "--state", instance_file(daemons->state, "controller"));
    add_option(&words, "--listen", xstrdup("127.0.0.1:0"));
    add_option(&words, "--endpoint-file", instance_file(daemons->state, "endpoint"));
    add_option(&words, "--idle-exit", xprintf("%lldms", (long long)daemons->options->idle_exit_ms));
    text_list_add(&words, xstrdup("--embedded"));
    add_option(&words, "--config", xstrdup(SETTINGS_NO_FILE)); /* those of the machine's own daemons */
    return words;
}

static void add_slots(const struct start_options *options, struct text_list *words)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t share = (cores > 0 ? cores : 1) / options->nodes;
    int64_t slots = options->cpu_slots > 0 ? options->cpu_slots : share > 0 ? share : 1;
    add_option(words, "--devices", xstrdup("none"));
    add_option(words, "--cpu-slots", xprintf("%lld", (long long)slots));
}

static void add_devices(const struct daemons *daemons, int64_t number, struct text_list *words)
{
    int64_t first, count;
    daemons_divide((int64_t)daemons->devices.count, daemons->options->nodes, number, &first, &count);
    autotext struct text list = {0};
    for (int64_t i = first; i < first + count; i++) {
        text_printf(&list, "%s%s", i > first ? "," : "", daemons->devices.items[i]);
    }
    add_option(words, "--devices", text_take(&list));
}

struct text_list daemons_agent_words(const struct daemons *daemons, int64_t number, const char *url)
{
    const struct start_options *options = daemons->options;
    struct text_list words = {0};
    text_list_add(&words, xstrdup(daemons->agent));
    add_option(&words, "--controller", xstrdup(url));
    add_option(&words, "--token-file", instance_file(daemons->state, "node.token"));
    add_option(&words, "--name", xprintf("node%lld", (long long)number));
    add_option(&words, "--state", instance_node_file(daemons->state, number, ""));
    add_option(&words, "--run", instance_node_file(daemons->run, number, ""));
    add_option(&words, "--config", xstrdup(SETTINGS_NO_FILE));
    add_option(&words, "--run-as", xstrdup("agent")); /* all jobs are this user's */
    if (daemons->devices.count > 0) {
        add_devices(daemons, number, &words);
    } else {
        add_slots(options, &words);
    }
    if (options->gpu_type != NULL) {
        add_option(&words, "--gpu-type", xstrdup(options->gpu_type));
    }
    if (options->python != NULL) {
        add_option(&words, "--python", file_absolute_program(options->python));
    }
    return words;
}

/* --- all of it --- */

/* The absolute path of one of our programs. */
static char *find_program(const char *name, struct err *err)
{
    autofree char *found = file_find_program(name, err);
    if (found == NULL) {
        return NULL;
    }
    char *absolute = realpath(found, NULL);
    if (absolute == NULL) {
        err_errno(err, "cannot find %s", found);
    }
    return absolute;
}

bool daemons_find(const char *state, const struct start_options *options, struct daemons *ret_daemons,
                  struct err *err)
{
    struct daemons daemons = {.state = state, .options = options};
    daemons.controller = find_program("gpuctld", err);
    daemons.agent = daemons.controller != NULL ? find_program("gpuagent", err) : NULL;
    if (daemons.agent == NULL || !choose_devices(&daemons, err) || !make_run_folder(&daemons, err)) {
        daemons_finish(&daemons);
        return false;
    }
    *ret_daemons = daemons;
    return true;
}

void daemons_finish(struct daemons *daemons)
{
    text_list_finish(&daemons->devices);
    free(daemons->controller);
    free(daemons->agent);
    free(daemons->run);
    *daemons = (struct daemons){0};
}
