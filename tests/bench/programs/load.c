/* SPDX-License-Identifier: Apache-2.0 */
/* The load of several benches: a fixed number of keep-alive connections, each with one request under way, for
 * some seconds or until a number of requests is answered. It is as lean as redis-benchmark, so that what is
 * compared is the servers, which share the cores with it. Prints the answers a second; any answer but a 2xx
 * ends it, except those of a flood.
 *
 *     bench-load PORT CONNECTIONS AMOUNT gpuctl TOKEN [SPEC]   submissions of one spec, each with an
 *                                                              Idempotency-Key of its own
 *     bench-load PORT CONNECTIONS AMOUNT batch TOKEN JOBS      batches of so many submissions, each batch
 * with an Idempotency-Key of its own, each job with a name and arguments of its own; prints jobs a second
 *     bench-load PORT CONNECTIONS AMOUNT flood TOKEN METHOD PATH [BODY]
 *                                                              one request again and again
 *     bench-load PORT CONNECTIONS AMOUNT etcd                  puts of 400 bytes through the HTTP gateway,
 *                                                              each under a key of its own
 *
 * AMOUNT is a time, "4s", or a number of requests, "2000". */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/text/text.h"

#define REPLY_BYTES  4096
#define REST_BYTES   65536
#define NUMBER_WIDTH 12
#define HOLE         "############" /* so many digits */

/* What `gpuctl submit --gpus 1 --gpu-type cpu --name bench --time 1h --retries 1 -- python train.py --epochs
 * 10` sends. */
#define SUBMIT_BODY                                                                                          \
    "{\"command\":[\"python\",\"train.py\",\"--epochs\",\"10\"],\"gpus\":1,\"gpu_type\":\"cpu\",\"name\":"   \
    "\"bench\","                                                                                             \
    "\"time_limit_s\":3600,\"retries\":1}"

struct connection {
    int fd;
    size_t length; /* of the head of the reply as far as it has arrived, and what came with it */
    size_t left;   /* of the reply, once its head is there */
    char reply[REPLY_BYTES + 1];
};

struct load {
    char *request; /* the same for all but the number in it */
    size_t length;
    char *number; /* NUMBER_WIDTH digits within request; NULL: none */
    bool flood;   /* any answer will do */
    uint64_t next, answered;
    uint64_t most; /* requests that are sent */
    uint64_t jobs; /* in each of them */
    int epoll;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void send_next(struct load *load, const struct connection *connection)
{
    uint64_t rest = load->next;
    if (load->next++ >= load->most) {
        return;
    }
    for (int i = NUMBER_WIDTH - 1; i >= 0 && load->number != NULL; i--) {
        load->number[i] = (char)('0' + rest % 10);
        rest /= 10;
    }
    if (send(connection->fd, load->request, load->length, MSG_NOSIGNAL) != (ssize_t)load->length) {
        die("send");
    }
}

/* true once the head of the reply is there; then left is set. */
static bool read_head(const struct load *load, struct connection *connection)
{
    const char *end = strstr(connection->reply, "\r\n\r\n");
    const char *length = strcasestr(connection->reply, "content-length:");
    if (end == NULL) {
        return false;
    }
    if ((strncmp(connection->reply, "HTTP/1.1 2", 10) != 0 && !load->flood) || length == NULL) {
        fprintf(stderr, "an answer that is no success: %s\n", connection->reply);
        exit(1);
    }
    size_t whole = (size_t)(end + 4 - connection->reply) + strtoul(length + 15, NULL, 10);
    connection->left = whole - connection->length;
    connection->length = 0;
    return true;
}

static size_t receive(const struct connection *connection, char *out, size_t room)
{
    ssize_t got = recv(connection->fd, out, room, 0);
    if (got <= 0) {
        die("recv");
    }
    return (size_t)got;
}

static void take(struct load *load, struct connection *connection)
{
    char rest[REST_BYTES];
    if (connection->left > 0) {
        connection->left -=
            receive(connection, rest, connection->left < sizeof rest ? connection->left : sizeof rest);
    } else {
        connection->length +=
            receive(connection, connection->reply + connection->length, REPLY_BYTES - connection->length);
        connection->reply[connection->length] = '\0';
        if (!read_head(load, connection)) {
            return;
        }
    }
    if (connection->left == 0) {
        load->answered++;
        send_next(load, connection);
    }
}

static void open_connection(struct load *load, struct connection *connection, int port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int one = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->fd < 0 ||
        connect(connection->fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        die("connect");
    }
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->fd, &event);
    send_next(load, connection);
}

static void take_request(struct load *load, struct text *request)
{
    load->length = request->length;
    load->request = text_take(request);
    load->number = strstr(load->request, HOLE);
}

static void make_request(struct load *load, int port, const char *token, const char *spec)
{
    struct text request = {0};
    if (token != NULL) {
        text_printf(&request,
                    "POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer "
                    "%s\r\nContent-Type: application/json\r\n"
                    "Idempotency-Key: %lld-" HOLE "\r\nContent-Length: %zu\r\n\r\n%s",
                    port, token, (long long)clock_wall_ms(), strlen(spec), spec);
    } else { /* base64 of digits is digits read as base64: any 12 of them are 9 bytes */
        struct text body = {0};
        text_append(&body, "{\"key\":\"" HOLE "\",\"value\":\"");
        for (int i = 0; i < 133; i++) {
            text_append(&body, "QUJD");
        }
        text_append(&body, "\"}");
        text_printf(&request,
                    "POST /v3/kv/put HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: "
                    "application/json\r\nContent-Length: %zu\r\n\r\n%s",
                    port, body.length, body.bytes);
        text_finish(&body);
    }
    take_request(load, &request);
}

/* A job a line. */
static void make_batch(struct load *load, int port, const char *token)
{
    struct text body = {0}, request = {0};
    for (uint64_t i = 0; i < load->jobs; i++) {
        text_printf(&body,
                    "{\"command\":[\"python\",\"train.py\",\"--epochs\",\"%llu\"],\"gpus\":1,\"gpu_type\":"
                    "\"cpu\",\"name\":\"bench-%llu\",\"time_limit_s\":3600,\"retries\":1}\n",
                    (unsigned long long)i, (unsigned long long)i);
    }
    text_printf(&request,
                "POST /v1/jobs:batch HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer "
                "%s\r\nContent-Type: application/x-ndjson\r\n"
                "Idempotency-Key: %lld-" HOLE "\r\nContent-Length: %zu\r\n\r\n%s",
                port, token, (long long)clock_wall_ms(), body.length, body.bytes);
    text_finish(&body);
    take_request(load, &request);
}

static void make_flood(struct load *load, int port, char **words)
{
    struct text request = {0};
    const char *body = words[3] != NULL ? words[3] : "";
    text_printf(&request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n", words[1],
                words[2], port, words[0]);
    if (*body != '\0') {
        text_printf(&request, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    }
    text_printf(&request, "\r\n%s", body);
    load->flood = true;
    load->length = request.length;
    load->request = text_take(&request);
}

/* "4s" or "2000". */
static bool read_amount(const char *text, int64_t *ret_ms, uint64_t *ret_most)
{
    int64_t most;
    if (text_to_int(text, 1, 10000000, &most)) {
        *ret_most = (uint64_t)most;
        *ret_ms = INT64_MAX / 2000;
        return true;
    }
    *ret_most = UINT64_MAX;
    return text_to_duration_ms(text, ret_ms);
}

/* Until the time is over or all is answered; the answers a second. */
static double drive(struct load *load, int64_t begin_us, int64_t limit_ms)
{
    int64_t now_us = begin_us;
    while (now_us < begin_us + limit_ms * 1000 && load->answered < load->most) {
        struct epoll_event events[256];
        int ready = epoll_wait(load->epoll, events, 256, 1000);
        for (int i = 0; i < ready; i++) {
            take(load, events[i].data.ptr);
        }
        now_us = clock_boot_us();
    }
    return (double)(load->answered * load->jobs) * 1e6 / (double)(now_us - begin_us);
}

int main(int argc, char **argv)
{
    bool ours = argc >= 6 && argc <= 7 && strcmp(argv[4], "gpuctl") == 0;
    bool flood = argc >= 8 && argc <= 9 && strcmp(argv[4], "flood") == 0;
    bool batch = argc == 7 && strcmp(argv[4], "batch") == 0;
    bool etcd = argc == 5 && strcmp(argv[4], "etcd") == 0;
    int64_t port = 0, count = 0, limit_ms = 0, jobs = 1;
    struct load load = {.epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (!(ours || batch || etcd || flood) || (batch && !text_to_int(argv[6], 1, 100000, &jobs)) ||
        !text_to_int(argv[1], 1, 65535, &port) || !text_to_int(argv[2], 1, 1024, &count) ||
        !read_amount(argv[3], &limit_ms, &load.most)) {
        fprintf(stderr, "usage: bench-load PORT CONNECTIONS AMOUNT gpuctl TOKEN [SPEC] | "
                        "batch TOKEN JOBS | etcd | flood TOKEN METHOD PATH [BODY]\n");
        return 2;
    }
    struct connection *connections = xzalloc((size_t)count * sizeof *connections);
    load.jobs = (uint64_t)jobs;
    if (batch) {
        make_batch(&load, (int)port, argv[5]);
    } else if (flood) {
        make_flood(&load, (int)port, argv + 5);
    } else {
        make_request(&load, (int)port, ours ? argv[5] : NULL, argc == 7 ? argv[6] : SUBMIT_BODY);
    }
    const int64_t begin_us = clock_boot_us();
    for (int64_t i = 0; i < count; i++) {
        open_connection(&load, &connections[i], (int)port);
    }
    printf("%.1f\n", drive(&load, begin_us, limit_ms));
    free(connections);
    free(load.request);
    return 0;
}
