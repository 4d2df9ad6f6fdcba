/* SPDX-License-Identifier: Apache-2.0 */
/* Runs gpuctl_environment.py. At most LIMIT_BUILDS builds run at once; the others wait. A build gets only
 * those variables of the agent that pip needs, and runs in a cgroup of its own, which ends with it. A builder
 * that ends without a result counts as a failure of the node. environments.c decides which environments to
 * keep. */
#include "agent/environment/builder.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define REQUIREMENTS_FD "/dev/fd/3"
#define ARGUMENTS_MAX   18 /* of a builder, with a NULL */

/* Variables of the agent that builds get, besides PIP_* and CONTAINERS_*. Proxies in both spellings. */
static const char *const passed_names[] = {
    "PATH",        "HOME",      "LANG",       "LC_ALL",    "TMPDIR",       "LD_LIBRARY_PATH",
    "http_proxy",  "no_proxy",  "HTTP_PROXY", "NO_PROXY",  "https_proxy",  "SSL_CERT_FILE",
    "HTTPS_PROXY", "CUDA_HOME", "all_proxy",  "ALL_PROXY", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
};
#define RAN_OUT "the build took more memory than it may on this node"

struct build {
    struct builder *builder;
    char *name, *interpreter, *python_version; /* the last may be NULL */
    int requirements;
    struct child *child; /* NULL: it waits for its turn */
    size_t number;       /* among those that run */
    char *cgroup;        /* NULL: none */
    bool ready, failed;  /* the builder's last result */
    enum build_end end;  /* if it failed */
    char *text;          /* why it failed */
    struct build *prev, *next;
};

struct builder {
    struct builder_config config;
    char *script;
    struct build *builds;
};

struct builder *builder_create(const struct builder_config *config)
{
    struct builder *builder = xzalloc(sizeof *builder);
    builder->config = *config;
    builder->script = xstrdup(config->script);
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

static void tell(const struct build *build, const char *text)
{
    const struct builder_config *config = &build->builder->config;
    config->told(config->closure, build, text);
}

static void line_came(void *closure, const char *line)
{
    struct build *build = closure;
    autojson json_t *row = json_parse(line, strlen(line), NULL);
    const char *text = json_string_value(json_object_get(row, "text"));
    const char *failed = json_string_value(json_object_get(row, "failed"));
    if (text != NULL) {
        tell(build, text);
    } else if (json_is_true(json_object_get(row, "alive"))) {
        tell(build, NULL);
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
    free(build->cgroup);
    free(build);
}

/* No process of it is left soon. */
static bool leave_cgroup(struct build *build)
{
    const struct build_hold *hold = &build->builder->config.hold;
    bool ran_out = build->cgroup != NULL && hold->end(hold->closure, build->cgroup);
    free(give(build->cgroup));
    return ran_out;
}

static void begin_next(struct builder *builder);

static void end_build(struct build *build)
{
    struct builder *builder = build->builder;
    const struct builder_config *config = &builder->config;
    const char *text = build->text != NULL ? build->text : "";
    config->done(config->closure, build, build->ready ? BUILD_READY : build->end, build->ready ? NULL : text);
    destroy_build(build);
    environments_make_room(config->environments);
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
    bool ran_out = leave_cgroup(build);
    if (!build->ready && !build->failed) {
        explain(build, status, ran_out ? RAN_OUT : said);
    }
    end_build(build);
}

const char **builder_variables(void)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL) {
        count++;
    }
    const char **list = xzalloc((count + 1) * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(environ[i], "=");
        bool passed = strncmp(environ[i], "PIP_", 4) == 0 || strncmp(environ[i], "CONTAINERS_", 11) == 0;
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

/* The lowest number that no other build has. */
static size_t free_number(const struct build *build)
{
    size_t number = 0;
    const struct build *other = build->builder->builds;
    while (other != NULL) {
        bool taken = other != build && other->child != NULL && other->number == number;
        number += taken;
        other = taken ? build->builder->builds : other->next;
    }
    return number;
}

/* The words before the builder's own; false if it cannot be held. */
static bool hold_build(struct build *build, const char *arguments[], size_t *count, struct err *err)
{
    const struct build_hold *hold = &build->builder->config.hold;
    if (hold->program == NULL) {
        return true;
    }
    build->number = free_number(build);
    if (!hold->begin(hold->closure, build->number, &build->cgroup, err)) {
        return false;
    }
    arguments[(*count)++] = hold->program;
    arguments[(*count)++] = hold->option;
    arguments[(*count)++] = build->cgroup != NULL ? build->cgroup : "-";
    arguments[(*count)++] = hold->seccomp ? "1" : "0";
    return true;
}

static bool begin(struct build *build, struct err *err)
{
    struct builder *builder = build->builder;
    autofree char *build_ids = xprintf("%u", (unsigned)builder->config.build_ids);
    const char *const own[] = {build->interpreter,
                               "-I",
                               builder->script,
                               "--folder",
                               environments_folder(builder->config.environments),
                               "--requirements",
                               REQUIREMENTS_FD,
                               "--key",
                               build->name};
    const char *arguments[ARGUMENTS_MAX] = {NULL};
    size_t count = 0;
    if (!hold_build(build, arguments, &count, err)) {
        return false;
    }
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        arguments[count++] = own[i];
    }
    if (build->python_version != NULL) {
        arguments[count++] = "--python-version";
        arguments[count++] = build->python_version;
    }
    if (builder->config.build_ids != 0) {
        arguments[count++] = "--build-ids";
        arguments[count++] = build_ids;
    }
    autofree const char **passed = builder_variables();
    environments_make_room(builder->config.environments);
    build->child = child_start(builder->config.children,
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
    if (build->child == NULL) {
        leave_cgroup(build);
    }
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

/* --- from outside --------------------------------------------------------------------------------------- */

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

static struct build *add_build(struct builder *builder, const struct environment_need *need, char *name,
                               char *interpreter, int requirements)
{
    struct build *build = xzalloc(sizeof *build);
    *build = (struct build){.builder = builder,
                            .name = name,
                            .interpreter = interpreter,
                            .requirements = requirements,
                            .end = BUILD_FAILED};
    if (need->python_version != NULL) {
        build->python_version = xstrdup(need->python_version);
    }
    DL_APPEND(builder->builds, build);
    return build;
}

struct build *build_start(struct builder *builder, const struct environment_need *need, int requirements,
                          struct err *err)
{
    autofree char *name = NULL;
    autofree char *interpreter = NULL;
    autoclose int text = requirements;
    if (!environment_name(builder->config.environments, need, &name, &interpreter, err)) {
        return NULL;
    }
    struct build *build = find_build(builder, name);
    if (build != NULL) {
        return build;
    }
    build = add_build(builder, need, give(name), give(interpreter), give_fd(&text));
    if (next_build(builder) == build && !begin(build, err)) {
        destroy_build(build);
        return NULL;
    }
    return build;
}

bool build_waits(const struct build *build)
{
    return build->child == NULL;
}

void build_stop(struct build *build)
{
    struct builder *builder = build->builder;
    child_stop(build->child, BUILDER_GRACE_MS);
    leave_cgroup(build);
    destroy_build(build);
    begin_next(builder);
}
