/* SPDX-License-Identifier: Apache-2.0 */
/* The part of stage.c for jobs in container images: the image that was pulled before, the bundle that an OCI
 * runtime makes a container of, and the variables that the image brings along. bundle.c writes the config;
 * the shim has the container made. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/attempt/attempt.h"
#include "agent/base/stage_file.h"
#include "agent/common/image_root.h"
#include "agent/image/bundle.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/spec/node_label.h"

#define BUNDLE_MOUNTS (5 + LIMIT_JOB_VOLUMES + LIMIT_JOB_INPUTS)
#define OWN_VARIABLES 4 /* of image_variables, below */

/* Pulled before, too. */
bool stage_take_image(struct attempt *attempt, struct err *err)
{
    const struct job_spec *spec = &attempt->spec;
    const struct images *images = stagings_images(attempt->context->stagings);
    if (spec->image == NULL) {
        return true;
    }
    if (images == NULL) {
        return err_set(err, ERR_CONFLICT, "this node runs no jobs in container images");
    }
    const struct image_need need = {.image = job_spec_image_at(spec, attempt->order.first_rank),
                                    .secret = spec->image_secret,
                                    .owner = attempt->order.owner,
                                    .project = job_spec_project(spec)};
    attempt->environment_lock =
        image_use(images, &need, &attempt->image_root, &attempt->image_lock, &attempt->image_config, err);
    return attempt->environment_lock >= 0;
}

/* --- the bundle ----------------------------------------------------------------------------------------- */

/* What the ranks of a job in an image have of the node, each at its own place. */
static size_t list_mounts(const struct attempt *attempt, struct bundle_mount mounts[BUNDLE_MOUNTS])
{
    const struct agent_context *context = attempt->context;
    const struct user *user = stage_user(attempt);
    size_t count = 0;
    mounts[count++] = (struct bundle_mount){.from = attempt->logs, .at = attempt->logs, .alone = true};
    mounts[count++] = (struct bundle_mount){.from = attempt->run, .at = attempt->run};
    mounts[count++] =
        (struct bundle_mount){.from = context->runner, .at = context->runner, .read_only = true};
    if (context->config.cacert != NULL) {
        mounts[count++] = (struct bundle_mount){
            .from = context->config.cacert, .at = context->config.cacert, .read_only = true};
    }
    if (user != NULL) {
        mounts[count++] = (struct bundle_mount){.from = user->home, .at = user->home, .optional = true};
    }
    for (size_t i = 0; i < attempt->spec.volume_count; i++) {
        const struct job_volume *wanted = &attempt->spec.volumes[i];
        const struct node_volume *volume = volumes_find(context->volumes, wanted->name);
        mounts[count++] =
            (struct bundle_mount){.from = volume->path,
                                  .at = wanted->path != NULL ? wanted->path : volume->path,
                                  .read_only = volume->read_only || wanted->access == VOLUME_READ_ONLY};
    }
    for (size_t i = 0; i < attempt->input_count; i++) {
        const char *path = attempt->spec.inputs[i].path, *data = attempt->inputs[i].data;
        mounts[count++] =
            (struct bundle_mount){.from = data, .at = path != NULL ? path : data, .read_only = true};
    }
    return count;
}

/* The GPUs of the order; the caller frees the list. */
static struct bundle_gpu *list_gpus(const struct attempt *attempt, size_t *ret_count)
{
    const struct devices *devices = &attempt->context->devices;
    const struct order *order = &attempt->order;
    struct bundle_gpu *gpus = xzalloc((order->device_count + 1) * sizeof *gpus);
    *ret_count = devices->slots ? 0 : order->device_count;
    for (size_t i = 0; i < *ret_count; i++) {
        size_t at = devices_position(devices, order->devices[i]);
        gpus[i] = (struct bundle_gpu){
            .uuid = devices->items[at].uuid, .index = order->devices[i], .minor = devices->sights[at].minor};
    }
    return gpus;
}

/* Writes the bundle, from which the shim has a container made. */
bool stage_bundle_of_image(struct attempt *attempt, struct err *err)
{
    struct agent_context *context = attempt->context;
    struct bundle_mount mounts[BUNDLE_MOUNTS] = {0};
    size_t gpu_count;
    autofree struct bundle_gpu *gpus = list_gpus(attempt, &gpu_count);
    autofree char *root = xprintf("%s/" IMAGE_FOLDER "/" IMAGE_MERGED, attempt->logs);
    autofree char *tmp = xprintf("%s/" SHIM_TMP_FOLDER, attempt->logs);
    autofree char *folder = xprintf("%s/" IMAGE_BUNDLE, attempt->run);
    autofree char *path = xprintf("%s/config.json", folder);
    const struct bundle_facts facts = {.root = root,
                                       .init = images_runtime(stagings_images(context->stagings)),
                                       .tmp = stage_user(attempt) != NULL ? tmp : NULL,
                                       .mounts = mounts,
                                       .mount_count = list_mounts(attempt, mounts),
                                       .gpus = gpus,
                                       .gpu_count = gpu_count,
                                       .cdi_folders = bundle_cdi_folders};
    attempt->image_variables = json_array();
    autojson json_t *config = bundle_config(&facts, attempt->image_variables, err);
    if (config == NULL || (mkdir(folder, 0700) != 0 && !err_errno(err, "cannot make %s", folder))) {
        return false;
    }
    autofree char *text = json_text(config);
    return stage_file_put(path, text, strlen(text), err);
}

/* --- variables ------------------------------------------------------------------------------------------ */

static bool is_variable(const char *variable, const char *name, size_t length)
{
    return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

/* A later variable replaces an earlier one; a list of folders comes before the earlier one. */
static void set_variable(char **variables, size_t *count, const char *variable)
{
    size_t length = strcspn(variable, "="), at = 0;
    while (at < *count && !is_variable(variables[at], variable, length)) {
        at++;
    }
    if (at < *count && is_variable(variable, "LD_LIBRARY_PATH", strlen("LD_LIBRARY_PATH"))) {
        char *both = xprintf("%s:%s", variable, strchr(variables[at], '=') + 1);
        free(variables[at]);
        variables[at] = both;
        return;
    }
    if (at < *count) {
        free(variables[at]);
    } else {
        ++*count;
    }
    variables[at] = xstrdup(variable);
}

static void set_variables(char **variables, size_t *count, const json_t *list)
{
    size_t i;
    const json_t *item;
    json_array_foreach (list, i, item) {
        const char *variable = json_string_value(item);
        if (variable != NULL && strchr(variable, '=') > variable) {
            set_variable(variables, count, variable);
        }
    }
}

/* What the image and its GPUs bring along. Python does not look for packages in the user's home, which are
 * for the node's Python. */
char **stage_image_variables(const struct attempt *attempt)
{
    const json_t *env = json_object_get(attempt->image_config, "Env");
    const struct user *user = stage_user(attempt);
    size_t count = 0;
    char **variables = xzalloc((json_array_size(env) + json_array_size(attempt->image_variables) +
                                STAGE_USER_VARIABLES + OWN_VARIABLES + 1) *
                               sizeof *variables);
    set_variable(variables, &count, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    set_variable(variables, &count, "HOME=/root");
    set_variable(variables, &count, "USER=root");
    set_variable(variables, &count, "PYTHONNOUSERSITE=1");
    set_variables(variables, &count, env);
    set_variables(variables, &count, attempt->image_variables);
    if (user != NULL) {
        char *own[STAGE_USER_VARIABLES];
        size_t owns = stage_put_user(attempt, user, own);
        for (size_t i = 0; i < owns; i++) {
            bool shell = is_variable(own[i], "SHELL", strlen("SHELL")); /* which the image may lack */
            set_variable(variables, &count, shell ? "SHELL=/bin/sh" : own[i]);
            free(own[i]);
        }
    }
    return variables;
}
