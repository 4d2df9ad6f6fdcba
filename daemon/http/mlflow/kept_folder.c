/* SPDX-License-Identifier: Apache-2.0 */
/* Shows kept files as artifacts. Nothing is copied, and no run is made: a run shows the files of the attempt
 * that it is of. Its tags name the attempt; as clients may write tags, the id of the run has to follow from
 * that attempt, too. The files stay those of the job: who may not see the job does not see them. */
#include "daemon/http/mlflow/kept_folder.h"

#include <string.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/objects/recalls.h"
#include "daemon/store/store.h"

bool kept_folder_is_in(const char *path)
{
    return strstr(path, "/" KEPT_FOLDER) != NULL;
}

/* What of the path is below the folder. false: the path has nothing to do with it. */
static bool read_inner(const char *path, size_t run_folder, const char **ret_inner)
{
    const char *rest = path + run_folder;
    size_t length = sizeof KEPT_FOLDER; /* with the slash before it */
    *ret_inner = NULL;
    if (*rest == '\0') {
        return true;
    }
    if (strncmp(rest, "/" KEPT_FOLDER, length) != 0 || (rest[length] != '\0' && rest[length] != '/')) {
        return false;
    }
    *ret_inner = rest[length] == '/' ? rest + length + 1 : "";
    return true;
}

static bool is_its_run(const struct server *server, int64_t job_key, const struct tracking_place *place,
                       bool *ret_is, struct err *err)
{
    uint64_t attempt_id;
    char run_id[TRACKING_RUN_ID_BYTES];
    if (!job_attempt_id(server->reader, job_key, place->attempt, &attempt_id, err)) {
        return false;
    }
    rank_run_id(server->rank_key, attempt_id, run_id);
    *ret_is = attempt_id != 0 && strcmp(run_id, place->run_id) == 0;
    return true;
}

bool kept_folder_find(struct server *server, const struct tracking_rights *rights,
                      const struct tracking_place *place, const char *path, struct kept_folder *ret_folder,
                      struct err *err)
{
    struct kept_folder folder = {.server = server};
    bool is = false;
    *ret_folder = folder;
    if (place->run_id[0] == '\0' || !read_inner(path, place->folder, &folder.inner)) {
        return true;
    }
    int64_t job_key = 0;
    {
        autorows struct rows rows = reader_job(server->reader, place->job_id, err);
        struct job_record job;
        if (rows_job(&rows, &job)) {
            job_key = job.birth.key;
            folder.shown = rights->have(rights, TRACKING_SEES, job.birth.owner, job.birth.project);
        }
        if (rows.failed) {
            return false;
        }
    }
    if (job_key == 0) {
        return true;
    }
    if (!is_its_run(server, job_key, place, &is, err)) {
        return false;
    }
    if (is) {
        folder.attempt = (struct kept_attempt){.logs = server->config.logs, .attempt = place->attempt};
        memcpy(folder.attempt.job_id, place->job_id, sizeof place->job_id);
        folder.away = folder.shown && recall_needs(server, place->job_id, JOB_KEPT);
        *ret_folder = folder;
    }
    return true;
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* That the run's folder shows it brings nothing back. */
struct worker *kept_folder_worker(const struct kept_folder *folder)
{
    return folder->away && folder->inner != NULL ? recalls_worker(folder->server, folder->attempt.job_id)
                                                 : folder->server->mlflow->disk;
}

static bool bring_back(const struct kept_folder *folder, struct err *err)
{
    return !folder->away ||
           objects_recall_job(folder->server->objects, folder->attempt.job_id, JOB_KEPT, err);
}

bool kept_folder_list(const struct kept_folder *folder, const char *prefix, struct text *out, struct err *err)
{
    bool has = folder->away;
    if (!folder->shown) {
        return true;
    }
    if (folder->inner != NULL) {
        return bring_back(folder, err) && kept_list_folder(&folder->attempt, folder->inner, prefix, out, err);
    }
    if (!folder->away && !kept_has_files(&folder->attempt, &has, err)) {
        return false;
    }
    if (has) {
        kept_write_entry(out, prefix, KEPT_FOLDER, sizeof KEPT_FOLDER - 1, -1);
    }
    return true;
}

bool kept_folder_open(const struct kept_folder *folder, struct kept_content *ret_content, struct err *err)
{
    int64_t rank;
    const char *path;
    if (!kept_name_cut(folder->inner, &rank, &path)) {
        return err_set(err, ERR_NOT_FOUND, "there is no artifact " KEPT_FOLDER "/%s", folder->inner);
    }
    if (!bring_back(folder, err)) {
        return false;
    }
    bool found = kept_find(&folder->attempt, folder->inner, ret_content, err);
    err->code = !found && err->code == ERR_CONFLICT ? ERR_UNAVAILABLE : err->code;
    return found;
}
