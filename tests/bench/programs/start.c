/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the `start` bench: in turns takes the floor (floor.h) and submits a job to an idle cluster
 * over one connection. A start is measured from just before the request is written to the first instruction
 * of the slowest rank, which the rank itself stamps. FOLDER is on the disk of the cluster's state. Prints as
 * JSON how many times the floor a start takes (the median of the pairs), both in milliseconds, and the
 * floor's parts.
 *
 *     bench-start PORT TOKEN-FILE STAMP-PROGRAM FOLDER GPUS COUNT */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/programs/floor.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

#define IDLE_MS 5
#define WARM_UP 10

/* What is kept of each pair: microseconds, and the ratio of start and floor. */
enum series { START, FLOOR, RATIO, EXCHANGE, SYNC, ORDER, SPAWN, SERIES };

struct bench {
    int fd;
    int fifo;
    struct floor *floor;
    const char *token;
    char *body;
    int gpus;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void send_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = write(fd, bytes, length);
        if (sent <= 0) {
            die("write");
        }
        bytes += sent;
        length -= (size_t)sent;
    }
}

/* Reads one response with a Content-Length; returns its body, which the caller frees. */
static char *read_reply(int fd)
{
    struct text reply = {0};
    char chunk[8192];
    for (;;) {
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got <= 0) {
            die("read");
        }
        text_append_bytes(&reply, chunk, (size_t)got);
        const char *end = strstr(reply.bytes, "\r\n\r\n");
        const char *length = strcasestr(reply.bytes, "content-length:");
        if (end == NULL || length == NULL) {
            continue;
        }
        size_t want = (size_t)(end + 4 - reply.bytes) + strtoul(length + 15, NULL, 10);
        if (reply.length >= want) {
            char *body = xstrdup(end + 4);
            text_finish(&reply);
            return body;
        }
    }
}

static json_t *ask(const struct bench *bench, const char *method, const char *path, const char *body)
{
    struct text request = {0};
    text_printf(&request, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n", method, path,
                bench->token);
    if (body != NULL) {
        text_printf(&request, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
                    body);
    } else {
        text_append(&request, "\r\n");
    }
    send_all(bench->fd, request.bytes, request.length);
    text_finish(&request);
    char *reply = read_reply(bench->fd);
    json_t *json = json_loads(reply, 0, NULL);
    if (json == NULL) {
        fprintf(stderr, "not JSON: %s\n", reply);
        exit(1);
    }
    free(reply);
    return json;
}

/* The slowest rank's stamp. */
static int64_t read_stamps(const struct bench *bench)
{
    int64_t latest_us = 0;
    for (int rank = 0; rank < bench->gpus; rank++) {
        int64_t stamp_us;
        if (read(bench->fifo, &stamp_us, sizeof stamp_us) != sizeof stamp_us) {
            die("read of the FIFO");
        }
        latest_us = stamp_us > latest_us ? stamp_us : latest_us;
    }
    return latest_us;
}

static void await_success(const struct bench *bench, const char *id)
{
    char path[128];
    snprintf(path, sizeof path, "/v1/jobs/%s?wait=20", id);
    autojson json_t *view = ask(bench, "GET", path, NULL);
    const char *state = json_string_value(json_object_get(view, "state"));
    if (state == NULL || strcmp(state, "SUCCEEDED") != 0) {
        fprintf(stderr, "a job ended %s\n", state ? state : "without a state");
        exit(1);
    }
}

static int64_t take_start_us(const struct bench *bench)
{
    const int64_t begin_us = clock_boot_us();
    autojson json_t *job = ask(bench, "POST", "/v1/jobs", bench->body);
    const int64_t took_us = read_stamps(bench) - begin_us;
    await_success(bench, json_string_value(json_object_get(job, "id")));
    return took_us;
}

/* What the last one has left to do is done, so that neither pays for the other. */
static void be_idle(void)
{
    nanosleep(&(struct timespec){.tv_nsec = IDLE_MS * 1000000}, NULL);
}

static void take_pair(const struct bench *bench, double pair[SERIES])
{
    be_idle();
    const struct floor_times times = floor_take(bench->floor);
    be_idle();
    pair[START] = (double)take_start_us(bench);
    pair[FLOOR] = (double)(times.stamped_us - times.begin_us);
    pair[RATIO] = pair[START] / pair[FLOOR];
    pair[EXCHANGE] = (double)(times.answered_us - times.begin_us);
    pair[SYNC] = (double)(times.synced_us - times.answered_us);
    pair[ORDER] = (double)(times.ordered_us - times.synced_us);
    pair[SPAWN] = (double)(times.stamped_us - times.ordered_us);
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int connect_to(int port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        die("connect");
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* Of one series over all pairs. */
static double percentile(const double *pairs, int count, enum series of, int percent)
{
    autofree double *values = xzalloc((size_t)count * sizeof *values);
    for (int i = 0; i < count; i++) {
        values[i] = pairs[i * SERIES + of];
    }
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count * percent / 100];
}

static void print_figures(const double *pairs, int count)
{
    printf("{\"ratio\": %.2f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"floor_ms\": %.3f, \"floor_parts_ms\": "
           "{\"exchange\": %.3f, \"sync\": %.3f, \"order\": %.3f, \"spawn\": %.3f}}\n",
           percentile(pairs, count, RATIO, 50), percentile(pairs, count, START, 50) / 1000,
           percentile(pairs, count, START, 99) / 1000, percentile(pairs, count, FLOOR, 50) / 1000,
           percentile(pairs, count, EXCHANGE, 50) / 1000, percentile(pairs, count, SYNC, 50) / 1000,
           percentile(pairs, count, ORDER, 50) / 1000, percentile(pairs, count, SPAWN, 50) / 1000);
}

static void open_bench(struct bench *bench, char **words)
{
    autofree char *fifo = xprintf("%s/fifo", words[4]);
    if (mkfifo(fifo, 0600) != 0) {
        die("mkfifo");
    }
    bench->fd = connect_to((int)strtol(words[1], NULL, 10));
    bench->fifo = open(fifo, O_RDWR | O_CLOEXEC);
    bench->gpus = (int)strtol(words[5], NULL, 10);
    bench->body = xprintf("{\"command\": [\"%s\", \"%s\"], \"gpus\": %d, \"name\": \"start\"}", words[3],
                          fifo, bench->gpus);
    bench->floor = floor_create(words[4], words[3], fifo, bench->fifo, bench->gpus);
}

int main(int argc, char **argv)
{
    struct err err;
    char *token;
    if (argc != 7 || !file_read(argv[2], 4096, &token, NULL, &err)) {
        fprintf(stderr, "usage: bench-start PORT TOKEN-FILE STAMP-PROGRAM FOLDER GPUS COUNT\n");
        return 2;
    }
    token[strcspn(token, "\r\n")] = '\0';
    const int count = (int)strtol(argv[6], NULL, 10);
    struct bench bench = {.token = token};
    open_bench(&bench, argv);
    double *pairs = xzalloc((size_t)(WARM_UP + count) * SERIES * sizeof *pairs);
    for (int i = 0; i < WARM_UP + count; i++) {
        take_pair(&bench, pairs + i * SERIES);
    }
    print_figures(pairs + WARM_UP * SERIES, count);
    return 0;
}
