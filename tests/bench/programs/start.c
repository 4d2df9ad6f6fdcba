/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the `start` bench: submits one job after another to an idle cluster over one connection, and
 * measures from just before the request is written to the first instruction of the slowest rank, which the
 * rank itself stamps. Prints p50 and p99 in milliseconds as JSON.
 *
 *     bench-start PORT TOKEN-FILE STAMP-PROGRAM FIFO GPUS COUNT */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

struct bench {
    int fd;
    int fifo;
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

static double one_start(const struct bench *bench)
{
    const int64_t begin_us = clock_boot_us();
    json_t *job = ask(bench, "POST", "/v1/jobs", bench->body);
    int64_t latest_us = 0;
    for (int rank = 0; rank < bench->gpus; rank++) {
        int64_t stamp_us;
        if (read(bench->fifo, &stamp_us, sizeof stamp_us) != sizeof stamp_us) {
            die("read of the FIFO");
        }
        latest_us = stamp_us > latest_us ? stamp_us : latest_us;
    }
    const char *state = "";
    json_t *view = job;
    char path[128];
    snprintf(path, sizeof path, "/v1/jobs/%s?wait=20", json_string_value(json_object_get(job, "id")));
    view = ask(bench, "GET", path, NULL);
    state = json_string_value(json_object_get(view, "state"));
    if (state == NULL || strcmp(state, "SUCCEEDED") != 0) {
        fprintf(stderr, "a job ended %s\n", state ? state : "without a state");
        exit(1);
    }
    json_decref(view);
    json_decref(job);
    return (double)(latest_us - begin_us) / 1000.0;
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

int main(int argc, char **argv)
{
    struct err err;
    char *token;
    if (argc != 7 || !file_read(argv[2], 4096, &token, NULL, &err)) {
        fprintf(stderr, "usage: bench-start PORT TOKEN-FILE STAMP-PROGRAM FIFO GPUS COUNT\n");
        return 2;
    }
    token[strcspn(token, "\r\n")] = '\0';
    const int count = (int)strtol(argv[6], NULL, 10), warm_up = 10;
    if (mkfifo(argv[4], 0600) != 0) {
        die("mkfifo");
    }
    struct bench bench = {.fd = connect_to((int)strtol(argv[1], NULL, 10)),
                          .fifo = open(argv[4], O_RDWR | O_CLOEXEC),
                          .token = token,
                          .gpus = (int)strtol(argv[5], NULL, 10)};
    bench.body = xprintf("{\"command\": [\"%s\", \"%s\"], \"gpus\": %d, \"name\": \"start\"}", argv[3],
                         argv[4], bench.gpus);
    double *times = xzalloc((size_t)count * sizeof *times);
    for (int i = 0; i < warm_up + count; i++) {
        double ms = one_start(&bench);
        if (i >= warm_up) {
            times[i - warm_up] = ms;
        }
    }
    qsort(times, (size_t)count, sizeof *times, by_size);
    printf("{\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"count\": %d}\n", times[count / 2], times[count * 99 / 100],
           count);
    free(times);
    free(bench.body);
    free(token);
    return 0;
}
