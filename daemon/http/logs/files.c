/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the files that the ranks of a job kept: a list of them, and the bytes of one. Head and index of a
 * stream are read on the thread for files, because an index may have 1 MiB. What a node has sent is not
 * trusted: proto/wire/kept_files.h decodes it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/blob/logs.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/base/state.h"
#include "daemon/http/logs/logs.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/logs/range.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/members.h"
#include "proto/wire/kept_files.h"

/* What is asked for, and what was found. */
struct look {
    struct request_work work; /* first */
    const struct logs *logs;
    char job_id[ID_LENGTH + 1];
    int64_t attempt; /* 0: there is none yet */
    bool ended;      /* the job: nothing more begins to come */
    char *path;      /* "RANK/PATH" of the one file, or of that behind which the page begins; NULL: none */
    int64_t limit;   /* of a page */
    struct text out; /* the page */
    int file;        /* of the one: its stream, ... */
    int64_t offset, size; /* ... and its place there */
    bool ok;
    struct err err;
};

static void look_free(struct request_work *work)
{
    struct look *look = (struct look *)work;
    cleanup_close(&look->file);
    text_finish(&look->out);
    free(look->path);
    free(look);
}

/* --- one rank's stream ---------------------------------------------------------------------------------- */

struct kept {
    int file;
    int64_t rank, stored;
    struct kept_head head;
    char *index;
    struct kept_file *files;
};

static void kept_finish(struct kept *kept)
{
    cleanup_close(&kept->file);
    free(kept->index);
    free(kept->files);
}

static bool read_at(int file, int64_t offset, char *buffer, size_t length)
{
    return pread(file, buffer, length, (off_t)offset) == (ssize_t)length;
}

/* *ret_known false: head and index have not come yet. */
static bool kept_open(const struct look *look, int64_t rank, struct kept *ret_kept, bool *ret_known,
                      struct err *err)
{
    char head[KEPT_HEAD_BYTES];
    const struct log_name name = {look->job_id, look->attempt, rank, STREAM_FILES};
    *ret_kept = (struct kept){.rank = rank};
    ret_kept->file = logs_open_stream(look->logs, &name, &ret_kept->stored, err);
    *ret_known = ret_kept->file >= 0 && ret_kept->stored >= KEPT_HEAD_BYTES;
    if (!*ret_known) {
        return ret_kept->file >= 0 || err->code == ERR_NONE;
    }
    if (!read_at(ret_kept->file, 0, head, sizeof head) || !kept_head_decode(head, &ret_kept->head, err)) {
        return err_set(err, ERR_IO, "the files of rank %lld cannot be read", (long long)rank);
    }
    size_t length = (size_t)ret_kept->head.index_bytes;
    *ret_known = ret_kept->stored >= KEPT_HEAD_BYTES + (int64_t)length;
    if (!*ret_known) {
        return true;
    }
    ret_kept->index = xzalloc(length + 1);
    return (read_at(ret_kept->file, KEPT_HEAD_BYTES, ret_kept->index, length) &&
            kept_index_decode(ret_kept->index, &ret_kept->head, &ret_kept->files, err)) ||
           err_set(err, ERR_IO, "the files of rank %lld cannot be read", (long long)rank);
}

/* --- the list ------------------------------------------------------------------------------------------- */

/* "RANK/PATH"; *ret_path points into name. */
static bool name_cut(const char *name, int64_t *ret_rank, const char **ret_path)
{
    const char *slash = strchr(name, '/');
    autofree char *number = slash != NULL ? xstrndup(name, (size_t)(slash - name)) : NULL;
    *ret_path = slash != NULL ? slash + 1 : NULL;
    return slash != NULL && text_to_int(number, 0, LIMIT_GPUS, ret_rank) && kept_path_is_good(*ret_path);
}

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

static void write_file(struct page *page, const struct kept *kept, const struct kept_file *file)
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
    struct kept kept;
    bool known;
    bool read = kept_open(page->look, rank, &kept, &known, err);
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
    bool ok = (look->path == NULL || name_cut(look->path, &page.after_rank, &page.after)) &&
              logs_kept_ranks(look->logs, look->job_id, look->attempt, &ranks, &count, err);
    member_write_int(&look->out, "{\"attempt\":", look->attempt);
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

static int by_path(const void *left, const void *right)
{
    return strcmp(left, ((const struct kept_file *)right)->path);
}

static bool take_file(struct look *look, struct kept *kept, const char *path, struct err *err)
{
    const struct kept_file *file =
        kept->files != NULL ? bsearch(path, kept->files, (size_t)kept->head.count, sizeof *file, by_path)
                            : NULL;
    if (file == NULL) {
        err_set(err, ERR_NOT_FOUND, "attempt %lld of job %s has kept no file %s", (long long)look->attempt,
                look->job_id, look->path);
        return err_hint(err, "gpuctl ls %s lists them", look->job_id);
    }
    int64_t there = kept->stored - file->offset;
    if (there < file->size) {
        err_set(err, ERR_CONFLICT, "%lld of the %lld bytes of %s have come from the node",
                (long long)(there > 0 ? there : 0), (long long)file->size, look->path);
        return err_hint(err, "ask again: the rest is on its way");
    }
    look->file = give_fd(&kept->file);
    look->offset = file->offset;
    look->size = file->size;
    return true;
}

static void work_find(struct task *task)
{
    struct look *look = (struct look *)task;
    struct kept kept;
    int64_t rank = 0;
    const char *path = NULL;
    bool known;
    name_cut(look->path, &rank, &path); /* checked before */
    look->ok = kept_open(look, rank, &kept, &known, &look->err) && take_file(look, &kept, path, &look->err);
    kept_finish(&kept);
}

static void reply_file(struct request_work *work)
{
    struct look *look = (struct look *)work;
    static const char type[] = "application/octet-stream";
    if (!look->ok) {
        request_fail(work->request, &look->err);
        return;
    }
    int file = give_fd(&look->file);
    if (!range_reply(work->request, type, file, look->offset, look->size)) {
        request_reply_file(work->request, 200, type, file, (uint64_t)look->offset, (uint64_t)look->size);
        request_header(work->request, "Accept-Ranges", "bytes");
    }
    request_header(work->request, "Content-Disposition", "attachment");
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
    if (name != NULL && !name_cut(name, &ignored, &ignored_path)) {
        return err_field(err, ERR_FIELD, parameter, "RANK/PATH, as the list has it",
                         "\"%.64s\" names no file", name);
    }
    look->logs = request->server->config.logs;
    memcpy(look->job_id, job.id, sizeof look->job_id);
    look->attempt = job.attempt;
    look->ended = job_state_terminal(job.state);
    look->path = name != NULL ? xstrdup(name) : NULL;
    look->limit = LIMIT_LIST_DEFAULT_ROWS;
    return query_int(request->query, "attempt", 1, job.attempt > 0 ? job.attempt : 1, &look->attempt, err) &&
           query_int(request->query, "limit", 1, LIMIT_KEPT_FILES, &look->limit, err);
}

static bool look_begin(struct request *request, const char *parameter, struct look **ret_look,
                       struct err *err)
{
    struct look *look = *ret_look = xzalloc(sizeof *look);
    look->file = -1;
    request_work_begin(&look->work, request, look_free);
    return read_look(look, request, parameter, err);
}

bool files_list(struct request *request, struct err *err)
{
    struct look *look;
    return look_begin(request, "cursor", &look, err) &&
           request_work_give(&look->work, request->server->mlflow->disk, work_list, reply_list);
}

bool files_show(struct request *request, struct err *err)
{
    struct look *look;
    if (!look_begin(request, "path", &look, err)) {
        return false;
    }
    if (look->path == NULL) {
        return err_field(err, ERR_FIELD, "path", "RANK/PATH, as GET /v1/jobs/{id}/files lists them",
                         "path is missing");
    }
    return request_work_give(&look->work, request->server->mlflow->disk, work_find, reply_file);
}
