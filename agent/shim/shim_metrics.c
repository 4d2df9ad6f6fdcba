/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the lines that ranks send to rank.sock in one file for all ranks of the node, made when the first
 * line arrives. A datagram is whole lines and is stored unchanged; only shim_line.c reads the
 * lines. No line is lost that was sent before the last process of the attempt ended, except when the
 * disk refuses it. A rank that is faster than the shim waits, because the kernel queues few datagrams
 * (net.unix.max_dgram_qlen; SO_RCVBUF has no effect). shim_stream.c owns the limit and the gaps of the
 * file. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define KIND "metrics"

/* A batch is one write in one turn of the loop: 64 KiB, as for an output stream, with room for one more
 * datagram; or 256 small datagrams, which take 0.1 ms. */
#define BATCH_BYTES     (2 * LIMIT_RANK_MESSAGE_BYTES + 1)
#define BATCH_DATAGRAMS 256

bool metrics_open(struct shim *shim, struct why *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SHIM_RANK_SOCKET};
    autoclose int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(S_IXUSR | S_IRWXG | S_IRWXO);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    umask(mask);
    bound = bound && (shim->launch.uid < 0 ||
                      chown(SHIM_RANK_SOCKET, (uid_t)shim->launch.uid, (gid_t)shim->launch.gid) == 0);
    if (!bound || !shim_watch(shim, fd, WATCH_METRICS, 0)) {
        return why_set(why, "%s: %s", SHIM_RANK_SOCKET, strerror(errno));
    }
    shim->metrics.socket = give_fd(&fd);
    return true;
}

static void oversize_tell(struct metrics *metrics, ssize_t length)
{
    if (!metrics->oversize_told) {
        shim_log_error("drops a message of %zd bytes from a rank, and others above %lld", length,
                       LIMIT_RANK_MESSAGE_BYTES);
        metrics->oversize_told = true;
    }
}

/* Takes datagrams, one behind the other; *ret_empty: the socket has no more. */
static size_t batch_take(struct metrics *metrics, char *bytes, bool *ret_empty)
{
    size_t used = 0;
    *ret_empty = false;
    for (int i = 0; i < BATCH_DATAGRAMS && used + LIMIT_RANK_MESSAGE_BYTES < BATCH_BYTES; i++) {
        ssize_t length = recv(metrics->socket, bytes + used, LIMIT_RANK_MESSAGE_BYTES, MSG_TRUNC);
        if (length < 0) {
            *ret_empty = true;
            break;
        }
        if (length > LIMIT_RANK_MESSAGE_BYTES) {
            oversize_tell(metrics, length);
        } else if (length > 0) {
            used += (size_t)length;
            if (bytes[used - 1] != '\n') {
                bytes[used++] = '\n';
            }
        }
    }
    return used;
}

static void batch_store(struct shim *shim, const char *bytes, size_t length)
{
    struct stream *file = &shim->metrics.file;
    struct why ignored;
    int64_t stored = file->stored;
    if (file->file < 0 && !stream_open(file, shim->launch.logs, shim->launch.ranks[0].number, KIND,
                                       shim->launch.log_limit, &ignored)) {
        stream_fail(file, errno);
        file->dropped += (int64_t)length;
        return;
    }
    stream_append(file, bytes, length);
    if (file->stored > stored) {
        agent_socket_output_grown(shim);
    }
}

/* A batch has whole lines, so no value goes on behind it. */
static void batch_keep(struct shim *shim, const char *bytes, size_t length)
{
    if (shim->mask == NULL) {
        batch_store(shim, bytes, length);
        return;
    }
    autotext struct text shown = {0};
    struct mask_stream *stream = mask_stream_create(shim->mask);
    mask_feed(stream, bytes, length, &shown);
    mask_end(stream, &shown);
    mask_stream_destroy(stream);
    batch_store(shim, shown.bytes, shown.length);
}

/* False: the socket is empty. */
static bool batch_move(struct shim *shim)
{
    char bytes[BATCH_BYTES];
    bool empty;
    size_t length = batch_take(&shim->metrics, bytes, &empty);
    if (length > 0) {
        batch_keep(shim, bytes, length);
        lines_receive(shim, bytes, length);
    }
    return !empty;
}

void metrics_receive(struct shim *shim)
{
    if (shim->metrics.socket >= 0) { /* else it was closed earlier in this turn */
        batch_move(shim);
    }
}

void metrics_finish(struct shim *shim)
{
    struct metrics *metrics = &shim->metrics;
    if (metrics->socket < 0) {
        return;
    }
    shutdown(metrics->socket, SHUT_RD); /* no stranger can send more: only the queued datagrams are left */
    while (batch_move(shim)) {
    }
    close(metrics->socket);
    metrics->socket = -1;
    stream_end(&metrics->file, shim->launch.ranks[0].number, KIND);
}
