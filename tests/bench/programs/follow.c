/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of the `logs` bench: one connection a rank, each of which follows the rank's stdout as an event
 * stream to its end. It is as lean as a client can be (chunks and lines are taken apart, texts are measured
 * and not decoded), so that what is measured is the way of the bytes to the client; `gpuctl logs` decodes
 * JSON. Prints how many bytes of output each rank had, as a JSON array.
 *
 *     bench-follow PORT TOKEN-FILE JOB RANKS
 *
 * The output must need no escapes but those of line ends, each of which is two bytes on its way. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

#define MOST_RANKS 1024
#define READ_BYTES (256 << 10)

struct reader {
    int fd;
    bool headers_over;
    size_t chunk;     /* bytes of the chunk that are still to come */
    struct text raw;  /* what is not taken apart yet: headers, or the frame of a chunk */
    struct text line; /* an event's line that is not whole */
    uint64_t bytes;   /* of output */
    bool over;        /* the event that closes the stream has come */
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* data: {..., "text": "..."}: a backslash stands for one byte with the letter behind it. */
static void take_line(struct reader *reader, const char *line, size_t length)
{
    static const char key[] = "\"text\":";
    if (length >= 10 && memcmp(line, "event: end", 10) == 0) {
        reader->over = true;
    }
    if (length < 6 || memcmp(line, "data: ", 6) != 0 || reader->over) {
        return;
    }
    const char *found = memmem(line, length, key, sizeof key - 1);
    const char *end = memrchr(line, '"', length);
    const char *text = found != NULL ? memchr(found + sizeof key - 1, '"',
                                              length - (size_t)(found - line) - (sizeof key - 1))
                                     : NULL;
    if (text == NULL || end <= text) {
        fail("an event without text", line);
        return;
    }
    text++;
    reader->bytes += (uint64_t)(end - text);
    for (const char *at = text; (at = memchr(at, '\\', (size_t)(end - at))) != NULL; at += 2) {
        reader->bytes--;
    }
}

/* The content of the chunks, in pieces of any size. */
static void take_content(struct reader *reader, const char *bytes, size_t length)
{
    while (length > 0) {
        const char *end = memchr(bytes, '\n', length);
        if (end == NULL) {
            text_append_bytes(&reader->line, bytes, length);
            return;
        }
        size_t part = (size_t)(end - bytes);
        if (reader->line.length > 0) {
            text_append_bytes(&reader->line, bytes, part);
            take_line(reader, reader->line.bytes, reader->line.length);
            text_clear(&reader->line);
        } else {
            take_line(reader, bytes, part);
        }
        bytes += part + 1;
        length -= part + 1;
    }
}

/* What stands before content: headers, then "\r\n", the size in hex, "\r\n". One byte at a time, for it is
 * short. */
static void take_frame(struct reader *reader, char byte)
{
    struct text *raw = &reader->raw;
    text_append_bytes(raw, &byte, 1);
    if (!reader->headers_over) {
        if (raw->length >= 4 && memcmp(raw->bytes + raw->length - 4, "\r\n\r\n", 4) == 0) {
            if (strncmp(raw->bytes, "HTTP/1.1 200", 12) != 0 || strcasestr(raw->bytes, "chunked") == NULL) {
                fail("an answer that is no stream", raw->bytes);
            }
            reader->headers_over = true;
            text_clear(raw);
        }
    } else if (byte == '\n' && raw->length > 2) {
        reader->chunk = strtoul(raw->bytes, NULL, 16);
        text_clear(raw);
    }
}

static void take(struct reader *reader, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t part = 1;
        if (reader->chunk == 0) {
            take_frame(reader, *bytes);
        } else {
            part = length < reader->chunk ? length : reader->chunk;
            take_content(reader, bytes, part);
            reader->chunk -= part;
        }
        bytes += part;
        length -= part;
    }
}

static void open_reader(struct reader *reader, int epoll, int port, const char *token, const char *job,
                        int rank)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = reader};
    char *request = xprintf("GET /v1/jobs/%s/logs?rank=%d&stream=stdout HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                            "Authorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n",
                            job, rank, port, token);
    reader->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (reader->fd < 0 || connect(reader->fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        send(reader->fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request) ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, reader->fd, &event) != 0) {
        die("connect");
    }
    free(request);
}

/* Until every stream has ended. */
static void drive(int epoll, int64_t left)
{
    char *bytes = xalloc(READ_BYTES);
    while (left > 0) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            struct reader *reader = events[i].data.ptr;
            ssize_t got = recv(reader->fd, bytes, READ_BYTES, 0);
            if (got <= 0) {
                fail("a stream", "broke off");
            }
            take(reader, bytes, (size_t)got);
            if (reader->over) {
                close(reader->fd);
                left--;
            }
        }
    }
    free(bytes);
}

int main(int argc, char **argv)
{
    struct err err;
    char *token;
    int64_t port, ranks;
    if (argc != 5 || !text_to_int(argv[1], 1, 65535, &port) || !text_to_int(argv[4], 1, MOST_RANKS, &ranks) ||
        !file_read(argv[2], 4096, &token, NULL, &err)) {
        fprintf(stderr, "usage: bench-follow PORT TOKEN-FILE JOB RANKS\n");
        return 2;
    }
    token[strcspn(token, "\r\n")] = '\0';
    struct reader *readers = xzalloc((size_t)ranks * sizeof *readers);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int64_t rank = 0; rank < ranks; rank++) {
        open_reader(&readers[rank], epoll, (int)port, token, argv[3], (int)rank);
    }
    drive(epoll, ranks);
    for (int64_t rank = 0; rank < ranks; rank++) {
        printf("%s%" PRIu64, rank == 0 ? "[" : ", ", readers[rank].bytes);
        text_finish(&readers[rank].raw);
        text_finish(&readers[rank].line);
    }
    printf("]\n");
    free(readers);
    free(token);
    return 0;
}
