/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the inputs of jobs. A fetch asks the source for the version first, in a process of its own
 * (agent/fetcher); another process fetches what is not here. cache.c has the folder:
 *
 *   <hash of the need>  in names/ leads to the version that was fetched last
 *   <hash of need and version>/data    what ranks see
 *   <hash of need and version>.part/   half a fetch, with `data` and `work`; the next one goes on with it
 *
 * Where jobs run as their owners, the fetcher has a number of its own, which owns what it has written. The
 * hash of a need holds a secret of the node, so nobody can guess where the inputs of others are: the folders
 * that lead there cannot be listed. */
#include "agent/environment/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/base/cache.h"
#include "agent/common/launch_file.h"
#include "agent/common/volume_mount.h"
#include "agent/fetcher/fetcher.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/limits_agent.h"
#include "proto/members.h"
#include "proto/spec/jobspec_parts.h"

#define SECRET        "secret"
#define MARKER        "gpuctl.json"
#define PASSAGE_MODE  0711 /* others pass, and cannot list */
#define ARGUMENTS_MAX 16   /* of a fetcher, with a NULL */

struct input_fetch {
    struct inputs *inputs;
    char name[HASH_HEX + 1];
    char *url, *sha256, *value; /* the last two may be NULL */
    struct child *child;        /* NULL: it waits for its turn */
    bool fetches;               /* else it probes */
    char *version;              /* that the probe has found; NULL: none yet */
    int64_t size_bytes;         /* -1: unknown */
    bool tree;                  /* the input is a folder */
    char *folder;               /* of that version; NULL: none yet */
    int lock;                   /* while it is made; -1: none */
    bool good;                  /* the fetcher has said so */
    char *failed;               /* or why not; or NULL */
    enum build_end end;         /* if it has failed */
    bool over;                  /* its end is being told */
    struct input_fetch *prev, *next;
};

struct inputs {
    struct inputs_config config;
    struct cache *cache;
    char *program; /* the agent's own */
    uint8_t secret[HASH_BYTES];
    struct input_fetch *fetches;
};

/* --- life ----------------------------------------------------------------------------------------------- */

static bool take_secret(struct inputs *inputs, struct err *err)
{
    autofree char *path = xprintf("%s/" SECRET, inputs->config.folder);
    autofree char *bytes = NULL;
    size_t length;
    if (file_read(path, HASH_BYTES, &bytes, &length, NULL) && length == HASH_BYTES) {
        memcpy(inputs->secret, bytes, HASH_BYTES);
        return true;
    }
    if (getrandom(inputs->secret, HASH_BYTES, 0) != HASH_BYTES) {
        return err_errno(err, "cannot draw a secret");
    }
    return file_replace(path, inputs->secret, HASH_BYTES, 0600, err);
}

/* Whatever the umask is. */
static bool make_place_of_all(const char *folder, struct err *err)
{
    return file_make_directories(folder, PASSAGE_MODE, err) &&
           (chmod(folder, PASSAGE_MODE) == 0 || err_errno(err, "%s", folder));
}

struct inputs *inputs_create(const struct inputs_config *config, struct err *err)
{
    struct inputs *inputs = xzalloc(sizeof *inputs);
    inputs->config = *config;
    inputs->cache = make_place_of_all(config->folder, err)
                        ? cache_create(&(struct cache_config){.folder = config->folder,
                                                              .noun = "input",
                                                              .limit_bytes = config->limit_bytes},
                                       err)
                        : NULL;
    inputs->program = realpath("/proc/self/exe", NULL);
    if (inputs->cache == NULL || !take_secret(inputs, err)) {
        inputs_destroy(inputs);
        return NULL;
    }
    cache_make_room(inputs->cache, 0);
    return inputs;
}

void inputs_destroy(struct inputs *inputs)
{
    if (inputs != NULL) {
        cache_destroy(inputs->cache);
        free(inputs->program);
        free(inputs);
    }
}

bool inputs_step(struct inputs *inputs)
{
    return cache_step(inputs->cache);
}

/* --- names ---------------------------------------------------------------------------------------------- */

static void hash_lines(const struct inputs *inputs, const char *lines, char out[HASH_HEX + 1])
{
    uint8_t sum[HASH_BYTES];
    hash_keyed(inputs->secret, HASH_BYTES, lines, strlen(lines), sum);
    text_to_hex(sum, sizeof sum, out);
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static void name_need(const struct inputs *inputs, const struct input_need *need, char out[HASH_HEX + 1])
{
    bool own = need->secret != NULL;
    autofree char *lines =
        xprintf("%s\n%s\n%s\n%s\n%s\n", need->url, or_empty(need->sha256), own ? need->secret : "",
                own ? or_empty(need->owner) : "", own ? or_empty(need->project) : "");
    hash_lines(inputs, lines, out);
}

/* The name of the file that the input becomes: the last part of its URL, where that can be one. */
static char *entry_of(const char *url)
{
    size_t end = strcspn(url, "?"), begin = end;
    while (begin > 0 && url[begin - 1] != '/') {
        begin--;
    }
    char *entry = xstrndup(url + begin, end - begin);
    if (jobspec_is_inner_path(entry)) {
        return entry;
    }
    free(entry);
    return xstrdup("data");
}

/* --- fetches -------------------------------------------------------------------------------------------- */

static struct input_fetch *find_fetch(const struct inputs *inputs, const char *name)
{
    struct input_fetch *fetch;
    DL_FOREACH (inputs->fetches, fetch) {
        if (strcmp(fetch->name, name) == 0) {
            return fetch;
        }
    }
    return NULL;
}

static void wipe(char *text)
{
    if (text != NULL) {
        explicit_bzero(text, strlen(text));
        free(text);
    }
}

/* It is in the list no more. */
static void free_fetch(struct input_fetch *fetch)
{
    cleanup_close(&fetch->lock);
    free(fetch->url);
    free(fetch->sha256);
    wipe(fetch->value);
    free(fetch->version);
    free(fetch->folder);
    free(fetch->failed);
    free(fetch);
}

static void fail(struct input_fetch *fetch, enum build_end end, const char *text)
{
    free(fetch->failed);
    fetch->failed = xstrdup(text);
    fetch->end = end;
}

static void begin_next(struct inputs *inputs);

/* Those who are told may stop other fetches, which begins the next one: never this one again. Who wants this
 * one twice may stop it, too. */
static void end_fetch(struct input_fetch *fetch)
{
    struct inputs *inputs = fetch->inputs;
    DL_DELETE(inputs->fetches, fetch);
    fetch->over = true;
    bool ready = fetch->failed == NULL;
    if (ready) {
        log_info("input ready", "url=\"%.*s\" size_bytes=%lld fetched=%d", (int)strcspn(fetch->url, "?"),
                 fetch->url, (long long)fetch->size_bytes, fetch->fetches);
    }
    cleanup_close(&fetch->lock); /* those who are told lock the input */
    fetch->lock = -1;
    inputs->config.done(inputs->config.closure, fetch, ready ? BUILD_READY : fetch->end, fetch->failed);
    free_fetch(fetch);
    begin_next(inputs);
}

/* --- the result of a fetch ------------------------------------------------------------------------------ */

static json_t *marker_of(const struct input_fetch *fetch)
{
    json_t *marker = json_object();
    autofree char *entry = entry_of(fetch->url);
    autofree char *shown = xstrndup(fetch->url, strcspn(fetch->url, "?"));
    member_put_text(marker, "url", shown);
    member_put_text(marker, "version", fetch->version);
    member_put_int(marker, "size_bytes", fetch->size_bytes > 0 ? fetch->size_bytes : 0);
    member_put_text(marker, "entry", fetch->tree ? NULL : entry);
    return marker;
}

static bool write_marker(const struct input_fetch *fetch, const char *folder, struct err *err)
{
    autojson json_t *marker = marker_of(fetch);
    return cache_mark(folder, marker, err);
}

/* Until the rename nobody sees any of it. */
static bool keep(struct input_fetch *fetch, struct err *err)
{
    autofree char *part = xprintf("%s" CACHE_PART, fetch->folder);
    autofree char *work = xprintf("%s/" FETCHER_WORK, part);
    cache_discard(fetch->inputs->cache, work);
    return write_marker(fetch, part, err) &&
           (rename(part, fetch->folder) == 0 || err_errno(err, "cannot keep %s", part)) &&
           file_sync_folder(cache_folder(fetch->inputs->cache), err) &&
           cache_link(fetch->inputs->cache, fetch->name, fetch->folder, err);
}

/* --- a place for it ------------------------------------------------------------------------------------- */

static bool is_here(struct input_fetch *fetch)
{
    autofree char *marker = xprintf("%s/" MARKER, fetch->folder);
    return access(marker, R_OK) == 0;
}

static bool make_folder(const struct inputs *inputs, const char *path, mode_t mode, bool fetchers)
{
    return ((mkdir(path, mode) == 0 && chmod(path, mode) == 0) || errno == EEXIST) &&
           (!fetchers || inputs->config.uid == 0 ||
            lchown(path, inputs->config.uid, inputs->config.uid) == 0);
}

static bool make_place(struct input_fetch *fetch, struct err *err)
{
    struct inputs *inputs = fetch->inputs;
    int64_t size = fetch->size_bytes > 0 ? fetch->size_bytes : 0;
    autofree char *part = xprintf("%s" CACHE_PART, fetch->folder);
    autofree char *data = xprintf("%s/" FETCHER_DATA, part);
    autofree char *work = xprintf("%s/" FETCHER_WORK, part);
    bool known = access(part, F_OK) == 0; /* its size counts already */
    fetch->lock = cache_lock(fetch->folder, err);
    if (fetch->lock < 0) {
        return false;
    }
    if (cache_make_room(inputs->cache, known ? 0 : size) > 0) {
        return err_set(err, ERR_DISK_FULL,
                       "there is no room for an input of %.1f MB: jobs use too much of what this node keeps",
                       (double)size / 1e6);
    }
    return (make_folder(inputs, part, PASSAGE_MODE, false) && make_folder(inputs, data, 0755, true) &&
            make_folder(inputs, work, 0700, true)) ||
                   err_errno(err, "%s", part)
               ? write_marker(fetch, part, err)
               : false;
}

/* --- the fetcher ---------------------------------------------------------------------------------------- */

static void line_came(void *closure, const char *line)
{
    struct input_fetch *fetch = closure;
    struct inputs *inputs = fetch->inputs;
    autojson json_t *row = json_parse(line, strlen(line), NULL);
    const char *text = json_string_of(row, "text"), *failed = json_string_of(row, "failed");
    const char *version = json_string_of(row, "version");
    if (text != NULL) {
        inputs->config.told(inputs->config.closure, fetch, text);
    } else if (failed != NULL) {
        fail(fetch,
             json_is_true(json_object_get(row, "by_user"))   ? BUILD_REFUSED
             : json_is_true(json_object_get(row, "lasting")) ? BUILD_UNABLE
                                                             : BUILD_FAILED,
             failed);
    } else if (version != NULL && !fetch->fetches) {
        free(fetch->version);
        fetch->version = xstrdup(version);
        fetch->size_bytes = json_integer_value(json_object_get(row, "size"));
        fetch->tree = json_is_true(json_object_get(row, "tree"));
        fetch->good = true;
    } else if (json_is_true(json_object_get(row, "done")) && fetch->fetches) {
        fetch->size_bytes = json_integer_value(json_object_get(row, "size"));
        fetch->good = true;
    }
}

static json_t *order_of(const struct input_fetch *fetch)
{
    const struct inputs_config *config = &fetch->inputs->config;
    json_t *order = json_object();
    autofree char *entry = entry_of(fetch->url);
    autofree char *part = fetch->fetches ? xprintf("%s" CACHE_PART, fetch->folder) : NULL;
    member_put_text(order, "url", fetch->url);
    member_put_text(order, "entry", entry);
    member_put_text(order, "version", fetch->version);
    member_put_int(order, "size", fetch->fetches ? fetch->size_bytes : -1);
    member_put_int(order, "limit_bytes", config->limit_bytes);
    member_put_text(order, "sha256", fetch->sha256);
    member_put_text(order, "credentials", fetch->value);
    member_put_text(order, "networks", config->networks);
    member_put_bool(order, "plain_http", config->plain_http);
    member_put_text(order, "endpoint", config->s3_endpoint);
    member_put_text(order, "region", config->s3_region);
    member_put_text(order, "volume", volumes_path(config->volumes, fetch->url));
    member_put_text(order, "folder", part);
    return order;
}

/* The order as a file without a name, which the caller closes. */
static int order_file(const struct input_fetch *fetch, struct err *err)
{
    autojson json_t *order = order_of(fetch);
    autofree char *text = json_text(order);
    autoclose int file = memfd_create("order", MFD_CLOEXEC);
    bool written = file >= 0 && file_write_all(file, text, strlen(text)) && lseek(file, 0, SEEK_SET) == 0;
    explicit_bzero(text, strlen(text));
    if (!written) {
        err_errno(err, "cannot order a fetch");
        return -1;
    }
    return give_fd(&file);
}

static void child_done(void *closure, int status, const char *said);

static bool start_child(struct input_fetch *fetch, struct err *err)
{
    struct inputs *inputs = fetch->inputs;
    const struct inputs_config *config = &inputs->config;
    autofree char *uid = xprintf("--reuid=%u", (unsigned)config->uid);
    autofree char *gid = xprintf("--regid=%u", (unsigned)config->uid);
    const char *const words[] = {config->confine, config->confine_option, "-", config->seccomp ? "1" : "0"};
    const char *const as_user[] = {
        "setpriv", uid, gid, "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--"};
    const char *arguments[ARGUMENTS_MAX] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        arguments[count++] = words[i];
    }
    for (size_t i = 0; i < sizeof as_user / sizeof as_user[0] && config->uid != 0; i++) {
        arguments[count++] = as_user[i];
    }
    arguments[count++] = inputs->program;
    arguments[count++] = FETCHER_WORD;
    autofree const char **passed = builder_variables();
    autoclose int order = order_file(fetch, err);
    fetch->good = false;
    fetch->child = order >= 0 ? child_start(config->children,
                                            &(struct child_call){.arguments = arguments,
                                                                 .variables = passed,
                                                                 .input = order,
                                                                 .extra = fetch->lock,
                                                                 .line = line_came,
                                                                 .done = child_done,
                                                                 .closure = fetch},
                                            err)
                              : NULL;
    return fetch->child != NULL;
}

/* After the probe: the version is here, or is fetched now. */
static bool go_on(struct input_fetch *fetch, struct err *err)
{
    struct inputs *inputs = fetch->inputs;
    char hash[HASH_HEX + 1];
    autofree char *lines = xprintf("%s\n%s\n", fetch->name, fetch->version);
    hash_lines(inputs, lines, hash);
    fetch->folder = xprintf("%s/%s", cache_folder(inputs->cache), hash);
    if (is_here(fetch)) {
        return cache_link(inputs->cache, fetch->name, fetch->folder, err);
    }
    fetch->fetches = true;
    return make_place(fetch, err) && start_child(fetch, err);
}

static void explain(struct input_fetch *fetch, int status, const char *said)
{
    autofree char *first = xstrndup(said, strcspn(said, "\n"));
    autofree char *text = WIFSIGNALED(status)
                              ? xprintf("the fetch was killed by signal %d", WTERMSIG(status))
                              : xprintf("the fetch ended with code %d: %s", WEXITSTATUS(status), first);
    fail(fetch, BUILD_FAILED, text);
}

/* A part of wrong content, and one that fills the disk, is of no use to the next fetch. */
static void drop_useless(const struct input_fetch *fetch)
{
    if (fetch->fetches && fetch->failed != NULL &&
        (fetch->end == BUILD_REFUSED || cache_missing_bytes(fetch->inputs->cache) > 0)) {
        autofree char *part = xprintf("%s" CACHE_PART, fetch->folder);
        cache_discard(fetch->inputs->cache, part);
    }
}

static void child_done(void *closure, int status, const char *said)
{
    struct input_fetch *fetch = closure;
    struct err err;
    fetch->child = NULL;
    if (fetch->failed == NULL && (!fetch->good || status != 0)) {
        explain(fetch, status, said);
    }
    bool good = fetch->failed != NULL || (fetch->fetches ? keep(fetch, &err) : go_on(fetch, &err));
    if (!good) {
        fail(fetch, BUILD_FAILED, err.text);
    }
    if (fetch->child == NULL) {
        drop_useless(fetch);
        end_fetch(fetch);
    }
}

/* --- from outside --------------------------------------------------------------------------------------- */

static struct input_fetch *next_fetch(struct inputs *inputs)
{
    size_t running = 0;
    struct input_fetch *fetch, *first = NULL;
    DL_FOREACH (inputs->fetches, fetch) {
        running += fetch->child != NULL;
        first = first == NULL && fetch->child == NULL ? fetch : first;
    }
    return running < LIMIT_INPUT_FETCHES ? first : NULL;
}

static void begin_next(struct inputs *inputs)
{
    struct err err;
    struct input_fetch *fetch = next_fetch(inputs);
    if (fetch != NULL && !start_child(fetch, &err)) {
        fail(fetch, BUILD_FAILED, err.text);
        end_fetch(fetch); /* which begins the next one */
    }
}

static char *copy(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

struct input_fetch *input_fetch_begin(struct inputs *inputs, const struct input_need *need, struct err *err)
{
    char name[HASH_HEX + 1];
    name_need(inputs, need, name);
    struct input_fetch *fetch = find_fetch(inputs, name);
    if (fetch != NULL) {
        return fetch;
    }
    fetch = xzalloc(sizeof *fetch);
    *fetch = (struct input_fetch){.inputs = inputs,
                                  .url = xstrdup(need->url),
                                  .sha256 = copy(need->sha256),
                                  .value = copy(need->value),
                                  .size_bytes = -1,
                                  .lock = -1,
                                  .end = BUILD_FAILED};
    memcpy(fetch->name, name, sizeof name);
    DL_APPEND(inputs->fetches, fetch);
    if (next_fetch(inputs) == fetch && !start_child(fetch, err)) {
        DL_DELETE(inputs->fetches, fetch);
        free_fetch(fetch);
        return NULL;
    }
    return fetch;
}

void input_fetch_stop(struct input_fetch *fetch)
{
    struct inputs *inputs = fetch->inputs;
    if (fetch->over) {
        return;
    }
    child_stop(fetch->child, 0);
    DL_DELETE(inputs->fetches, fetch);
    free_fetch(fetch);
    begin_next(inputs);
}

/* --- for a job ------------------------------------------------------------------------------------------ */

bool input_use_begin(const struct inputs *inputs, const struct input_need *need, struct input_use *ret_use)
{
    char name[HASH_HEX + 1];
    autojson json_t *marker = NULL;
    autofree char *folder = NULL;
    name_need(inputs, need, name);
    *ret_use = (struct input_use){.lock = cache_use(inputs->cache, name, &marker, &folder)};
    if (ret_use->lock < 0) {
        return false;
    }
    const char *entry = json_string_of(marker, "entry");
    ret_use->data = xprintf("%s/" FETCHER_DATA, folder);
    ret_use->lock_path = cache_lock_path(folder);
    ret_use->entry = copy(entry);
    return true;
}

void input_use_finish(struct input_use *use)
{
    cleanup_close(&use->lock);
    free(use->data);
    free(use->lock_path);
    free(use->entry);
    *use = (struct input_use){.lock = -1};
}

bool inputs_check_job(const struct inputs *inputs, const struct job_spec *spec, struct err *err)
{
    for (size_t i = 0; spec->image == NULL && i < spec->input_count; i++) {
        const char *path = spec->inputs[i].path;
        if (path != NULL && !inputs->config.mounts) {
            autofree char *field = xprintf("inputs[%zu]", i);
            return err_field(
                err, ERR_FIELD, field, "leave the path out: the variable has the path",
                "this node mounts nothing at %.200s: its agent is not root, or shares its memory", path);
        }
        if (path != NULL && !volume_place_check(path, err)) {
            return false;
        }
    }
    return true;
}

void input_write(const struct inputs *inputs, const struct job_input *input, const struct input_use *use,
                 bool in_image, struct text *launch)
{
    const char *at = input->path != NULL ? input->path : use->data;
    autofree char *path = xprintf("%s%s%s", at, use->entry != NULL ? "/" : "", or_empty(use->entry));
    launch_put_env(launch, input->variable, path);
    launch_put(launch, "hold", use->lock_path);
    if (inputs->config.mounts && !in_image) {
        launch_put(launch, "volume_from", use->data);
        launch_put(launch, "volume_at", at);
        launch_put_int(launch, "volume_read_only", 1);
    }
}
