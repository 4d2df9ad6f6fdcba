/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps watch over the volumes. A file system of the network may hang whoever looks at it for ever, so a
 * process looks, one for each volume, and what does not answer in time is not there. The agent itself never
 * touches the folder. The controller knows volumes as labels of the node, so a volume that goes takes the
 * node out of reach of the jobs that want it, before they hold a GPU. */
#include "agent/environment/volumes.h"

#include <string.h>

#include "agent/common/launch_file.h"
#include "agent/common/volume_mount.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/limits_agent.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/spec/node_label.h"

struct volume {
    struct volumes *volumes;
    struct node_volume given;
    bool there;
    struct child *child; /* that looks now; NULL: none */
    struct loop_timer timer;
    size_t lines; /* that it has said */
    bool folder, mounted;
};

struct volumes {
    struct volumes_config config;
    struct volume *items;
};

/* --- looking -------------------------------------------------------------------------------------------- */

static void look(struct volume *volume);

static void set(struct volume *volume, bool there, const char *why)
{
    if (there == volume->there) {
        return;
    }
    volume->there = there;
    if (there) {
        log_info("volume is there again", "volume=%s path=\"%s\"", volume->given.name, volume->given.path);
    } else {
        log_warning("volume is not there", "volume=%s path=\"%s\" reason=\"%s\"", volume->given.name,
                    volume->given.path, why);
    }
    volume->volumes->config.changed(volume->volumes->config.closure);
}

/* The kind of the file, then where its file system is mounted. */
static void said(void *closure, const char *line)
{
    struct volume *volume = closure;
    volume->folder = volume->folder || (volume->lines == 0 && strcmp(line, "directory") == 0);
    volume->mounted = volume->mounted || (volume->lines == 1 && strcmp(line, volume->given.path) == 0);
    volume->lines++;
}

static void looked(void *closure, int status, const char *problem)
{
    struct volume *volume = closure;
    autofree char *first = xstrndup(problem, strcspn(problem, "\n"));
    volume->child = NULL;
    if (status != 0 || !volume->folder) {
        set(volume, false, status != 0 ? first : "it is not a folder");
    } else if (volume->given.must_be_mount && !volume->mounted) {
        set(volume, false, "nothing is mounted there");
    } else {
        set(volume, true, NULL);
    }
    loop_arm(volume->volumes->config.loop, &volume->timer, clock_boot_ms() + VOLUME_LOOK_MS);
}

/* A look that hangs in the kernel cannot be ended: the next one waits for its end. */
static void due(void *closure)
{
    struct volume *volume = closure;
    if (volume->child == NULL) {
        look(volume);
    } else {
        set(volume, false, "it does not answer");
    }
}

static void look(struct volume *volume)
{
    const char *const arguments[] = {"stat", "-L", "--printf=%F\\n%m\\n", "--", volume->given.path, NULL};
    static const char *const variables[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
    struct volumes_config *config = &volume->volumes->config;
    struct err err;
    volume->folder = volume->mounted = false;
    volume->lines = 0;
    volume->child = child_start(config->children,
                                &(struct child_call){.arguments = arguments,
                                                     .variables = variables,
                                                     .input = -1,
                                                     .extra = -1,
                                                     .line = said,
                                                     .done = looked,
                                                     .closure = volume},
                                &err);
    if (volume->child == NULL) {
        log_warning("volume cannot be looked at", "volume=%s reason=\"%s\"", volume->given.name, err.text);
    }
    loop_arm(config->loop, &volume->timer, clock_boot_ms() + VOLUME_ANSWER_MS);
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct volumes *volumes_create(const struct volumes_config *config)
{
    struct err unused; /* config.c has checked them */
    struct volumes *volumes = xzalloc(sizeof *volumes);
    volumes->config = *config;
    volumes->items = xzalloc((config->count + 1) * sizeof *volumes->items);
    for (size_t i = 0; i < config->count; i++) {
        struct volume *volume = &volumes->items[i];
        volume->volumes = volumes;
        volume->there = node_volume_take(config->given[i], &volume->given, &unused);
        volume->timer = (struct loop_timer){.due = due, .closure = volume};
        loop_arm(config->loop, &volume->timer, 0);
    }
    return volumes;
}

void volumes_destroy(struct volumes *volumes)
{
    if (volumes == NULL) {
        return;
    }
    for (size_t i = 0; i < volumes->config.count; i++) {
        struct volume *volume = &volumes->items[i];
        loop_disarm(volumes->config.loop, &volume->timer);
        child_stop(volume->child, 0);
        node_volume_finish(&volume->given);
    }
    free(volumes->items);
    free(volumes);
}

/* --- for the controller --------------------------------------------------------------------------------- */

static const char *label_of(const struct volume *volume)
{
    if (volume->volumes->config.mounts) {
        return volume->given.read_only ? VOLUME_LABEL_READ_ONLY : VOLUME_LABEL_WRITABLE;
    }
    return volume->given.read_only ? VOLUME_LABEL_READ_ONLY_FIXED : VOLUME_LABEL_WRITABLE_FIXED;
}

void volumes_label(const struct volumes *volumes, json_t *labels)
{
    for (size_t i = 0; i < volumes->config.count; i++) {
        const struct volume *volume = &volumes->items[i];
        autofree char *key = xprintf(VOLUME_LABEL "%s", volume->given.name);
        if (volume->there) {
            json_object_set_new(labels, key, json_string(label_of(volume)));
        } else {
            json_object_del(labels, key);
        }
    }
}

/* --- for a job ------------------------------------------------------------------------------------------ */

static const struct volume *find(const struct volumes *volumes, const char *name)
{
    for (size_t i = 0; i < volumes->config.count; i++) {
        if (strcmp(volumes->items[i].given.name, name) == 0) {
            return &volumes->items[i];
        }
    }
    return NULL;
}

static const char *place_of(const struct volume *volume, const struct job_volume *wanted)
{
    return wanted->path != NULL ? wanted->path : volume->given.path;
}

static bool is_read_only(const struct volume *volume, const struct job_volume *wanted)
{
    return volume->given.read_only || wanted->access == VOLUME_READ_ONLY;
}

static bool needs_mount(const struct volume *volume, const struct job_volume *wanted)
{
    bool elsewhere = strcmp(place_of(volume, wanted), volume->given.path) != 0;
    return volume->volumes->config.mounts && (elsewhere || is_read_only(volume, wanted));
}

/* The volume's own folder is not looked at: it may hang. An image may have anything where a volume goes. */
static bool check_wanted(const struct volumes *volumes, const struct job_volume *wanted, bool in_image,
                         struct err *err)
{
    const struct volume *volume = find(volumes, wanted->name);
    if (volume == NULL || !volume->there) {
        return err_set(err, ERR_CONFLICT, "volume %s is not there", wanted->name);
    }
    if (wanted->access == VOLUME_WRITABLE && volume->given.read_only) {
        return err_set(err, ERR_CONFLICT, "volume %s is read-only here", wanted->name);
    }
    bool elsewhere = strcmp(place_of(volume, wanted), volume->given.path) != 0;
    if (elsewhere && !in_image && !volumes->config.mounts) {
        return err_set(err, ERR_CONFLICT, "this node mounts nothing for jobs");
    }
    return !elsewhere || in_image || volume_place_check(wanted->path, err);
}

bool volumes_check_job(const struct volumes *volumes, const struct job_spec *spec, struct err *err)
{
    for (size_t i = 0; i < spec->volume_count; i++) {
        if (!check_wanted(volumes, &spec->volumes[i], spec->image != NULL, err)) {
            return false;
        }
    }
    return true;
}

const struct node_volume *volumes_find(const struct volumes *volumes, const char *name)
{
    const struct volume *volume = find(volumes, name);
    return volume != NULL ? &volume->given : NULL;
}

const char *volumes_path(const struct volumes *volumes, const char *url)
{
    enum input_source source;
    const char *place;
    if (!jobspec_find_source(url, &source, &place) || source != SOURCE_VOLUME) {
        return NULL;
    }
    autofree char *name = xstrndup(place, strcspn(place, "/"));
    const struct volume *volume = find(volumes, name);
    return volume != NULL && volume->there ? volume->given.path : NULL;
}

char *volumes_checkpoint_folder(const struct volumes *volumes, const struct job_spec *spec, const char *key)
{
    for (size_t i = 0; i < spec->volume_count && spec->checkpoint_volume != NULL; i++) {
        const struct job_volume *wanted = &spec->volumes[i];
        if (strcmp(wanted->name, spec->checkpoint_volume) == 0) {
            return xprintf("%s/" CHECKPOINTS_ON_VOLUME "/%s", place_of(find(volumes, wanted->name), wanted),
                           key);
        }
    }
    return NULL;
}

void volumes_write(const struct volumes *volumes, const struct job_spec *spec, struct text *launch)
{
    for (size_t i = 0; i < spec->volume_count; i++) {
        const struct job_volume *wanted = &spec->volumes[i];
        const struct volume *volume = find(volumes, wanted->name);
        launch_put_env(launch, wanted->variable, place_of(volume, wanted));
        if (spec->image == NULL && needs_mount(volume, wanted)) {
            launch_put(launch, "volume_from", volume->given.path);
            launch_put(launch, "volume_at", place_of(volume, wanted));
            launch_put_int(launch, "volume_read_only", is_read_only(volume, wanted));
        }
    }
}
