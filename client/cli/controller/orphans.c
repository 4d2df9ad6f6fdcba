/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the processes that a node left behind when its agent is gone: the last resort of `gpuctl down
 * --force`. It promises to take only shims of that node and their descendants, and to leave a process alone
 * that got the same id later. Nobody is told how the ranks ended. */
#include "client/cli/controller/orphans.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "client/cli/transport/instance.h"
#include "client/cli/transport/process.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

#define ROUNDS 20 /* in which a tree that is stopped has stopped growing */

struct census {
    struct process *items;
    bool *marked;
    size_t count, room;
};

static void take(struct census *census, pid_t pid)
{
    struct process process;
    if (!process_read(pid, &process)) {
        return;
    }
    if (census->count == census->room) {
        census->room = census->room > 0 ? 2 * census->room : 256;
        census->items = xrealloc(census->items, census->room * sizeof *census->items);
    }
    census->items[census->count++] = process;
}

static void census_take(struct census *census)
{
    autonames struct file_names names;
    int64_t pid;
    file_list("/proc", &names, NULL);
    for (size_t i = 0; i < names.count; i++) {
        if (text_to_int(names.items[i], 1, INT32_MAX, &pid)) {
            take(census, (pid_t)pid);
        }
    }
    census->marked = xzalloc(census->count + 1);
}

static void census_finish(struct census *census)
{
    free(census->items);
    free(census->marked);
    *census = (struct census){0};
}

static bool reads(pid_t pid, const char *name, char *out, size_t size)
{
    autofree char *path = xprintf("/proc/%ld/%s", (long)pid, name);
    ssize_t length = readlink(path, out, size - 1);
    out[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* A shim stands in a folder of its attempt, in the state or in the run folder of its node. */
static bool is_shim(pid_t pid, const char *kept, const char *running)
{
    char program[4096], folder[4096];
    if (!reads(pid, "exe", program, sizeof program) || !reads(pid, "cwd", folder, sizeof folder)) {
        return false;
    }
    const char *name = strrchr(program, '/');
    bool shim = name != NULL && strncmp(name, "/gpushim", strlen("/gpushim")) == 0;
    return shim &&
           (strncmp(folder, kept, strlen(kept)) == 0 || (running != NULL && strstr(folder, running) != NULL));
}

static void mark_children(struct census *census)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < census->count; i++) {
            for (size_t j = 0; !census->marked[i] && j < census->count; j++) {
                if (census->marked[j] && census->items[i].parent == census->items[j].pid) {
                    census->marked[i] = more = true;
                }
            }
        }
    }
}

static int64_t signal_all(const struct census *census, int signal)
{
    int64_t count = 0;
    for (size_t i = 0; i < census->count; i++) {
        count += census->marked[i] && process_signal(&census->items[i], signal);
    }
    return count;
}

int64_t orphans_end(const char *state, int64_t number)
{
    autofree char *record = instance_file(state, "controller/run.id");
    autofree char *id = NULL;
    autofree char *kept = instance_node_file(state, number, "/");
    file_read(record, ID_LENGTH, &id, NULL, NULL);
    autofree char *running = id != NULL ? xprintf("/%s/node%lld/", id, (long long)number) : NULL;
    int64_t before = -1, count = 0;
    for (int round = 0; round < ROUNDS && count != before; round++) {
        struct census census = {0};
        census_take(&census);
        for (size_t i = 0; i < census.count; i++) {
            census.marked[i] = is_shim(census.items[i].pid, kept, running);
        }
        mark_children(&census);
        before = count;
        count = signal_all(&census, SIGSTOP);
        if (count == before || round == ROUNDS - 1) {
            signal_all(&census, SIGKILL);
        }
        census_finish(&census);
    }
    return count;
}
