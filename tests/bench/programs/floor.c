/* SPDX-License-Identifier: Apache-2.0 */
/* Does by itself, one after the other, what no durable start can do without: a message and its answer over a
 * loopback connection, an fdatasync of a page that was appended to a log, for each rank a message to its
 * node and an answer, and for each rank a process. No HTTP, no tokens, no decision, no database. The other
 * ends of the connections are threads that give back what they get. */
#include "tests/bench/programs/floor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/text.h"

#define MESSAGE_BYTES 512
#define PAGE_BYTES    4096
#define PAGES         256

struct node {
    int connection;
    char *words[3]; /* its program with the one argument */
    pid_t pid;
    int64_t ordered_us;
};

struct floor {
    int controller;
    int log, fifo, ranks;
    int written; /* pages of the log */
    struct node nodes[FLOOR_RANKS_MOST];
};

static void must(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

/* Exactly so many bytes; false at the end of the connection. */
static int receive(int fd, char *out)
{
    return recv(fd, out, MESSAGE_BYTES, MSG_WAITALL) == MESSAGE_BYTES;
}

static void *give_back(void *connection)
{
    const int fd = (int)(intptr_t)connection;
    char message[MESSAGE_BYTES];
    while (receive(fd, message)) {
        must(send(fd, message, sizeof message, MSG_NOSIGNAL) == MESSAGE_BYTES, "send");
    }
    return NULL;
}

static void exchange(int fd)
{
    char message[MESSAGE_BYTES] = "";
    must(send(fd, message, sizeof message, MSG_NOSIGNAL) == MESSAGE_BYTES && receive(fd, message),
         "an exchange");
}

/* A connection over loopback whose other end gives everything back. */
static int connect_echo(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int one = 1;
    pthread_t thread;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int ours = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0 &&
             getsockname(listener, (struct sockaddr *)&address, &length) == 0 &&
             connect(ours, (struct sockaddr *)&address, length) == 0,
         "a connection over loopback");
    int theirs = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    must(theirs >= 0, "accept");
    setsockopt(ours, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(theirs, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    must(pthread_create(&thread, NULL, give_back, (void *)(intptr_t)theirs) == 0, "pthread_create");
    pthread_detach(thread);
    close(listener);
    return ours;
}

/* The next page of a log whose file has its size and its blocks already, as those of databases do: its sync
 * need not wait for the file system's own journal. */
static void append_page(struct floor *floor)
{
    static const char page[PAGE_BYTES];
    const off_t at = (off_t)(floor->written++ % PAGES) * PAGE_BYTES;
    must(pwrite(floor->log, page, sizeof page, at) == PAGE_BYTES && fdatasync(floor->log) == 0, "a page");
}

static int create_log(const char *folder)
{
    autofree char *path = xprintf("%s/floor.log", folder);
    autofree char *pages = xzalloc(PAGES * PAGE_BYTES);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, pages, PAGES * PAGE_BYTES) == PAGES * PAGE_BYTES && fsync(fd) == 0, path);
    return fd;
}

struct floor *floor_create(const char *folder, const char *stamp, const char *fifo_path, int fifo, int ranks)
{
    struct floor *floor = xzalloc(sizeof *floor);
    must(ranks <= FLOOR_RANKS_MOST, "too many ranks");
    floor->controller = connect_echo();
    floor->log = create_log(folder);
    floor->fifo = fifo;
    floor->ranks = ranks;
    for (int rank = 0; rank < ranks; rank++) {
        floor->nodes[rank] =
            (struct node){.connection = connect_echo(), .words = {xstrdup(stamp), xstrdup(fifo_path)}};
    }
    return floor;
}

static void *start_rank(void *of)
{
    struct node *node = of;
    char *const environment[] = {NULL};
    exchange(node->connection);
    node->ordered_us = clock_boot_us();
    must(posix_spawn(&node->pid, node->words[0], NULL, NULL, node->words, environment) == 0, node->words[0]);
    return NULL;
}

/* The first rank's node is this thread, for one rank needs no second one. */
static void start_ranks(struct floor *floor)
{
    pthread_t others[FLOOR_RANKS_MOST];
    for (int rank = 1; rank < floor->ranks; rank++) {
        must(pthread_create(&others[rank], NULL, start_rank, &floor->nodes[rank]) == 0, "pthread_create");
    }
    start_rank(&floor->nodes[0]);
    for (int rank = 1; rank < floor->ranks; rank++) {
        pthread_join(others[rank], NULL);
    }
}

struct floor_times floor_take(struct floor *floor)
{
    struct floor_times times = {.begin_us = clock_boot_us()};
    exchange(floor->controller);
    times.answered_us = clock_boot_us();
    append_page(floor);
    times.synced_us = clock_boot_us();
    start_ranks(floor);
    for (int rank = 0; rank < floor->ranks; rank++) {
        const struct node *node = &floor->nodes[rank];
        int64_t stamp_us;
        must(read(floor->fifo, &stamp_us, sizeof stamp_us) == sizeof stamp_us, "a stamp");
        must(waitpid(node->pid, NULL, 0) == node->pid, "waitpid");
        times.ordered_us = node->ordered_us > times.ordered_us ? node->ordered_us : times.ordered_us;
        times.stamped_us = stamp_us > times.stamped_us ? stamp_us : times.stamped_us;
    }
    return times;
}
