/* SPDX-License-Identifier: Apache-2.0 */
/* The loop on one libcurl multi handle, the person's interrupts, and the notes when the controller goes
 * away. It promises that only api_turn blocks. transfer.c moves the bytes of one exchange; request.c makes
 * requests of JSON. */
#include "client/cli/transport/api.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/cli/transport/api_parts.h"
#include "client/cli/show/print.h"
#include "proto/base/clock.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"

struct api *api_create(struct context *context)
{
    struct api *api = xzalloc(sizeof *api);
    api->context = *context;
    *context = (struct context){0};
    api->signal_fd = -1;
    curl_use_begin(CURL_GLOBAL_NOTHING);
    api->multi = curl_use_multi();
    return api;
}

void api_destroy(struct api *api)
{
    if (api == NULL) {
        return;
    }
    curl_multi_cleanup(api->multi);
    if (api->signal_fd >= 0) {
        close(api->signal_fd);
    }
    context_finish(&api->context);
    free(api);
}

const struct context *api_context(const struct api *api)
{
    return &api->context;
}

/* --- the loop --- */

static void collect_done(struct api *api)
{
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(api->multi, &left)) != NULL) {
        transfer_end(message->easy_handle, message->data.result);
        api->active = true;
    }
}

static void perform(struct api *api)
{
    int running;
    curl_use_must_multi(curl_multi_perform(api->multi, &running));
    collect_done(api);
}

static void collect_interrupts(struct api *api)
{
    struct signalfd_siginfo info;
    while (api->signal_fd >= 0 && read(api->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        api->interrupts++;
        api->active = true;
    }
}

void api_watch(struct api *api, const int *files, size_t count)
{
    api->watched_count = count < API_WATCHED ? count : API_WATCHED;
    for (size_t i = 0; i < api->watched_count; i++) {
        api->watched[i] = files[i];
    }
}

static void wait_for_files(struct api *api, int64_t timeout_ms)
{
    struct curl_waitfd files[API_WATCHED + 1];
    unsigned count = 0;
    for (size_t i = 0; i < api->watched_count; i++) {
        files[count++] = (struct curl_waitfd){.fd = api->watched[i], .events = CURL_WAIT_POLLIN};
    }
    if (api->signal_fd >= 0) {
        files[count++] = (struct curl_waitfd){.fd = api->signal_fd, .events = CURL_WAIT_POLLIN};
    }
    curl_use_must_multi(curl_multi_poll(api->multi, files, count, (int)timeout_ms, NULL));
}

void api_turn(struct api *api, int64_t timeout_ms)
{
    api->active = false;
    perform(api);
    collect_interrupts(api);
    if (api->active || timeout_ms <= 0) {
        return;
    }
    wait_for_files(api, timeout_ms);
    perform(api);
    collect_interrupts(api);
}

void api_pause(struct api *api, int64_t ms)
{
    int interrupts = api->interrupts;
    int64_t end = clock_boot_ms() + ms;
    for (int64_t now = clock_boot_ms(); now < end && api->interrupts == interrupts; now = clock_boot_ms()) {
        api_turn(api, end - now);
    }
}

int64_t api_next_pause(int64_t pause_ms)
{
    return 2 * pause_ms < CLIENT_BACKOFF_MAX_MS ? 2 * pause_ms : CLIENT_BACKOFF_MAX_MS;
}

bool api_catch_interrupts(struct api *api, struct err *err)
{
    sigset_t caught;
    sigemptyset(&caught);
    sigaddset(&caught, SIGINT);
    sigaddset(&caught, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &caught, NULL) != 0) {
        return err_errno(err, "cannot block signals");
    }
    api->signal_fd = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
    return api->signal_fd >= 0 || err_errno(err, "cannot watch for signals");
}

int api_interrupts(const struct api *api)
{
    return api->interrupts;
}

void api_refresh(struct api *api)
{
    context_refresh(&api->context);
}

void api_lost(struct api *api, const struct err *why)
{
    if (!api->lost) {
        api->lost = true;
        print_note("%s; trying again", why->text);
    }
    api_refresh(api);
}

void api_found(struct api *api)
{
    if (api->lost) {
        api->lost = false;
        print_note("the controller at %s answers again", api->context.url);
    }
}
