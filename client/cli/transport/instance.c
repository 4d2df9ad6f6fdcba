/* SPDX-License-Identifier: Apache-2.0 */
/* Knows the layout of the state folder of the user's own instance, and which of its processes run. It
 * promises never to take a stale file for a running instance. start.c starts one. */
#include "client/cli/transport/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/types.h>
#include <unistd.h>

#include "client/cli/transport/process.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"

#define ENDPOINT_BYTES 4096
#define NO_RECORD      (-2)

char *instance_file(const char *state, const char *name)
{
    return xprintf("%s/%s", state, name);
}

char *instance_node_file(const char *state, int64_t number, const char *suffix)
{
    return xprintf("%s/node%lld%s", state, (long long)number, suffix);
}

char *instance_token_file(const char *state)
{
    return instance_file(state, "controller/admin.token");
}

char *instance_url(const char *state)
{
    autofree char *record = instance_file(state, "controller.pid");
    autofree char *path = instance_file(state, "endpoint");
    autofree char *bytes = NULL;
    size_t length;
    if (!file_read(path, ENDPOINT_BYTES, &bytes, &length, NULL)) {
        return NULL;
    }
    autojson json_t *endpoint = json_parse(bytes, length, NULL);
    const char *url = NULL;
    int64_t pid = 0;
    if (endpoint == NULL || !json_need_text(endpoint, "url", &url, NULL) ||
        !json_need_int(endpoint, "pid", 1, INT32_MAX, &pid, NULL)) {
        return NULL;
    }
    pid_t recorded = 0;
    autoclose int pidfd = process_open(record, &recorded);
    return pidfd >= 0 && recorded == (pid_t)pid ? xstrdup(url) : NULL;
}

bool instance_lock(const char *state, int *ret_fd, struct err *err)
{
    autofree char *path = instance_file(state, "lock");
    if (!file_make_directories(state, 0700, err)) {
        return false;
    }
    autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_errno(err, "cannot open %s", path);
    }
    while (flock(fd, LOCK_EX) != 0) {
        if (errno != EINTR) {
            return err_errno(err, "cannot lock %s", path);
        }
    }
    *ret_fd = give_fd(&fd);
    return true;
}

/* --- the processes --- */

/* The number of a node whose record has the name; -1 of the controller's, NO_RECORD of anything else. */
static int64_t number_of(const char *name)
{
    size_t digits = strncmp(name, "node", 4) == 0 ? strspn(name + 4, "0123456789") : 0;
    if (strcmp(name, "controller.pid") == 0) {
        return -1;
    }
    return digits > 0 && strcmp(name + 4 + digits, ".pid") == 0 ? strtoll(name + 4, NULL, 10) : NO_RECORD;
}

/* Lists the state folder; a folder that does not exist is empty. */
static bool list_state(const char *state, struct file_names *ret_names, struct err *err)
{
    *ret_names = (struct file_names){0};
    return file_list(state, ret_names, NULL) || errno == ENOENT || err_errno(err, "cannot read %s", state);
}

int64_t instance_agents(const char *state)
{
    autonames struct file_names names;
    int64_t count = 0;
    list_state(state, &names, NULL);
    for (size_t i = 0; i < names.count; i++) {
        int64_t number = number_of(names.items[i]);
        count += number >= 0 && instance_has_agent(state, number);
    }
    return count;
}

bool instance_has_agent(const char *state, int64_t number)
{
    autofree char *record = instance_node_file(state, number, ".pid");
    autoclose int pidfd = process_open(record, NULL);
    return pidfd >= 0;
}

void instance_end_agent(const char *state, int64_t number)
{
    autofree char *record = instance_node_file(state, number, ".pid");
    autoclose int pidfd = process_open(record, NULL);
    if (pidfd >= 0) {
        process_end(pidfd, CLIENT_TERM_MS);
    }
}

int64_t instance_nodes(const char *state)
{
    autonames struct file_names names;
    int64_t nodes = 0;
    list_state(state, &names, NULL);
    for (size_t i = 0; i < names.count; i++) {
        int64_t number = number_of(names.items[i]);
        nodes = number >= nodes && number < LIMIT_NODES_STARTED ? number + 1 : nodes;
    }
    return nodes;
}

/* Until the deadline it may end by itself. */
static bool stop_one(const char *record, int64_t deadline_ms, struct err *err)
{
    pid_t pid = 0;
    autoclose int pidfd = process_open(record, &pid);
    int64_t left = deadline_ms - clock_boot_ms();
    if (pidfd >= 0 && !process_wait(pidfd, left > 0 ? left : 0) && !process_end(pidfd, CLIENT_TERM_MS)) {
        return err_set(err, ERR_IO, "process %ld of %s does not end", (long)pid, record);
    }
    unlink(record);
    return true;
}

bool instance_stop(const char *state, int64_t patience_ms, struct err *err)
{
    int64_t deadline_ms = clock_boot_ms() + patience_ms;
    autonames struct file_names names;
    bool all = list_state(state, &names, err);
    for (size_t i = 0; i < names.count; i++) {
        if (number_of(names.items[i]) != NO_RECORD) {
            autofree char *record = instance_file(state, names.items[i]);
            all = stop_one(record, deadline_ms, err) && all;
        }
    }
    if (all) {
        autofree char *endpoint = instance_file(state, "endpoint");
        unlink(endpoint);
    }
    return all;
}
