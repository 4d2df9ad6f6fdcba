/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the forkservers, and the shims that wait with their workers. A shim is handed out only for the
 * interpreter and the variables of its forkserver. All together stay within their memory limit. A forkserver
 * that no job has used for a while ends. A kind of ranks that run as another user has no forkserver: what has
 * run code of that user can be no parent of a shim. Each of its shims has workers of its own made, in a
 * cgroup that limits them, and takes as long as the imports do. gpuctl_warm.py makes sure that a worker
 * behaves like a fresh process; agent/shim/shimwire.h describes the protocol. */
#include "agent/launch/warm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/common/fd_message.h"
#include "agent/launch/runner.h"
#include "agent/shim/shimwire.h"
#include "agent/launch/warm_cgroups.h"
#include "agent/launch/warm_key.h"
#include "agent/launch/warm_program.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

#define MOVE_MS 10000 /* a rank is in its own cgroup long before that, or is not a warm worker */

enum state {
    STATE_WANTED, /* its forkserver starts when the agent is idle */
    STATE_LOADING,
    STATE_READY,
    STATE_UNFIT, /* it cannot have a forkserver; `why` says the reason */
};

struct warm_shim {
    struct kind *kind;
    struct shim_process shim;
    struct loop_watch watch;
    size_t workers;
    int64_t bytes;     /* resident memory, beside that of the forkserver */
    bool asked, ready; /* it was requested; it waits with its workers */
    char *cgroup;      /* of workers of another user; owned */
};

/* Ranks that one forkserver can serve. */
struct kind {
    struct warm *warm;
    struct warm_key key;
    enum state state;
    char *why;
    int64_t due_ms, used_ms; /* earliest next start for it; when a job used it last */
    struct child *child;     /* NULL: no forkserver */
    int64_t pid_bytes;       /* resident memory of the forkserver after its imports */
    struct loop_watch talk;
    int64_t shim_bytes; /* of the last shim that was ready; 0: not known */
    int failures;       /* consecutive shims that ended before they were ready */
    struct warm_shim warm_shims[LIMIT_WARM_SHIMS];
    struct kind *prev, *next; /* the most recently used kind is first */
};

struct warm {
    struct warm_config config;
    struct shims *shims;
    struct children *children;
    struct loop *loop;
    struct kind *kinds;
    struct left_cgroup *left;
    uint64_t cgroups_made;
    struct loop_timer timer;
};

static bool has_user(const struct kind *kind)
{
    return kind->key.uid >= 0;
}

static void wake_at(struct warm *warm, int64_t at_ms)
{
    if (!warm->timer.on || at_ms < warm->timer.at_ms) {
        loop_disarm(warm->loop, &warm->timer);
        loop_arm(warm->loop, &warm->timer, at_ms);
    }
}

/* --- shims ---------------------------------------------------------------------------------------------- */

static struct warm_shim warm_shim_absent(struct kind *kind)
{
    return (struct warm_shim){.kind = kind, .shim = {.fd = -1, .pidfd = -1}, .watch = {.fd = -1}};
}

static void warm_shim_end(struct warm_shim *warm_shim)
{
    struct warm *warm = warm_shim->kind->warm;
    if (warm_shim->watch.fd >= 0) {
        loop_unwatch(warm->loop, &warm_shim->watch);
    }
    shim_process_close(&warm_shim->shim); /* it ends with its socket, and its workers with it */
    left_cgroup_add(&warm->left, give(warm_shim->cgroup), 0);
    *warm_shim = warm_shim_absent(warm_shim->kind);
}

static void forkserver_end(struct kind *kind)
{
    if (kind->talk.fd >= 0) {
        loop_unwatch(kind->warm->loop, &kind->talk);
        cleanup_close(&kind->talk.fd);
        kind->talk.fd = -1;
    }
    child_stop(give(kind->child), 0);
    for (size_t i = 0; i < LIMIT_WARM_SHIMS; i++) {
        warm_shim_end(&kind->warm_shims[i]);
    }
}

static void kind_drop(struct kind *kind)
{
    forkserver_end(kind);
    DL_DELETE(kind->warm->kinds, kind);
    warm_key_finish(&kind->key);
    free(kind->why);
    free(kind);
}

static void set_unfit(struct kind *kind, const char *why)
{
    log_info("forkserver unfit", "python=%s reason=\"%s\"", kind->key.python, why);
    forkserver_end(kind);
    kind->state = STATE_UNFIT;
    free(kind->why);
    kind->why = xstrdup(why);
}

/* --- memory --------------------------------------------------------------------------------------------- */

static int64_t resident_bytes(int64_t pid)
{
    long long pages, resident;
    autofree char *path = xprintf("/proc/%lld/statm", (long long)pid);
    autofree char *text = NULL;
    if (!file_read(path, 256, &text, NULL, NULL) || sscanf(text, "%lld %lld", &pages, &resident) != 2) {
        return 0;
    }
    return resident * sysconf(_SC_PAGESIZE);
}

static int64_t bytes_of(const struct kind *kind)
{
    int64_t bytes = kind->pid_bytes;
    for (size_t i = 0; i < LIMIT_WARM_SHIMS; i++) {
        bytes += kind->warm_shims[i].bytes;
    }
    return kind->state == STATE_READY ? bytes : 0;
}

/* Drops the least recently used kinds until the rest fits. */
static void make_room(struct warm *warm, const struct kind *kept)
{
    int64_t total = 0;
    struct kind *kind;
    struct kind *next;
    DL_FOREACH (warm->kinds, kind) {
        total += bytes_of(kind);
    }
    for (kind = warm->kinds != NULL ? warm->kinds->prev : NULL;
         kind != NULL && total > warm->config.limit_bytes; kind = next) {
        next = kind != warm->kinds ? kind->prev : NULL;
        if (kind != kept && kind->state == STATE_READY) {
            total -= bytes_of(kind);
            kind_drop(kind);
        }
    }
}

/* --- the forkserver ------------------------------------------------------------------------------------- */

static bool too_large(struct kind *kind, int64_t bytes)
{
    int64_t limit_bytes = kind->warm->config.limit_bytes;
    if (bytes <= limit_bytes) {
        return false;
    }
    autofree char *why = xprintf("it takes %lld MiB, and --warm-memory is %lld", (long long)(bytes / MIB),
                                 (long long)(limit_bytes / MIB));
    set_unfit(kind, why);
    return true;
}

static void hear_ready(struct kind *kind, const char *imports)
{
    struct warm *warm = kind->warm;
    kind->pid_bytes = resident_bytes(child_pid(kind->child));
    if (too_large(kind, kind->pid_bytes)) {
        return;
    }
    log_info("forkserver ready", "python=%s imports=%s memory_mib=%lld", kind->key.python, imports,
             (long long)(kind->pid_bytes / MIB));
    kind->state = STATE_READY;
    make_room(warm, kind);
}

/* The forkserver answers requests for shims in their order. */
static void hear_shim(struct kind *kind, int pidfd)
{
    for (size_t i = 0; i < LIMIT_WARM_SHIMS; i++) {
        struct warm_shim *warm_shim = &kind->warm_shims[i];
        if (warm_shim->asked && warm_shim->shim.pidfd < 0) {
            warm_shim->shim.pidfd = pidfd;
            return;
        }
    }
    close(pidfd);
}

static void talk_ready(void *closure, uint32_t events)
{
    struct kind *kind = closure;
    char text[LIMIT_SHIM_MESSAGE + 1];
    int fd;
    ssize_t length = fd_message_receive(kind->talk.fd, text, sizeof text, &fd);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (strncmp(text, "ready ", 6) == 0) {
        hear_ready(kind, text + 6);
    } else if (strncmp(text, "unfit ", 6) == 0) {
        set_unfit(kind, text + 6);
    } else if (strncmp(text, "shim ", 5) == 0 && fd >= 0) {
        hear_shim(kind, fd);
    } else {
        set_unfit(kind, "its forkserver has ended");
    }
}

static void forkserver_done(void *closure, int status, const char *said)
{
    struct kind *kind = closure;
    kind->child = NULL;
    if (kind->state != STATE_UNFIT) {
        const char *line = strrchr(said, '\n');
        autofree char *why = xprintf("its forkserver has ended: %s", line != NULL ? line + 1 : said);
        set_unfit(kind, why);
    }
}

static void forkserver_start(struct kind *kind)
{
    struct warm *warm = kind->warm;
    struct err err;
    int pair[2];
    if (!runner_restore(warm->config.folder, &err)) {
        set_unfit(kind, err.text);
        return;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        set_unfit(kind, "there is no socket for a forkserver");
        return;
    }
    autoclose int theirs = pair[1];
    autofree char *arguments_room = warm_room_for_arguments();
    autofree char *variables_room = warm_room_for_variables();
    const char *arguments[] = {kind->key.python,
                               "-c",
                               WARM_BOOT,
                               warm->config.folder,
                               shims_program(warm->shims),
                               shims_own_memory(warm->shims) ? SHIM_OWN_MEMORY " " SHIM_WARM : SHIM_WARM,
                               warm->config.imports,
                               arguments_room,
                               NULL};
    size_t count = kind->key.variable_count;
    autofree const char **variables = xalloc((count + 2) * sizeof *variables);
    for (size_t i = 0; i < count; i++) {
        variables[i] = kind->key.variables[i];
    }
    variables[count] = variables_room;
    variables[count + 1] = NULL;
    kind->talk = (struct loop_watch){pair[0], EPOLLIN, talk_ready, kind};
    loop_watch(warm->loop, &kind->talk);
    kind->state = STATE_LOADING;
    kind->child = child_start(warm->children,
                              &(struct child_call){.arguments = arguments,
                                                   .variables = variables,
                                                   .input = -1,
                                                   .extra = theirs,
                                                   .done = forkserver_done,
                                                   .closure = kind},
                              &err);
    if (kind->child == NULL) {
        set_unfit(kind, err.text);
    }
}

/* --- shims that wait ------------------------------------------------------------------------------------ */

/* A worker shares nearly all of its pages with its forkserver, or with the others of its shim. */
static void hear_warm(struct warm_shim *warm_shim, int64_t workers, int64_t pid)
{
    struct kind *kind = warm_shim->kind;
    int64_t own_bytes = has_user(kind) ? resident_bytes(pid) - WARM_WORKER_BYTES : 0;
    warm_shim->ready = true;
    warm_shim->workers = (size_t)workers;
    warm_shim->bytes = (own_bytes > 0 ? own_bytes : 0) + workers * WARM_WORKER_BYTES;
    kind->shim_bytes = warm_shim->bytes;
    kind->failures = 0;
    if (has_user(kind) && !too_large(kind, warm_shim->bytes)) {
        make_room(kind->warm, kind);
    }
}

static void warm_shim_lost(struct warm_shim *warm_shim)
{
    struct kind *kind = warm_shim->kind;
    kind->failures += warm_shim->ready ? 0 : 1;
    warm_shim_end(warm_shim);
    if (kind->failures == LIMIT_WARM_FAILURES) {
        set_unfit(kind, "its workers end before they are needed");
    }
}

/* The shim reports its workers, or why there are none, or has ended. */
static void warm_shim_ready(void *closure, uint32_t events)
{
    struct warm_shim *warm_shim = closure;
    char text[LIMIT_SHIM_MESSAGE + 1];
    ssize_t length = recv(warm_shim->shim.fd, text, sizeof text - 1, MSG_DONTWAIT);
    long long workers, pid;
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    text[length > 0 ? length : 0] = '\0';
    if (sscanf(text, "warm %lld %lld", &workers, &pid) == 2 && workers >= 1 &&
        workers <= LIMIT_NODE_DEVICES) {
        hear_warm(warm_shim, workers, pid);
    } else if (strncmp(text, "unfit ", 6) == 0) {
        set_unfit(warm_shim->kind, text + 6);
    } else {
        warm_shim_lost(warm_shim);
    }
}

static bool write_breeder(struct warm_shim *warm_shim, struct err *err)
{
    struct warm *warm = warm_shim->kind->warm;
    const struct warm_key *key = &warm_shim->kind->key;
    autofree char *name = xprintf("warm%llu", (unsigned long long)++warm->cgroups_made);
    const struct cgroup_limits limits = {.devices = (int64_t)key->ranks};
    return runner_restore(warm->config.folder, err) &&
           cgroup_make_named(warm->config.cgroups, name, &limits, &warm_shim->cgroup, err) &&
           warm_breeder_write(&warm->config, key, warm_shim->cgroup, err);
}

/* A shim that is of no kind yet has workers of the user made. The file is read before another is written: one
 * kind at a time loads. */
static void breed(struct warm_shim *warm_shim)
{
    struct warm *warm = warm_shim->kind->warm;
    struct err err;
    if (!shims_take(warm->shims, &warm_shim->shim, &err)) {
        set_unfit(warm_shim->kind, err.text);
        return;
    }
    warm_shim->asked = true;
    warm_shim->watch = (struct loop_watch){warm_shim->shim.fd, EPOLLIN, warm_shim_ready, warm_shim};
    loop_watch(warm->loop, &warm_shim->watch);
    if (!write_breeder(warm_shim, &err)) {
        set_unfit(warm_shim->kind, err.text);
    } else if (!shim_process_tell(&warm_shim->shim, "breed %s", warm->config.launch)) {
        warm_shim_end(warm_shim);
    }
}

static bool ask(struct kind *kind, int control, int shim_log)
{
    const int fds[2] = {control, shim_log};
    autofree char *text = xprintf("shim %zu", kind->key.ranks);
    return fd_message_send(kind->talk.fd, text, strlen(text), fds, 2, MSG_DONTWAIT);
}

static void warm_shim_ask(struct warm_shim *warm_shim)
{
    struct kind *kind = warm_shim->kind;
    struct warm *warm = kind->warm;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        return;
    }
    autoclose int theirs = pair[1];
    warm_shim->shim.fd = pair[0];
    warm_shim->asked = true;
    warm_shim->watch = (struct loop_watch){pair[0], EPOLLIN, warm_shim_ready, warm_shim};
    loop_watch(warm->loop, &warm_shim->watch);
    if (!ask(kind, theirs, warm->config.shim_log)) {
        warm_shim_end(warm_shim);
    }
}

static struct warm_shim *find_absent(struct kind *kind)
{
    for (size_t i = 0; i < LIMIT_WARM_SHIMS; i++) {
        if (!kind->warm_shims[i].asked) {
            return &kind->warm_shims[i];
        }
    }
    return NULL;
}

/* --- from outside --------------------------------------------------------------------------------------- */

static struct kind *find_kind(struct warm *warm, const char *hash)
{
    struct kind *kind;
    DL_FOREACH (warm->kinds, kind) {
        if (strcmp(kind->key.hash, hash) == 0) {
            return kind;
        }
    }
    return NULL;
}

/* Takes the key over. */
static struct kind *add_kind(struct warm *warm, struct warm_key *key)
{
    size_t count;
    struct kind *kind;
    DL_COUNT(warm->kinds, kind, count);
    if (count >= LIMIT_WARM_KINDS) {
        kind_drop(warm->kinds->prev);
    }
    kind = xzalloc(sizeof *kind);
    *kind = (struct kind){.warm = warm,
                          .key = *key,
                          .state = STATE_WANTED,
                          .due_ms = clock_boot_ms() + WARM_DELAY_MS,
                          .talk = {.fd = -1}};
    for (size_t i = 0; i < LIMIT_WARM_SHIMS; i++) {
        kind->warm_shims[i] = warm_shim_absent(kind);
    }
    *key = (struct warm_key){0};
    DL_PREPEND(warm->kinds, kind);
    return kind;
}

static bool take_warm_shim(struct kind *kind, struct shim_process *ret_shim)
{
    for (size_t i = 0; i < LIMIT_WARM_SHIMS; i++) {
        struct warm_shim *warm_shim = &kind->warm_shims[i];
        if (warm_shim->ready && warm_shim->workers >= kind->key.ranks) {
            loop_unwatch(kind->warm->loop, &warm_shim->watch);
            warm_shim->watch.fd = -1;
            *ret_shim = warm_shim->shim;
            warm_shim->shim = (struct shim_process){.fd = -1, .pidfd = -1};
            left_cgroup_add(&kind->warm->left, give(warm_shim->cgroup), clock_boot_ms() + MOVE_MS);
            warm_shim_end(warm_shim);
            return true;
        }
    }
    return false;
}

/* Drops shims with too few workers for the current number of ranks. */
static void drop_small(struct kind *kind)
{
    for (size_t i = 0; i < LIMIT_WARM_SHIMS; i++) {
        if (kind->warm_shims[i].ready && kind->warm_shims[i].workers < kind->key.ranks) {
            warm_shim_end(&kind->warm_shims[i]);
        }
    }
}

static const char *why_not(const struct kind *kind)
{
    switch (kind->state) {
    case STATE_WANTED:
        return "nothing like it has run here lately";
    case STATE_LOADING:
        return "its forkserver is being made ready";
    case STATE_READY:
        return "no shim was ready";
    case STATE_UNFIT:
        return kind->why;
    }
    return NULL;
}

static void timer_due(void *closure)
{
    /* warm_step does the due work when the agent is idle */
}

bool warm_take(struct warm *warm, const struct launch *launch, struct shim_process *ret_shim,
               char ret_kind[HASH_HEX + 1], const char **ret_why)
{
    struct warm_key key;
    if (warm->config.limit_bytes == 0) {
        *ret_why = "--warm-memory is 0";
        return false;
    }
    warm_key_make(launch, &key);
    memcpy(ret_kind, key.hash, sizeof key.hash);
    size_t ranks = key.ranks;
    struct kind *kind = find_kind(warm, key.hash);
    if (kind != NULL) {
        DL_DELETE(warm->kinds, kind);
        DL_PREPEND(warm->kinds, kind);
    } else {
        kind = add_kind(warm, &key);
    }
    warm_key_finish(&key);
    kind->key.ranks = ranks;
    kind->used_ms = clock_boot_ms();
    drop_small(kind);
    bool taken = take_warm_shim(kind, ret_shim);
    *ret_why = taken ? NULL : why_not(kind);
    if (taken) {
        kind->due_ms = kind->used_ms + WARM_REFILL_MS;
    }
    wake_at(warm, kind->used_ms + WARM_IDLE_MS);
    wake_at(warm, kind->due_ms);
    return taken;
}

void warm_renew(struct warm *warm, const char *hash)
{
    struct kind *kind = find_kind(warm, hash);
    if (kind != NULL && kind->state == STATE_READY) {
        forkserver_end(kind);
        kind->state = STATE_WANTED;
        kind->due_ms = clock_boot_ms() + WARM_DELAY_MS;
        wake_at(warm, kind->due_ms);
    }
}

void warm_resume(struct warm *warm)
{
    struct kind *kind;
    DL_FOREACH (warm->kinds, kind) {
        kind->due_ms = kind->state == STATE_WANTED ? 0 : kind->due_ms;
    }
}

/* The first kind that no job has used for long. */
static struct kind *find_idle(struct warm *warm, int64_t now_ms)
{
    struct kind *kind;
    DL_FOREACH (warm->kinds, kind) {
        if (kind->used_ms + WARM_IDLE_MS <= now_ms) {
            return kind;
        }
    }
    return NULL;
}

static bool is_loading(const struct warm *warm)
{
    const struct kind *kind;
    DL_FOREACH (warm->kinds, kind) {
        bool loads = kind->state == STATE_LOADING;
        for (size_t i = 0; i < LIMIT_WARM_SHIMS && has_user(kind); i++) {
            loads = loads || (kind->warm_shims[i].asked && !kind->warm_shims[i].ready);
        }
        if (loads) {
            return true;
        }
    }
    return false;
}

static void load(struct kind *kind)
{
    if (has_user(kind)) {
        kind->state = STATE_READY;
    } else {
        forkserver_start(kind);
    }
}

/* A further shim of a user takes as much as the last. */
static bool has_room(const struct kind *kind)
{
    return !has_user(kind) ||
           (!is_loading(kind->warm) && bytes_of(kind) + kind->shim_bytes <= kind->warm->config.limit_bytes);
}

static bool work_on(struct kind *kind, int64_t now_ms)
{
    if (kind->state == STATE_WANTED && kind->due_ms <= now_ms && !is_loading(kind->warm)) {
        load(kind);
        return true;
    }
    struct warm_shim *warm_shim =
        kind->state == STATE_READY && kind->due_ms <= now_ms && has_room(kind) ? find_absent(kind) : NULL;
    if (warm_shim == NULL) {
        return false;
    }
    (has_user(kind) ? breed : warm_shim_ask)(warm_shim);
    return warm_shim->asked; /* after a failed request the next one must wait */
}

bool warm_step(struct warm *warm)
{
    int64_t now_ms = clock_boot_ms();
    struct kind *kind = find_idle(warm, now_ms);
    if (left_cgroups_step(&warm->left, now_ms)) {
        wake_at(warm, now_ms + WARM_REFILL_MS);
    }
    if (kind != NULL) {
        kind_drop(kind);
        return true;
    }
    DL_FOREACH (warm->kinds, kind) {
        if (work_on(kind, now_ms)) {
            return true;
        }
        wake_at(warm, kind->due_ms > now_ms ? kind->due_ms : kind->used_ms + WARM_IDLE_MS);
    }
    return false;
}

struct warm *warm_create(const struct warm_config *config, struct shims *shims, struct children *children,
                         struct loop *loop)
{
    struct warm *warm = xzalloc(sizeof *warm);
    *warm = (struct warm){
        .config = *config, .shims = shims, .children = children, .loop = loop, .timer = {.due = timer_due}};
    return warm;
}

void warm_destroy(struct warm *warm)
{
    if (warm == NULL) {
        return;
    }
    while (warm->kinds != NULL) {
        kind_drop(warm->kinds);
    }
    loop_disarm(warm->loop, &warm->timer);
    left_cgroups_finish(&warm->left);
    free(warm);
}
