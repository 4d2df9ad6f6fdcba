/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the files that the ranks of a job kept: a list of them, and the bytes of one. Head and index of a
 * stream are read on the thread for files, because an index may have 1 MiB. */
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/logs.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/base/state.h"
#include "daemon/http/kept/kept.h"
#include "daemon/http/logs/logs.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/objects/recalls.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/members.h"

/* What is asked for, and what was found. */
struct look {
    struct request_work work; /* first */
    struct kept_attempt kept; /* attempt 0: there is none yet */
    bool ended;               /* the job: nothing more begins to come */
    char *path;      /* "RANK/PATH" of the one file, or of that behind which the page begins; NULL: none */
    int64_t limit;   /* of a page */
    struct text out; /* the page */
    struct kept_content content; /* of the one */
    bool ok;
    struct err err;
};

static void look_free(struct request_work *work)
{
    struct look *look = (struct look *)work;
    cleanup_close(&look->content.file);
    text_finish(&look->out);
    free(look->path);
    free(look);
}

/* --- the list ------------------------------------------------------------------------------------------- */

struct page {
    struct look *look;
    int64_t after_rank; /* -1: from the first file */
    const char *after;
    int64_t count, left_files, left_bytes;
    bool complete, more;
    struct text last; /* the name of the last file */
};

static bool is_behind(const struct page *page, int64_t rank, const char *path)
{
    return rank > page->after_rank || (rank == page->after_rank && strcmp(path, page->after) > 0);
}

static void write_file(struct page *page, const struct kept_rank *kept, const struct kept_file *file)
{
    struct text *out = &page->look->out;
    text_clear(&page->last);
    text_printf(&page->last, "%lld/%s", (long long)kept->rank, file->path);
    member_separate(out);
    member_write_text(out, "{\"path\":", page->last.bytes);
    member_write_int(out, ",\"size\":", file->size);
    member_write_time(out, ",\"modified_at\":", file->modified_ms);
    member_write_bool(out, ",\"executable\":", file->executable);
    member_write_bool(out, ",\"complete\":", kept->stored >= file->offset + file->size);
    text_append(out, "}");
    page->count++;
}

static bool write_rank(struct page *page, int64_t rank, struct err *err)
{
    struct kept_rank kept;
    bool known;
    bool read = kept_open(&page->look->kept, rank, &kept, &known, err);
    page->complete = page->complete && known && kept.stored >= kept.head.bytes;
    if (read && known) {
        page->left_files += kept.head.left_files;
        page->left_bytes += kept.head.left_bytes;
    }
    for (int64_t i = 0; read && known && i < kept.head.count && !page->more; i++) {
        if (is_behind(page, rank, kept.files[i].path)) {
            page->more = page->count == page->look->limit;
            if (!page->more) {
                write_file(page, &kept, &kept.files[i]);
            }
        }
    }
    kept_finish(&kept);
    return read;
}

static void write_end(const struct page *page, struct text *out)
{
    member_write_int(out, "],\"left_out\":{\"files\":", page->left_files);
    member_write_int(out, ",\"bytes\":", page->left_bytes);
    member_write_bool(out, "},\"complete\":", page->complete);
    member_write_text(out, ",\"next\":", page->more ? page->last.bytes : NULL);
    text_append(out, "}");
}

static bool write_page(struct look *look, struct err *err)
{
    autofree int64_t *ranks = NULL;
    size_t count = 0;
    struct page page = {.look = look, .after_rank = -1, .complete = look->ended};
    bool ok = (look->path == NULL || kept_name_cut(look->path, &page.after_rank, &page.after)) &&
              logs_kept_ranks(look->kept.logs, look->kept.job_id, look->kept.attempt, &ranks, &count, err);
    member_write_int(&look->out, "{\"attempt\":", look->kept.attempt);
    text_append(&look->out, ",\"files\":[");
    for (size_t i = 0; i < count && ok; i++) {
        ok = write_rank(&page, ranks[i], err);
    }
    write_end(&page, &look->out);
    text_finish(&page.last);
    return ok;
}

static void work_list(struct task *task)
{
    struct look *look = (struct look *)task;
    look->ok = write_page(look, &look->err);
}

static void reply_list(struct request_work *work)
{
    struct look *look = (struct look *)work;
    if (look->ok) {
        request_reply_json(work->request, 200, &look->out);
    } else {
        request_fail(work->request, &look->err);
    }
}

/* --- one file ------------------------------------------------------------------------------------------- */

static void work_find(struct task *task)
{
    struct look *look = (struct look *)task;
    look->ok = kept_find(&look->kept, look->path, &look->content, &look->err);
}

static void reply_file(struct request_work *work)
{
    struct look *look = (struct look *)work;
    if (look->ok) {
        kept_reply(work->request, &look->content);
    } else {
        request_fail(work->request, &look->err);
    }
}

/* --- requests ------------------------------------------------------------------------------------------- */

static bool read_look(struct look *look, struct request *request, const char *parameter, struct err *err)
{
    struct job_facts job;
    int64_t ignored;
    const char *ignored_path;
    if (!job_find(request, &job, err) || !logs_refuse_array(&job, err)) {
        return false;
    }
    const char *name = query_text(request->query, parameter);
    if (name != NULL && !kept_name_cut(name, &ignored, &ignored_path)) {
        return err_field(err, ERR_FIELD, parameter, "RANK/PATH, as the list has it",
                         "\"%.64s\" names no file", name);
    }
    look->kept = (struct kept_attempt){.logs = request->server->config.logs, .attempt = job.attempt};
    memcpy(look->kept.job_id, job.id, sizeof look->kept.job_id);
    look->ended = job_state_terminal(job.state);
    look->path = name != NULL ? xstrdup(name) : NULL;
    look->limit = LIMIT_LIST_DEFAULT_ROWS;
    return query_int(request->query, "attempt", 1, job.attempt > 0 ? job.attempt : 1, &look->kept.attempt,
                     err) &&
           query_int(request->query, "limit", 1, LIMIT_KEPT_FILES, &look->limit, err);
}

static bool look_begin(struct request *request, const char *parameter, struct look **ret_look,
                       struct err *err)
{
    struct look *look = *ret_look = xzalloc(sizeof *look);
    look->content.file = -1;
    request_work_begin(&look->work, request, look_free);
    return read_look(look, request, parameter, err);
}

/* Begins the look, or brings the files back first and calls again; then *ret_look is NULL. */
static bool look_or_recall(struct request *request, const char *parameter, recall_again *again,
                           struct look **ret_look, struct err *err)
{
    struct job_facts job;
    *ret_look = NULL;
    if (request->server->objects == NULL) {
        return look_begin(request, parameter, ret_look, err);
    }
    if (!job_find(request, &job, err)) {
        return false;
    }
    return recall_needs(request->server, job.id, JOB_KEPT) ? recall_job(request, job.id, JOB_KEPT, again, err)
                                                           : look_begin(request, parameter, ret_look, err);
}

bool files_list(struct request *request, struct err *err)
{
    struct look *look;
    if (!look_or_recall(request, "cursor", files_list, &look, err)) {
        return false;
    }
    return look == NULL ||
           request_work_give(&look->work, request->server->mlflow->disk, work_list, reply_list);
}

bool files_show(struct request *request, struct err *err)
{
    struct look *look;
    if (!look_or_recall(request, "path", files_show, &look, err)) {
        return false;
    }
    if (look == NULL) {
        return true;
    }
    if (look->path == NULL) {
        return err_field(err, ERR_FIELD, "path", "RANK/PATH, as GET /v1/jobs/{id}/files lists them",
                         "path is missing");
    }
    return request_work_give(&look->work, request->server->mlflow->disk, work_find, reply_file);
}
