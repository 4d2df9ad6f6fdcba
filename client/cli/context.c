/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the choice of the controller. It promises the order flags, environment, files, own instance, and that
 * a token never travels in the clear to another host unless that was allowed by name. The instance itself is
 * instance.c's. */
#include "client/cli/context.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/instance.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/settings.h"
#include "proto/base/text.h"

#define TOKEN_BYTES 4096

static void cleanup_settings(struct settings **settings)
{
    settings_destroy(*settings);
}

/* The flag, else the setting, else NULL. */
static const char *choose(const char *flag, const struct settings *settings, const char *name)
{
    return flag != NULL ? flag : settings_get(settings, name);
}

static char *find_state(const struct common *common, const struct settings *settings)
{
    const char *state = choose(common->state, settings, "state");
    if (state == NULL) {
        return settings_state_directory();
    }
    return file_absolute(state);
}

/* --- url and token --- */

static bool is_loopback(const char *host, size_t length)
{
    return (length == 9 && strncmp(host, "localhost", 9) == 0) ||
           (length == 5 && strncmp(host, "[::1]", 5) == 0) ||
           (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") >= length);
}

/* Length of the host part, the brackets of IPv6 included. */
static size_t host_length(const char *host)
{
    return host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");
}

static bool check_url(const char *url, bool plain_allowed, struct err *err)
{
    bool plain = strncmp(url, "http://", 7) == 0;
    if (!plain && strncmp(url, "https://", 8) != 0) {
        return err_field(err, ERR_USAGE, "url", "write it like https://gpu.example.org:7070",
                         "\"%s\" is not the URL of a controller", url);
    }
    const char *host = url + (plain ? 7 : 8);
    if (strpbrk(host, "@?#") != NULL || host_length(host) == 0) {
        return err_field(err, ERR_USAGE, "url", "name scheme, host and port only",
                         "\"%s\" is not the URL of a controller", url);
    }
    if (plain && !plain_allowed && !is_loopback(host, host_length(host))) {
        return err_field(err, ERR_USAGE, "url", "use https, or allow it with --insecure-plain-http",
                         "%s would carry the token unencrypted to another host", url);
    }
    return true;
}

static bool read_token(const char *path, char **ret_token, struct err *err)
{
    autofree char *token = NULL;
    if (!file_read(path, TOKEN_BYTES, &token, NULL, err)) {
        err->code = ERR_UNAUTHENTICATED;
        return err_hint(err, "name the file that holds your token with --token-file or GPUCTL_TOKEN_FILE");
    }
    token[strcspn(token, " \t\r\n")] = '\0';
    for (const char *at = token; *at != '\0'; at++) {
        if (*at < 0x21 || *at > 0x7e) {
            return err_field(err, ERR_UNAUTHENTICATED, "token-file", NULL, "%s does not hold a token", path);
        }
    }
    *ret_token = give(token);
    return true;
}

static char *without_slashes(const char *url)
{
    size_t length = strlen(url);
    while (length > 0 && url[length - 1] == '/') {
        length--;
    }
    return xstrndup(url, length);
}

/* --- which controller --- */

static bool load_named(const char *url, const struct common *common, const struct settings *settings,
                       struct context *context, struct err *err)
{
    const char *plain = settings_get(settings, "insecure_plain_http");
    bool plain_allowed = common->insecure_plain_http ||
                         (plain != NULL && (strcmp(plain, "true") == 0 || strcmp(plain, "1") == 0));
    if (!check_url(url, plain_allowed, err)) {
        return false;
    }
    const char *token_file = choose(common->token_file, settings, "token_file");
    if (token_file == NULL) {
        return err_field(err, ERR_UNAUTHENTICATED, "token-file",
                         "name the file that holds your token with --token-file or GPUCTL_TOKEN_FILE",
                         "there is no token for %s", url);
    }
    const char *ca_file = choose(common->ca_file, settings, "ca_file");
    context->url = without_slashes(url);
    context->ca_file = ca_file != NULL ? xstrdup(ca_file) : NULL;
    return read_token(token_file, &context->token, err);
}

static bool load_own(struct context *context, struct err *err)
{
    context->embedded = true;
    context->url = instance_url(context->state);
    if (context->url == NULL) {
        err_set(err, ERR_UNREACHABLE, "no controller is named, and none of your own runs");
        return err_hint(err, "start one with `gpuctl up`, or name one with --url or GPUCTL_URL");
    }
    autofree char *token_file = instance_token_file(context->state);
    return read_token(token_file, &context->token, err);
}

bool context_load_state(const struct common *common, struct context *ret_context, struct err *err)
{
    *ret_context = (struct context){0};
    __attribute__((cleanup(cleanup_settings))) struct settings *settings = settings_load(err);
    if (settings == NULL) {
        return false;
    }
    ret_context->state = find_state(common, settings);
    return true;
}

bool context_load(const struct common *common, struct context *ret_context, struct err *err)
{
    *ret_context = (struct context){0};
    __attribute__((cleanup(cleanup_settings))) struct settings *settings = settings_load(err);
    if (settings == NULL) {
        return false;
    }
    ret_context->state = find_state(common, settings);
    /* who names a state folder means the instance there, whatever the settings say */
    const char *url =
        common->url != NULL || common->state == NULL ? choose(common->url, settings, "url") : NULL;
    bool loaded =
        url != NULL ? load_named(url, common, settings, ret_context, err) : load_own(ret_context, err);
    if (!loaded) {
        context_finish(ret_context);
    }
    return loaded;
}

void context_refresh(struct context *context)
{
    char *url = context->embedded ? instance_url(context->state) : NULL;
    if (url != NULL) {
        free(context->url);
        context->url = url;
    }
}

void context_finish(struct context *context)
{
    if (context->token != NULL) {
        explicit_bzero(context->token, strlen(context->token));
    }
    free(context->url);
    free(context->token);
    free(context->ca_file);
    free(context->state);
    *context = (struct context){0};
}
