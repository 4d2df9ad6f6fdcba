/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl cp`: copies files that the ranks of a job kept to this machine, and files between this machine and
 * a rank that runs. */
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/files/kept.h"
#include "client/cli/common/jobs.h"
#include "client/cli/common/save.h"
#include "client/cli/files/live.h"
#include "client/cli/frame/verb.h"
#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

#define PAUSE_MS        500 /* between two looks for files that are on their way */
#define FOLDER_MODE     0777
#define EXECUTABLE_MODE 0755

struct cp_options {
    int64_t attempt;
};

static const struct option_row rows[] = {ROW_INT(struct cp_options, attempt, 0, "attempt", "N",
                                                 "of an earlier attempt (default: the newest)", 1, INT32_MAX,
                                                 .absent = NOT_GIVEN),
                                         ROWS_END};

/* The path behind JOB: or JOB.RANK:, NULL where the word is a path of this machine. */
static const char *path_in_job(const char *word)
{
    size_t length = strcspn(word, ":/");
    return length > 0 && word[length] == ':' ? word + length + 1 : NULL;
}

static bool check(const struct call *call, struct err *err)
{
    const struct cp_options *options = call->options;
    bool from = path_in_job(call->rest[0]) != NULL, to = path_in_job(call->rest[1]) != NULL;
    if (from == to) {
        err_set(err, ERR_USAGE,
                from ? "both \"%s\" and \"%s\" are of jobs" : "neither \"%s\" nor \"%s\" is of a job",
                call->rest[0], call->rest[1]);
        return err_hint(
            err, "JOB:RANK/PATH is what a rank kept, JOB: is all of it, JOB.RANK:PATH is of a rank that "
                 "runs; ./PATH is of this machine, whatever is in its name");
    }
    if (to && options->attempt != NOT_GIVEN) {
        return err_field(err, ERR_USAGE, "attempt", "leave it out",
                         "files can be copied to the attempt that runs alone");
    }
    return to || strcmp(call->rest[1], "-") != 0 || save_check("-", err);
}

/* Files of a job that has ended may still be on their way from their node. */
static bool await(struct api *api, struct kept *kept, struct err *err)
{
    bool good = api_catch_interrupts(api, err);
    if (good && kept->ended && !kept->complete) {
        print_note("waits for files that are on their way");
    }
    while (good && kept->ended && !kept->complete) {
        api_pause(api, PAUSE_MS);
        good = (api_interrupts(api) == 0 || err_set(err, ERR_IO, "interrupted before all files had come")) &&
               kept_renew(api, kept, err);
    }
    return good;
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* What stands behind the last slash. */
static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Like cp -r: into a folder that is there, else under the new name. The caller frees it. */
static char *place_of(const struct kept *kept, const char *name, const char *target, bool inside)
{
    size_t length = strlen(kept->path);
    const char *rest = length == 0 ? name : name + length + (name[length] == '/');
    if (!inside || length == 0) {
        return *rest != '\0' ? xprintf("%s/%s", target, rest) : xstrdup(target);
    }
    return *rest != '\0' ? xprintf("%s/%s/%s", target, base_of(kept->path), rest)
                         : xprintf("%s/%s", target, base_of(kept->path));
}

static bool make_folder_of(const char *place, struct err *err)
{
    const char *slash = strrchr(place, '/');
    autofree char *folder = slash != NULL ? xstrndup(place, (size_t)(slash - place)) : NULL;
    return folder == NULL || *folder == '\0' || file_make_directories(folder, FOLDER_MODE, err);
}

static bool copy(struct api *api, const struct kept *kept, const json_t *file, const char *place,
                 struct err *err)
{
    autotext struct text path = {0};
    text_printf(&path, "/v1/jobs/%s/files/content", kept->id);
    api_query(&path, "path", json_string_of(file, "path"));
    if (kept->attempt != NOT_GIVEN) {
        autofree char *number = xprintf("%lld", (long long)kept->attempt);
        api_query(&path, "attempt", number);
    }
    const struct stored stored = {.path = path.bytes,
                                  .size = json_integer_value(json_object_get(file, "size"))};
    bool executable = json_is_true(json_object_get(file, "executable"));
    return make_folder_of(place, err) && save_stored(api, &stored, place, err) &&
           (!executable || strcmp(place, "-") == 0 || chmod(place, EXECUTABLE_MODE) == 0 ||
            err_errno(err, "cannot make %s executable", place));
}

static bool copy_all(struct api *api, const struct kept *kept, const char *target, struct err *err)
{
    bool inside = is_folder(target), to_stdout = strcmp(target, "-") == 0;
    size_t i;
    const json_t *file;
    if (to_stdout && !kept->is_file) {
        return err_set(err, ERR_USAGE, "only one file can go to stdout");
    }
    json_array_foreach (kept->files, i, file) {
        autofree char *place =
            to_stdout ? xstrdup("-") : place_of(kept, json_string_of(file, "path"), target, inside);
        if (!copy(api, kept, file, place, err)) {
            return false;
        }
    }
    return true;
}

static bool copy_kept(const struct call *call, struct err *err)
{
    const struct cp_options *options = call->options;
    struct kept kept;
    bool good = kept_read(call->api, call->rest[0], options->attempt, &kept, err) &&
                await(call->api, &kept, err) && copy_all(call->api, &kept, call->rest[1], err);
    if (good && *kept.path == '\0') {
        kept_say_left(&kept);
    }
    kept_finish(&kept);
    return good;
}

/* --- of a rank that runs --- */

/* *ret_rank: NOT_GIVEN where the word has none. */
static bool resolve_word(const struct call *call, const char *word, const char *path,
                         char ret_id[RESOLVED_BYTES], int64_t *ret_rank, struct err *err)
{
    autofree char *job = xstrndup(word, (size_t)(path - word) - 1);
    *ret_rank = NOT_GIVEN;
    return resolve_rank(call->api, job, ret_id, ret_rank, err);
}

static bool copy_in(const struct call *call, struct err *err)
{
    char id[RESOLVED_BYTES];
    const char *path = path_in_job(call->rest[1]);
    struct live live = {.job_id = id, .path = path};
    if (!resolve_word(call, call->rest[1], path, id, &live.rank, err)) {
        return false;
    }
    live.rank = live.rank == NOT_GIVEN ? 0 : live.rank;
    return live_put(call->api, &live, call->rest[0], err);
}

/* Of a rank that runs are names with a rank, and absolute paths; what ranks kept has none. */
static bool copy_out(const struct call *call, const char *path, struct err *err)
{
    const struct cp_options *options = call->options;
    char id[RESOLVED_BYTES];
    struct live live = {.job_id = id, .path = path};
    if (!resolve_word(call, call->rest[0], path, id, &live.rank, err)) {
        return false;
    }
    if (live.rank == NOT_GIVEN && path[0] != '/') {
        return copy_kept(call, err);
    }
    live.rank = live.rank == NOT_GIVEN ? 0 : live.rank;
    return options->attempt == NOT_GIVEN ? live_get(call->api, &live, call->rest[1], err)
                                         : err_field(err, ERR_USAGE, "attempt", "leave it out",
                                                     "only the attempt that runs can be read so");
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const char *path = path_in_job(call->rest[0]);
    return path != NULL ? copy_out(call, path, err) : copy_in(call, err);
}

const struct verb verb_cp = {
    .name = "cp",
    .arguments = "SOURCE TARGET",
    .summary = "Copy what ranks kept, or files between this machine and a rank that runs.",
    .details = "A folder is copied with all that is in it, like cp -r does. One of the two is of a job:\n"
               "\n"
               "  JOB:RANK/PATH    what a rank kept in $GPUCTL_OUTPUT_DIR; `gpuctl ls JOB` lists it\n"
               "  JOB:             all of that, in a folder for each rank\n"
               "  JOB.RANK:PATH    of a rank that runs, from its working folder, as a source or a target\n"
               "  JOB:/PATH        the same of rank 0\n"
               "\n"
               "With - as the target one file goes to stdout. Files of a running rank come and go through "
               "tar, which is\n"
               "needed on both machines; only the owner of the job and administrators may copy them.\n"
               "\n"
               "Examples:\n"
               "  gpuctl cp x7k2:0/model.pt .\n"
               "  gpuctl cp x7k2.3:core.1234 .              out of the working folder of rank 3\n"
               "  gpuctl cp settings.yaml x7k2:             into that of rank 0",
    .argument = ARGUMENT_JOB,
    .least = 2,
    .most = 2,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct cp_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
