/* SPDX-License-Identifier: Apache-2.0 */
/* A server on loopback in the loop under test, for tests of the agent's requests. It understands as much
 * HTTP as curl sends: a head, then Content-Length bytes. */
#include "tests/unit/agent/agent_rig.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"

#define LATE_MS 20000

struct rig_connection {
    struct loop_watch watch;
    struct text received;
    struct rig_connection *prev, *next;
};

struct rig rig;

/* --- the server ----------------------------------------------------------------------------------------- */

static void hang_up(struct rig_connection *connection)
{
    loop_unwatch(rig.loop, &connection->watch);
    close(connection->watch.fd);
    DL_DELETE(rig.connections, connection);
    text_finish(&connection->received);
    free(connection);
}

static size_t body_length(const char *head)
{
    const char *field = strcasestr(head, "content-length:");
    return field != NULL ? strtoul(field + strlen("content-length:"), NULL, 10) : 0;
}

static struct rig_request *note(const char *head, const char *body, size_t length)
{
    rig.requests = xrealloc(rig.requests, (rig.request_count + 1) * sizeof *rig.requests);
    struct rig_request *request = &rig.requests[rig.request_count++];
    *request = (struct rig_request){0};
    ck_assert_int_eq(sscanf(head, "%7s %255s", request->method, request->target), 2);
    const char *bearer = strstr(head, "Bearer ");
    if (bearer != NULL) {
        ck_assert_int_eq(sscanf(bearer, "Bearer %79s", request->token), 1);
    }
    text_append_bytes(&request->body, body, length);
    return request;
}

static bool reply(struct rig_connection *connection, struct rig_answer answer)
{
    const char *body = answer.body != NULL ? answer.body : "{}";
    if (answer.status == 0) {
        hang_up(connection);
        return false;
    }
    bool redirects = answer.status / 100 == 3 && rig.location != NULL;
    autofree char *location = redirects ? xprintf("Location: %s\r\n", rig.location) : xstrdup("");
    autofree char *text = xprintf("HTTP/1.1 %d Said\r\nContent-Type: application/json\r\n"
                                  "%sContent-Length: %zu\r\n\r\n%s",
                                  answer.status, location, strlen(body), body);
    bool whole = rig.cut == 0;
    size_t length = whole ? strlen(text) : rig.cut;
    ck_assert_int_eq(send(connection->watch.fd, text, length, MSG_NOSIGNAL), length);
    if (!whole) {
        hang_up(connection);
    }
    return whole;
}

/* Works in one request; false when there is none, or the connection is gone. */
static bool work(struct rig_connection *connection)
{
    const char *bytes = connection->received.bytes;
    const char *end = bytes != NULL ? strstr(bytes, "\r\n\r\n") : NULL;
    if (end == NULL) {
        return false;
    }
    autofree char *head = xstrndup(bytes, (size_t)(end - bytes));
    size_t begin = (size_t)(end - bytes) + 4, length = rig.early ? 0 : body_length(head);
    if (connection->received.length < begin + length) {
        return false;
    }
    const struct rig_request *request = note(head, bytes + begin, length);
    struct text rest = {0};
    text_append_bytes(&rest, bytes + begin + length, connection->received.length - begin - length);
    text_finish(&connection->received);
    connection->received = rest;
    return reply(connection, rig.answer(&rig, request));
}

static void connection_ready(void *closure, uint32_t events)
{
    struct rig_connection *connection = closure;
    char bytes[64 * 1024];
    ssize_t got = recv(connection->watch.fd, bytes, sizeof bytes, 0);
    if (got <= 0) {
        hang_up(connection);
        return;
    }
    text_append_bytes(&connection->received, bytes, (size_t)got);
    while (work(connection)) {
    }
}

static void accept_ready(void *closure, uint32_t events)
{
    struct rig_connection *connection = xzalloc(sizeof *connection);
    connection->watch = (struct loop_watch){.fd = accept4(rig.listener, NULL, NULL, SOCK_CLOEXEC),
                                            .events = EPOLLIN,
                                            .ready = connection_ready,
                                            .closure = connection};
    DL_APPEND(rig.connections, connection);
    rig.connection_count++;
    loop_watch(rig.loop, &connection->watch);
}

static int listen_on_loopback(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    rig.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(rig.listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(rig.listener, 16), 0);
    ck_assert_int_eq(getsockname(rig.listener, (struct sockaddr *)&address, &size), 0);
    rig.accepts = (struct loop_watch){.fd = rig.listener, .events = EPOLLIN, .ready = accept_ready};
    loop_watch(rig.loop, &rig.accepts);
    return ntohs(address.sin_port);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static struct rig_answer fine(struct rig *unused, const struct rig_request *request)
{
    return (struct rig_answer){.status = 200};
}

static char url[64], token[80];

void rig_setup(void)
{
    struct err err = {0};
    rig = (struct rig){.folder = "/tmp/unit-agent-XXXXXX", .answer = fine};
    ck_assert_ptr_nonnull(mkdtemp(rig.folder));
    rig.loop = loop_create();
    snprintf(url, sizeof url, "http://127.0.0.1:%d", listen_on_loopback());
    snprintf(token, sizeof token, "%s/token", rig.folder);
    rig_write_text("token", "secret\n");
    rig.controller = controller_client_create(
        &(struct controller_client_config){.url = url, .token_file = token}, rig.loop, &err);
    ck_assert_msg(rig.controller != NULL, "%s", err.text);
}

void rig_teardown(void)
{
    controller_client_destroy(rig.controller);
    while (rig.connections != NULL) {
        hang_up(rig.connections);
    }
    loop_unwatch(rig.loop, &rig.accepts);
    close(rig.listener);
    loop_destroy(rig.loop);
    for (size_t i = 0; i < rig.request_count; i++) {
        text_finish(&rig.requests[i].body);
    }
    free(rig.requests);
    text_finish(&rig.reply);
    ck_assert(file_remove_tree(rig.folder, NULL));
}

/* With what did come. */
static void too_late(void *closure)
{
    struct text heard = {0};
    for (size_t i = 0; i < rig.request_count; i++) {
        const struct rig_request *request = &rig.requests[i];
        text_printf(&heard, "\n%s %s %.300s", request->method, request->target,
                    request->body.length > 0 ? request->body.bytes : "");
    }
    ck_abort_msg("nothing came of it in %d ms, after%s", LATE_MS,
                 heard.length > 0 ? heard.bytes : " no request");
}

/* What is done when nothing else is begins after the first event. */
static void first_event(void *closure)
{
}

void rig_run(void)
{
    rig.first = (struct loop_timer){.due = first_event};
    loop_arm(rig.loop, &rig.first, clock_boot_ms() + 1);
    rig.late = (struct loop_timer){.due = too_late};
    loop_arm(rig.loop, &rig.late, clock_boot_ms() + LATE_MS);
    loop_run(rig.loop);
    loop_disarm(rig.loop, &rig.late);
    loop_disarm(rig.loop, &rig.first);
}

/* --- files ---------------------------------------------------------------------------------------------- */

char *rig_path(const char *name)
{
    return xprintf("%s/%s", rig.folder, name);
}

void rig_write(const char *name, const void *bytes, size_t length)
{
    autofree char *path = rig_path(name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    ck_assert(file_make_directories(path, 0700, NULL));
    *slash = '/';
    autoclose int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(file, 0);
    for (size_t done = 0; done < length;) {
        ssize_t wrote = write(file, (const char *)bytes + done, length - done);
        ck_assert_int_gt(wrote, 0);
        done += (size_t)wrote;
    }
}

void rig_write_text(const char *name, const char *text)
{
    rig_write(name, text, strlen(text));
}

char *rig_bytes(size_t length)
{
    char *bytes = xalloc(length + 1);
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (char)(i * 31 + i / 251);
    }
    return bytes;
}
