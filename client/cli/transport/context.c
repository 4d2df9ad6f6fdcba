/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the controller: by flags, then environment, files, and the user's own instance. It promises that a
 * token never travels in the clear to another host unless that was allowed by name. instance.c knows the
 * instance. */
#include "client/cli/transport/context.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/transport/instance.h"
#include "client/cli/login/saved_context.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/settings/settings.h"
#include "proto/base/text/text.h"

#define TOKEN_BYTES 4096

/* The client's settings, as far as they are known. */
struct known {
    struct settings *settings;
    const char *url, *token_file, *cacert, *state;
    bool plain_allowed;
    char *cause; /* of the URL; owned, or NULL */
};

#define SETTING_COUNT 5

static void fill_table(struct known *known, struct option_spec table[SETTING_COUNT])
{
    const struct option_spec filled[SETTING_COUNT] = {
        {.name = "url", .kind = OPTION_TEXT, .target = &known->url},
        {.name = "token-file", .kind = OPTION_TEXT, .target = &known->token_file},
        {.name = "cacert", .kind = OPTION_TEXT, .target = &known->cacert, .alias = "ca-file"},
        {.name = "state", .kind = OPTION_TEXT, .target = &known->state},
        {.name = "insecure-plain-http", .kind = OPTION_FLAG, .target = &known->plain_allowed},
    };
    memcpy(table, filled, sizeof filled);
}

void context_name_settings(FILE *out)
{
    struct known unused;
    struct option_spec table[SETTING_COUNT];
    fill_table(&unused, table);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        fprintf(out, "%s%s", i > 0 ? ", " : "", table[i].name);
    }
}

/* Flags first, then the settings. */
static bool know(const struct common *common, struct known *known, struct err *err)
{
    struct option_spec table[SETTING_COUNT];
    *known = (struct known){.settings = settings_load(SETTINGS_CLIENT, NULL, err)};
    fill_table(known, table);
    if (known->settings == NULL || !settings_apply(known->settings, table, SETTING_COUNT, NULL, err)) {
        return false;
    }
    known->cause = common->url != NULL ? xstrdup("--url") : settings_cause(known->settings, &table[0]);
    known->url = common->url != NULL ? common->url : known->url;
    known->token_file = common->token_file != NULL ? common->token_file : known->token_file;
    known->cacert = common->cacert != NULL ? common->cacert : known->cacert;
    known->state = common->state != NULL ? common->state : known->state;
    known->plain_allowed = common->insecure_plain_http || known->plain_allowed;
    return true;
}

static void finish_known(struct known *known)
{
    settings_destroy(known->settings);
    free(known->cause);
}
#define autoknown __attribute__((cleanup(finish_known)))

static char *find_state(const struct known *known)
{
    if (known->state == NULL) {
        return settings_state_directory();
    }
    return file_absolute(known->state);
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

bool context_is_loopback(const char *url)
{
    const char *host = strstr(url, "://");
    return host != NULL && is_loopback(host + 3, host_length(host + 3));
}

bool context_check_url(const char *url, bool plain_allowed, struct err *err)
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

char *context_read_token(const char *path, struct err *err)
{
    autofree char *token = NULL;
    if (!file_read(path, TOKEN_BYTES, &token, NULL, err)) {
        err->code = ERR_UNAUTHENTICATED;
        err_hint(err, "name the file that holds your token with --token-file or GPUCTL_TOKEN_FILE");
        return NULL;
    }
    token[strcspn(token, " \t\r\n")] = '\0';
    for (const char *at = token; *at != '\0'; at++) {
        if (*at < 0x21 || *at > 0x7e) {
            err_field(err, ERR_UNAUTHENTICATED, "token-file", NULL, "%s does not hold a token", path);
            return NULL;
        }
    }
    return give(token);
}

char *context_trim_url(const char *url)
{
    size_t length = strlen(url);
    while (length > 0 && url[length - 1] == '/') {
        length--;
    }
    return xstrndup(url, length);
}

/* --- which controller --- */

static bool load_named(const char *url, const struct known *known, struct context *context, struct err *err)
{
    if (!context_check_url(url, known->plain_allowed, err)) {
        return false;
    }
    if (known->token_file == NULL) {
        return err_field(err, ERR_UNAUTHENTICATED, "token-file",
                         "name the file that holds your token with --token-file or GPUCTL_TOKEN_FILE",
                         "there is no token for %s", url);
    }
    context->url = context_trim_url(url);
    context->cacert = known->cacert != NULL ? xstrdup(known->cacert) : NULL;
    context->token_file = xstrdup(known->token_file);
    context->cause = xstrdup(known->cause);
    context->token = context_read_token(known->token_file, err);
    return context->token != NULL;
}

static bool load_own(struct context *context, struct err *err)
{
    context->embedded = true;
    context->url = instance_url(context->state);
    if (context->url == NULL) {
        err_set(err, ERR_UNREACHABLE, "no controller is named, and none of your own runs");
        return err_hint(err, "start one with `gpuctl up`, or name one with --url or GPUCTL_URL");
    }
    context->token_file = instance_token_file(context->state);
    context->cause = xprintf("your own instance in %s", context->state);
    context->token = context_read_token(context->token_file, err);
    return context->token != NULL;
}

/* Options win over what is saved. */
static bool load_saved(const struct saved_context *saved, const struct common *options,
                       struct context *context, struct err *err)
{
    const struct known known = {
        .token_file = options->token_file != NULL ? options->token_file : saved->token_file,
        .cacert = options->cacert != NULL ? options->cacert : saved->cacert,
        .plain_allowed = options->insecure_plain_http || saved->plain_allowed,
        .cause = xprintf("the context \"%s\"", saved->name != NULL ? saved->name : SAVED_CONTEXT_DEFAULT),
    };
    bool loaded = load_named(saved->url, &known, context, err);
    free(known.cause);
    return loaded;
}

bool context_load_saved(const struct saved_context *saved, struct context *ret_context, struct err *err)
{
    *ret_context = (struct context){0};
    bool loaded = load_saved(saved, &(const struct common){0}, ret_context, err);
    if (!loaded) {
        context_finish(ret_context);
    }
    return loaded;
}

/* The context in use is called so while it has no name. */
static bool find_unnamed(const char *name, struct saved_context *ret_saved)
{
    autosaved_context struct saved_context named = {.name = NULL};
    return strcmp(name, SAVED_CONTEXT_DEFAULT) == 0 && !saved_context_read(name, &named) &&
           saved_context_used(ret_saved) && ret_saved->name == NULL;
}

static bool load_chosen(const struct common *common, struct context *context, struct err *err)
{
    autosaved_context struct saved_context saved = {.name = NULL};
    if (common->url != NULL) {
        return err_field(err, ERR_USAGE, "context", "leave out one of the two",
                         "--context and --url both name a controller");
    }
    if (!find_unnamed(common->context, &saved)) {
        saved_context_finish(&saved);
        if (!saved_context_find(common->context, &saved, err)) {
            return false;
        }
    }
    return load_saved(&saved, common, context, err);
}

bool context_load_state(const struct common *common, struct context *ret_context, struct err *err)
{
    autoknown struct known known;
    *ret_context = (struct context){0};
    if (!know(common, &known, err)) {
        return false;
    }
    ret_context->state = find_state(&known);
    return true;
}

bool context_load(const struct common *common, struct context *ret_context, struct err *err)
{
    autoknown struct known known;
    *ret_context = (struct context){0};
    if (!know(common, &known, err)) {
        return false;
    }
    ret_context->state = find_state(&known);
    /* who names a state folder means the instance there, whatever the settings say */
    const char *url = common->url != NULL || common->state == NULL ? known.url : NULL;
    bool loaded = common->context != NULL ? load_chosen(common, ret_context, err)
                  : url != NULL           ? load_named(url, &known, ret_context, err)
                                          : load_own(ret_context, err);
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
    free(context->token_file);
    free(context->cause);
    free(context->cacert);
    free(context->state);
    *context = (struct context){0};
}
