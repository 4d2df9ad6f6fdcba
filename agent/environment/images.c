/* SPDX-License-Identifier: Apache-2.0 */
/* Pulls container images: skopeo fetches one and checks it against its digest, umoci unpacks it, and the
 * folder gets its name when all of it is on disk. A pull that is killed at any moment leaves a part without a
 * marker, which the cache removes; its programs die with the agent. cache.c keeps the folders, their locks
 * and their limit. Whose fault a failure is decides what comes next, as with builds. */
#include "agent/environment/images.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/base/cache.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/base/text/log_line.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "proto/spec/jobspec.h"

#define LAYOUT        "layout"
#define ROOT          "rootfs"
#define AUTH_FD       "/dev/fd/3"
#define ARGUMENTS_MAX 24

/* The programs that run one after the other. */
enum step { STEP_COPY, STEP_UNPACK, STEP_MEASURE, STEP_SYNC, STEP_COUNT };

struct pull {
    struct images *images;
    char name[HASH_HEX + 1];
    char *image, *auth; /* auth in base64, or NULL */
    char *folder;       /* its part, while it is under way; NULL: it waits for its turn */
    int lock;           /* on its place; -1: none */
    enum step step;
    struct child *child;
    char *cgroup;   /* of the child; NULL: none */
    json_t *config; /* what is used of OCI's, after STEP_COPY */
    int64_t size_bytes;
    struct loop_timer watch; /* of the disk */
    struct pull *prev, *next;
};

struct images {
    struct images_config config;
    struct cache *cache;
    char *runtime; /* path */
    struct pull *pulls;
};

/* --- programs ------------------------------------------------------------------------------------------- */

static char *find_program(const char *name)
{
    const char *path = getenv("PATH");
    autofree char *copy = xstrdup(path != NULL ? path : "/usr/local/bin:/usr/bin:/bin");
    char *rest = copy;
    for (char *folder; (folder = strsep(&rest, ":")) != NULL;) {
        autofree char *found = xprintf("%s/%s", folder, name);
        if (folder[0] == '/' && access(found, X_OK) == 0) {
            return give(found);
        }
    }
    return NULL;
}

const char *images_missing_program(void)
{
    static const char *const programs[] = {IMAGES_RUNTIME, "skopeo", "umoci", "setpriv"};
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        autofree char *found = find_program(programs[i]);
        if (found == NULL) {
            return programs[i];
        }
    }
    return NULL;
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct images *images_create(const struct images_config *config, struct err *err)
{
    struct cache *cache = cache_create(
        &(struct cache_config){.folder = config->folder, .noun = "image", .limit_bytes = config->limit_bytes},
        err);
    if (cache == NULL) {
        return NULL;
    }
    struct images *images = xzalloc(sizeof *images);
    *images = (struct images){.config = *config, .cache = cache, .runtime = find_program(IMAGES_RUNTIME)};
    images->config.folder = cache_folder(cache);
    cache_make_room(cache, 0);
    return images;
}

void images_destroy(struct images *images)
{
    if (images != NULL) {
        cache_destroy(images->cache);
        free(images->runtime);
        free(images);
    }
}

const char *images_runtime(const struct images *images)
{
    return images->runtime;
}

bool images_step(struct images *images)
{
    return cache_step(images->cache);
}

void image_name(const struct image_need *need, char out[HASH_HEX + 1])
{
    bool secret = need->secret != NULL;
    autofree char *facts = xprintf("%s\n%s\n%s\n%s\n", need->image, secret ? need->secret : "",
                                   secret && need->owner != NULL ? need->owner : "",
                                   secret && need->project != NULL ? need->project : "");
    hash_hex(facts, strlen(facts), out);
}

int image_use(const struct images *images, const struct image_need *need, char **ret_root, char **ret_lock,
              json_t **ret_config, struct err *err)
{
    char name[HASH_HEX + 1];
    autofree char *folder = NULL;
    autojson json_t *marker = NULL;
    image_name(need, name);
    int lock = cache_use(images->cache, name, &marker, &folder);
    if (lock < 0) {
        err_set(err, ERR_NOT_FOUND, "the image is gone from this node, and is pulled again");
        return -1;
    }
    *ret_root = xprintf("%s/" ROOT, folder);
    *ret_lock = cache_lock_path(folder);
    *ret_config = json_incref(json_object_get(marker, "config"));
    return lock;
}

/* --- what went wrong ------------------------------------------------------------------------------------ */

static bool says(const char *text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strstr(text, *words) != NULL) {
            return true;
        }
    }
    return false;
}

static enum build_end blame(const char *text)
{
    static const char *const refused[] = {"manifest unknown",  "name unknown",
                                          "unauthorized",      "denied",
                                          "not found",         "authentication required",
                                          "invalid reference", NULL};
    static const char *const unable[] = {"no image found", "policy.json", NULL};
    return says(text, refused) ? BUILD_REFUSED : says(text, unable) ? BUILD_UNABLE : BUILD_FAILED;
}

/* --- ends ----------------------------------------------------------------------------------------------- */

static void begin_next(struct images *images);

static bool leave_cgroup(struct pull *pull)
{
    const struct build_hold *hold = &pull->images->config.hold;
    bool ran_out = pull->cgroup != NULL && hold->end(hold->closure, pull->cgroup);
    free(give(pull->cgroup));
    return ran_out;
}

static void destroy_pull(struct pull *pull)
{
    struct images *images = pull->images;
    loop_disarm(images->config.loop, &pull->watch);
    child_stop(pull->child, 0);
    leave_cgroup(pull);
    if (pull->folder != NULL) {
        cache_discard(images->cache, pull->folder);
    }
    cleanup_close(&pull->lock);
    DL_DELETE(images->pulls, pull);
    json_decref(pull->config);
    free(pull->folder);
    free(pull->image);
    free(pull->auth);
    free(pull);
}

/* text NULL: the image is here. */
static void end(struct pull *pull, enum build_end how, const char *text)
{
    struct images *images = pull->images;
    cleanup_close(&pull->lock); /* those who are told lock the image */
    pull->lock = -1;
    images->config.done(images->config.closure, pull, how, text);
    destroy_pull(pull);
    cache_make_room(images->cache, 0);
    begin_next(images);
}

static void end_failed(struct pull *pull, enum build_end how, const char *what, const char *said)
{
    autofree char *text = xprintf("image %s cannot be %s: %s", pull->image, what, said);
    end(pull, how, text);
}

/* --- what was pulled ------------------------------------------------------------------------------------ */

/* Docker's and OCI's names of architectures. */
static const char *machine(void)
{
    static struct utsname name;
    uname(&name);
    return strcmp(name.machine, "x86_64") == 0    ? "amd64"
           : strcmp(name.machine, "aarch64") == 0 ? "arm64"
                                                  : name.machine;
}

static json_t *read_json(const struct pull *pull, const char *path, struct err *err)
{
    autofree char *whole = xprintf("%s/" LAYOUT "/%s", pull->folder, path);
    autofree char *bytes = NULL;
    size_t length;
    return file_read(whole, LIMIT_IMAGE_JSON_BYTES, &bytes, &length, err) ? json_parse(bytes, length, err)
                                                                          : NULL;
}

/* The JSON of a blob that a descriptor of OCI names. */
static json_t *read_blob(const struct pull *pull, const json_t *descriptor, struct err *err)
{
    static const char kind[] = "sha256:";
    const char *digest = json_string_of(descriptor, "digest");
    if (digest == NULL || strncmp(digest, kind, strlen(kind)) != 0 ||
        strspn(digest + strlen(kind), "0123456789abcdef") != strlen(digest + strlen(kind))) {
        err_set(err, ERR_MALFORMED, "its index names no manifest");
        return NULL;
    }
    autofree char *path = xprintf("blobs/sha256/%s", digest + strlen(kind));
    return read_json(pull, path, err);
}

/* Reads the OCI config into the pull. */
static bool take_config(struct pull *pull, enum build_end *ret_end, struct err *err)
{
    autojson json_t *index = read_json(pull, "index.json", err);
    autojson json_t *manifest =
        index != NULL ? read_blob(pull, json_array_get(json_object_get(index, "manifests"), 0), err) : NULL;
    autojson json_t *config =
        manifest != NULL ? read_blob(pull, json_object_get(manifest, "config"), err) : NULL;
    *ret_end = BUILD_FAILED;
    if (config == NULL) {
        return false;
    }
    const char *architecture = json_string_of(config, "architecture"), *os = json_string_of(config, "os");
    if ((architecture != NULL && strcmp(architecture, machine()) != 0) ||
        (os != NULL && strcmp(os, "linux") != 0)) {
        *ret_end = BUILD_UNABLE;
        return err_set(err, ERR_CONFLICT, "it is for %.32s/%.32s, and this node is linux/%s",
                       os != NULL ? os : "linux", architecture, machine());
    }
    json_t *env = json_object_get(json_object_get(config, "config"), "Env");
    pull->config = json_object(); /* without its labels, which may be long */
    if (env != NULL) {
        json_object_set(pull->config, "Env", env);
    }
    return true;
}

/* Until the rename nobody sees any of it. */
static bool give_name(const struct pull *pull, struct err *err)
{
    const char *folder = cache_folder(pull->images->cache);
    autofree char *place = xprintf("%s/%s", folder, pull->name);
    return cache_link(pull->images->cache, pull->name, place, err) &&
           (rename(pull->folder, place) == 0 || err_errno(err, "cannot keep %s", pull->folder)) &&
           file_sync_folder(folder, err);
}

static bool finish(struct pull *pull, struct err *err)
{
    autojson json_t *marker = json_pack("{s:s, s:I, s:O}", "image", pull->image, "size_bytes",
                                        (json_int_t)pull->size_bytes, "config", pull->config);
    return cache_mark(pull->folder, marker, err) && give_name(pull, err);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static bool run_step(struct pull *pull, struct err *err);

static void go_on(struct pull *pull)
{
    struct err err;
    enum build_end how = BUILD_FAILED;
    int64_t limit = pull->images->config.limit_bytes;
    switch (pull->step) {
    case STEP_COPY:
        if (!take_config(pull, &how, &err)) {
            end_failed(pull, how, "used", err.text);
            return;
        }
        break;
    case STEP_MEASURE:
        if (pull->size_bytes > limit) {
            autofree char *text =
                xprintf("it takes %.1f GB, and the images of this node may take %.1f GB (gpuagent "
                        "--image-limit)",
                        (double)pull->size_bytes / 1e9, (double)limit / 1e9);
            end_failed(pull, BUILD_UNABLE, "kept", text);
            return;
        }
        break;
    case STEP_SYNC:
        if (finish(pull, &err)) {
            log_info("image pulled", "image=%s size_bytes=%lld", pull->image, (long long)pull->size_bytes);
            end(pull, BUILD_READY, NULL);
        } else {
            end_failed(pull, BUILD_FAILED, "kept", err.text);
        }
        return;
    case STEP_UNPACK:
    case STEP_COUNT:
        break;
    }
    pull->step++;
    if (!run_step(pull, &err)) {
        end_failed(pull, BUILD_FAILED, "unpacked", err.text);
    }
}

static void step_done(void *closure, int status, const char *said)
{
    struct pull *pull = closure;
    pull->child = NULL;
    if (leave_cgroup(pull)) {
        end_failed(pull, BUILD_FAILED, "pulled", "it took more memory than it may on this node");
        return;
    }
    if (status == 0) {
        if (pull->step == STEP_UNPACK) {
            autofree char *layout = xprintf("%s/" LAYOUT, pull->folder);
            cache_discard(pull->images->cache, layout);
        }
        go_on(pull);
        return;
    }
    autofree char *message = log_line_message(said);
    autofree char *killed = xprintf("the program was killed by signal %d", WTERMSIG(status));
    const char *text = WIFSIGNALED(status) ? killed : message;
    end_failed(pull, pull->step == STEP_COPY ? blame(text) : BUILD_FAILED,
               pull->step == STEP_COPY ? "pulled" : "unpacked", text);
}

static void step_said(void *closure, const char *line)
{
    struct pull *pull = closure;
    const struct images_config *config = &pull->images->config;
    if (pull->step == STEP_MEASURE) {
        autofree char *number = xstrndup(line, strcspn(line, "\t "));
        text_to_int(number, 0, INT64_MAX, &pull->size_bytes);
    } else if (pull->step == STEP_COPY) {
        autofree char *text = xprintf("pulls %s: %s", pull->image, line);
        config->told(config->closure, pull, text);
    }
}

/* Ends a pull that would fill the disk. */
static void watch_due(void *closure)
{
    struct pull *pull = closure;
    struct images *images = pull->images;
    cache_make_room(images->cache, 0);
    struct file_disk disk;
    if (file_disk(images->config.folder, &disk) && disk.free_bytes < IMAGES_FREE_BYTES) {
        end_failed(pull, BUILD_FAILED, "pulled", "the disk of this node is nearly full");
        return;
    }
    loop_arm(images->config.loop, &pull->watch, clock_boot_ms() + IMAGES_WATCH_MS);
}

/* A file in memory, because the secrets of jobs are on no disk. -1 with an error. */
static int auth_file(const struct pull *pull, struct err *err)
{
    autofree uint8_t *bytes = NULL;
    size_t length = 0;
    autoclose int file = memfd_create("auth", MFD_CLOEXEC);
    if (pull->auth != NULL && !text_from_base64(pull->auth, strlen(pull->auth), &bytes, &length)) {
        err_set(err, ERR_MALFORMED, "the secret is not base64");
        return -1;
    }
    bool written = file >= 0 &&
                   (pull->auth != NULL ? file_write_all(file, bytes, length) : file_write_all(file, "{}", 2));
    if (bytes != NULL) {
        explicit_bzero(bytes, length);
    }
    if (!written || lseek(file, 0, SEEK_SET) != 0) {
        err_errno(err, "cannot make a file in memory");
        return -1;
    }
    return give_fd(&file);
}

/* Without the tag, which skopeo does not take beside a digest. */
static char *source_of(const char *image)
{
    const char *digest = strchr(image, '@');
    const char *slash = strrchr(image, '/');
    const char *colon = strchr(slash != NULL ? slash : image, ':');
    int length = digest == NULL                    ? (int)strlen(image)
                 : colon != NULL && colon < digest ? (int)(colon - image)
                                                   : (int)(digest - image);
    return xprintf("docker://%.*s%s", length, image, digest != NULL ? digest : "");
}

static bool start_child(struct pull *pull, const char *const *words, int extra, struct err *err)
{
    const struct images_config *config = &pull->images->config;
    const struct build_hold *hold = &config->hold;
    const char *arguments[ARGUMENTS_MAX] = {NULL};
    size_t count = 0;
    if (hold->program != NULL) {
        if (!hold->begin(hold->closure, LIMIT_BUILDS, &pull->cgroup, err)) {
            return false;
        }
        const char *const held[] = {hold->program, hold->option, pull->cgroup != NULL ? pull->cgroup : "-",
                                    "0"};
        memcpy(arguments, held, sizeof held);
        count = sizeof held / sizeof held[0];
    }
    const char *const dying[] = {"setpriv", "--pdeathsig", "KILL", "--"};
    memcpy(&arguments[count], dying, sizeof dying);
    count += sizeof dying / sizeof dying[0];
    for (; *words != NULL; words++) {
        arguments[count++] = *words;
    }
    autofree const char **passed = builder_variables();
    pull->child = child_start(config->children,
                              &(struct child_call){.arguments = arguments,
                                                   .variables = passed,
                                                   .input = -1,
                                                   .extra = extra,
                                                   .line = step_said,
                                                   .done = step_done,
                                                   .closure = pull},
                              err);
    if (pull->child == NULL) {
        leave_cgroup(pull);
    }
    return pull->child != NULL;
}

static bool run_step(struct pull *pull, struct err *err)
{
    autofree char *layout = xprintf("%s/" LAYOUT, pull->folder);
    autofree char *layout_image = xprintf("oci:%s:image", layout);
    autofree char *image = xprintf("%s:image", layout);
    autofree char *root = xprintf("%s/" ROOT, pull->folder);
    autofree char *source = source_of(pull->image);
    const char *const copy[] = {"skopeo", "copy", "--authfile", AUTH_FD, source, layout_image, NULL};
    const char *const unpack[] = {"umoci", "raw", "unpack", "--image", image, root, NULL};
    const char *const unpack_rootless[] = {"umoci",   "raw", "unpack", "--rootless",
                                           "--image", image, root,     NULL};
    const char *const measure[] = {"du", "-s", "--block-size=1", root, NULL};
    const char *const sync[] = {"sync", "-f", root, NULL};
    const char *const *const steps[STEP_COUNT] = {copy, geteuid() == 0 ? unpack : unpack_rootless, measure,
                                                  sync};
    autoclose int auth = pull->step == STEP_COPY ? auth_file(pull, err) : -1;
    return (pull->step != STEP_COPY || auth >= 0) && start_child(pull, steps[pull->step], auth, err);
}

static bool begin(struct pull *pull, struct err *err)
{
    struct images *images = pull->images;
    cache_make_room(images->cache, 0); /* and what an earlier pull has left */
    autofree char *folder = xprintf("%s/%s" CACHE_PART, cache_folder(images->cache), pull->name);
    pull->lock = cache_lock(folder, err);
    if (pull->lock < 0) {
        return false;
    }
    pull->folder = give(folder);
    loop_set(images->config.loop, &pull->watch, watch_due, pull); /* it may still wait to begin */
    if (mkdir(pull->folder, 0700) != 0) {
        return err_errno(err, "cannot make %s", pull->folder);
    }
    loop_arm(images->config.loop, &pull->watch, clock_boot_ms() + IMAGES_WATCH_MS);
    return run_step(pull, err);
}

/* One at a time, which has the network and the disk for itself. */
static void begin_next(struct images *images)
{
    struct err err;
    if (images->pulls != NULL && images->pulls->folder == NULL && !begin(images->pulls, &err)) {
        end_failed(images->pulls, BUILD_FAILED, "pulled", err.text);
    }
}

static void begin_due(void *closure)
{
    begin_next(((struct pull *)closure)->images);
}

/* --- from outside --------------------------------------------------------------------------------------- */

struct pull *pull_start(struct images *images, const struct image_need *need)
{
    char name[HASH_HEX + 1];
    struct pull *pull;
    image_name(need, name);
    DL_FOREACH (images->pulls, pull) {
        if (strcmp(pull->name, name) == 0) {
            return pull;
        }
    }
    pull = xzalloc(sizeof *pull);
    pull->images = images;
    pull->lock = -1;
    memcpy(pull->name, name, sizeof name);
    pull->image = xstrdup(need->image);
    pull->auth = need->auth != NULL ? xstrdup(need->auth) : NULL;
    pull->watch = (struct loop_timer){.due = begin_due, .closure = pull};
    DL_APPEND(images->pulls, pull);
    loop_arm(images->config.loop, &pull->watch, 0);
    return pull;
}

bool pull_waits(const struct pull *pull)
{
    return pull != pull->images->pulls;
}

void pull_stop(struct pull *pull)
{
    struct images *images = pull->images;
    destroy_pull(pull);
    begin_next(images);
}
