/* SPDX-License-Identifier: Apache-2.0 */
/* Runs gpuctl_environment.py. An environment is built once for all orders that want it. At most LIMIT_BUILDS
 * builds run at once; orders of the others are told that they wait. A build gets only those variables of the
 * agent that pip needs. A builder that ends without a result counts as a failure of the node. environments.c
 * decides which environments to keep. */
#include "agent/environment/builder.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define REQUIREMENTS_FD "/dev/fd/3"
#define WAITS           "waits for other environments that this node builds"

/* Variables of the agent that builds get, besides PIP_*. Proxies in both spellings. */
static const char *const passed_names[] = {
    "PATH",        "HOME",      "LANG",       "LC_ALL",    "TMPDIR",       "LD_LIBRARY_PATH",
    "http_proxy",  "no_proxy",  "HTTP_PROXY", "NO_PROXY",  "https_proxy",  "SSL_CERT_FILE",
    "HTTPS_PROXY", "CUDA_HOME", "all_proxy",  "ALL_PROXY", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
};
#define PASSED_PREFIX "PIP_"

/* One environment, for all orders that want it. */
struct build {
    struct builder *builder;
    char *name, *interpreter, *python_version; /* the last may be NULL */
    int requirements;
    struct child *child; /* NULL: it waits for its turn */
    struct build_order *orders;
    bool ready, failed; /* the builder's last result */
    enum build_end end; /* if it failed */
    char *text;         /* why it failed */
    struct build *prev, *next;
};

struct build_order {
    struct build *build;
    struct build_call call;
    struct build_order *prev, *next;
};

struct builder {
    char *script;
    struct children *children;
    struct environments *environments;
    struct build *builds;
};

struct builder *builder_create(const char *script, struct children *children,
                               struct environments *environments)
{
    struct builder *builder = xzalloc(sizeof *builder);
    builder->script = xstrdup(script);
    builder->children = children;
    builder->environments = environments;
    return builder;
}

void builder_destroy(struct builder *builder)
{
    if (builder != NULL) {
        free(builder->script);
        free(builder);
    }
}

/* --- what a builder says -------------------------------------------------------------------------------- */

static void tell_all(struct build *build, const char *text)
{
    struct build_order *order;
    DL_FOREACH (build->orders, order) {
        order->call.told(order->call.closure, text);
    }
}

static void line_came(void *closure, const char *line)
{
    struct build *build = closure;
    autojson json_t *row = json_parse(line, strlen(line), NULL);
    const char *text = json_string_value(json_object_get(row, "text"));
    const char *failed = json_string_value(json_object_get(row, "failed"));
    if (text != NULL) {
        tell_all(build, text);
    } else if (json_is_true(json_object_get(row, "alive"))) {
        tell_all(build, NULL);
    } else if (failed != NULL) {
        build->failed = true;
        build->end = json_is_true(json_object_get(row, "by_user"))   ? BUILD_REFUSED
                     : json_is_true(json_object_get(row, "lasting")) ? BUILD_UNABLE
                                                                     : BUILD_FAILED;
        free(build->text);
        build->text = xstrdup(failed);
    } else if (json_is_true(json_object_get(row, "ready"))) {
        build->ready = true;
    }
}

/* --- builds --------------------------------------------------------------------------------------------- */

static void destroy_build(struct build *build)
{
    DL_DELETE(build->builder->builds, build);
    cleanup_close(&build->requirements);
    free(build->name);
    free(build->interpreter);
    free(build->python_version);
    free(build->text);
    free(build);
}

static void begin_next(struct builder *builder);

/* Takes the orders first, because the calls may add new ones. */
static void end_build(struct build *build)
{
    struct builder *builder = build->builder;
    struct build_order *orders = build->orders;
    autofree char *text = build->text != NULL ? give(build->text) : xstrdup("");
    enum build_end end = build->ready ? BUILD_READY : build->end;
    build->orders = NULL;
    destroy_build(build);
    while (orders != NULL) {
        struct build_order *order = orders;
        struct build_call call = order->call;
        DL_DELETE(orders, order);
        free(order);
        call.done(call.closure, end, end == BUILD_READY ? NULL : text);
    }
    environments_make_room(builder->environments);
    begin_next(builder);
}

/* For a builder that ended without a result. */
static void explain(struct build *build, int status, const char *said)
{
    autofree char *how = WIFSIGNALED(status) ? xprintf("was killed by signal %d (%s)", WTERMSIG(status),
                                                       strsignal(WTERMSIG(status)))
                                             : xprintf("exited with code %d", WEXITSTATUS(status));
    free(build->text);
    build->text = xprintf("the builder of the environment %s%s%s", how, *said != '\0' ? "\n" : "", said);
    build->end = BUILD_FAILED;
}

static void child_done(void *closure, int status, const char *said)
{
    struct build *build = closure;
    build->child = NULL;
    build->ready = build->ready && !build->failed;
    if (!build->ready && !build->failed) {
        explain(build, status, said);
    }
    end_build(build);
}

/* The agent's variables that a build gets. The caller frees the array, not the strings. */
static const char **variables(void)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL) {
        count++;
    }
    const char **list = xzalloc((count + 1) * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(environ[i], "=");
        bool passed = strncmp(environ[i], PASSED_PREFIX, strlen(PASSED_PREFIX)) == 0;
        for (size_t j = 0; j < sizeof passed_names / sizeof passed_names[0]; j++) {
            passed = passed ||
                     (strlen(passed_names[j]) == length && strncmp(environ[i], passed_names[j], length) == 0);
        }
        if (passed) {
            list[kept++] = environ[i];
        }
    }
    return list;
}

static bool begin(struct build *build, struct err *err)
{
    struct builder *builder = build->builder;
    const char *arguments[] = {build->interpreter,
                               "-I",
                               builder->script,
                               "--folder",
                               environments_folder(builder->environments),
                               "--requirements",
                               REQUIREMENTS_FD,
                               "--key",
                               build->name,
                               build->python_version != NULL ? "--python-version" : NULL,
                               build->python_version,
                               NULL};
    autofree const char **passed = variables();
    environments_make_room(builder->environments);
    build->child = child_start(builder->children,
                               &(struct child_call){
                                   .arguments = arguments,
                                   .variables = passed,
                                   .input = -1,
                                   .extra = build->requirements,
                                   .line = line_came,
                                   .done = child_done,
                                   .closure = build,
                               },
                               err);
    return build->child != NULL;
}

static struct build *next_build(struct builder *builder)
{
    size_t running = 0;
    struct build *build, *first = NULL;
    DL_FOREACH (builder->builds, build) {
        running += build->child != NULL;
        first = first == NULL && build->child == NULL ? build : first;
    }
    return running < LIMIT_BUILDS ? first : NULL;
}

static void begin_next(struct builder *builder)
{
    struct err err;
    for (struct build *build; (build = next_build(builder)) != NULL;) {
        if (!begin(build, &err)) {
            build->text = xstrdup(err.text);
            end_build(build);
        }
    }
}

/* --- orders --------------------------------------------------------------------------------------------- */

static struct build *find_build(const struct builder *builder, const char *name)
{
    struct build *build;
    DL_FOREACH (builder->builds, build) {
        if (strcmp(build->name, name) == 0) {
            return build;
        }
    }
    return NULL;
}

static struct build *add_build(struct builder *builder, const struct build_call *call, char *name,
                               char *interpreter)
{
    struct build *build = xzalloc(sizeof *build);
    *build = (struct build){
        .builder = builder, .name = name, .interpreter = interpreter, .requirements = call->requirements};
    if (call->need.python_version != NULL) {
        build->python_version = xstrdup(call->need.python_version);
    }
    DL_APPEND(builder->builds, build);
    return build;
}

struct build_order *build_start(struct builder *builder, const struct build_call *call, struct err *err)
{
    autofree char *name = NULL;
    autofree char *interpreter = NULL;
    autoclose int requirements = call->requirements;
    if (!environment_name(builder->environments, &call->need, &name, &interpreter, err)) {
        return NULL;
    }
    struct build *build = find_build(builder, name);
    bool is_new = build == NULL;
    if (is_new) {
        build = add_build(builder, call, give(name), give(interpreter));
        give_fd(&requirements);
        if (next_build(builder) == build && !begin(build, err)) {
            destroy_build(build);
            return NULL;
        }
    }
    struct build_order *order = xzalloc(sizeof *order);
    order->build = build;
    order->call = *call;
    order->call.need = (struct environment_need){0};
    DL_APPEND(build->orders, order);
    if (build->child == NULL) {
        call->told(call->closure, WAITS);
    }
    return order;
}

void build_cancel(struct build_order *order)
{
    if (order == NULL) {
        return;
    }
    struct build *build = order->build;
    struct builder *builder = build->builder;
    DL_DELETE(build->orders, order);
    free(order);
    if (build->orders == NULL) {
        child_stop(build->child, BUILDER_GRACE_MS);
        destroy_build(build);
        begin_next(builder);
    }
}
