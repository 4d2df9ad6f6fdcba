/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files that ranks kept from their streams. What a node has sent is not trusted:
 * proto/wire/files/kept_files.h decodes it. Folders are not stored; they follow from the paths of files. */
#include "daemon/http/kept/kept.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/http/kept/range.h"
#include "daemon/http/request/request.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/members.h"

/* --- one rank's stream ---------------------------------------------------------------------------------- */

void kept_finish(struct kept_rank *kept)
{
    cleanup_close(&kept->file);
    free(kept->index);
    free(kept->files);
}

static bool read_at(int file, int64_t offset, char *buffer, size_t length)
{
    return pread(file, buffer, length, (off_t)offset) == (ssize_t)length;
}

bool kept_open(const struct kept_attempt *attempt, int64_t rank, struct kept_rank *ret_kept, bool *ret_known,
               struct err *err)
{
    char head[KEPT_HEAD_BYTES];
    const struct log_name name = {attempt->job_id, attempt->attempt, rank, STREAM_FILES};
    *ret_kept = (struct kept_rank){.rank = rank};
    ret_kept->file = logs_open_stream(attempt->logs, &name, &ret_kept->stored, err);
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

/* --- one file ------------------------------------------------------------------------------------------- */

bool kept_name_cut(const char *name, int64_t *ret_rank, const char **ret_path)
{
    const char *slash = strchr(name, '/');
    autofree char *number = slash != NULL ? xstrndup(name, (size_t)(slash - name)) : NULL;
    *ret_path = slash != NULL ? slash + 1 : NULL;
    return slash != NULL && text_to_int(number, 0, LIMIT_GPUS, ret_rank) && kept_path_is_good(*ret_path);
}

static int by_path(const void *left, const void *right)
{
    return strcmp(left, ((const struct kept_file *)right)->path);
}

static bool take_file(const struct kept_attempt *attempt, struct kept_rank *kept, const char *name,
                      const char *path, struct kept_content *ret_content, struct err *err)
{
    const struct kept_file *file =
        kept->files != NULL ? bsearch(path, kept->files, (size_t)kept->head.count, sizeof *file, by_path)
                            : NULL;
    if (file == NULL) {
        err_set(err, ERR_NOT_FOUND, "attempt %lld of job %s has kept no file %s", (long long)attempt->attempt,
                attempt->job_id, name);
        return err_hint(err, "gpuctl ls %s lists them", attempt->job_id);
    }
    int64_t there = kept->stored - file->offset;
    if (there < file->size) {
        err_set(err, ERR_CONFLICT, "%lld of the %lld bytes of %s have come from the node",
                (long long)(there > 0 ? there : 0), (long long)file->size, name);
        return err_hint(err, "ask again: the rest is on its way");
    }
    *ret_content = (struct kept_content){give_fd(&kept->file), file->offset, file->size};
    return true;
}

bool kept_find(const struct kept_attempt *attempt, const char *name, struct kept_content *ret_content,
               struct err *err)
{
    struct kept_rank kept;
    int64_t rank = 0;
    const char *path = NULL;
    bool known;
    kept_name_cut(name, &rank, &path);
    bool found = kept_open(attempt, rank, &kept, &known, err) &&
                 take_file(attempt, &kept, name, path, ret_content, err);
    kept_finish(&kept);
    return found;
}

void kept_reply(struct request *request, struct kept_content *content)
{
    static const char type[] = "application/octet-stream";
    int file = give_fd(&content->file);
    if (!range_reply(request, type, file, content->offset, content->size)) {
        request_reply_file(request, 200, type, file, (uint64_t)content->offset, (uint64_t)content->size);
        request_header(request, "Accept-Ranges", "bytes");
    }
    request_header(request, "Content-Disposition", "attachment");
}

/* --- folders -------------------------------------------------------------------------------------------- */

void kept_write_entry(struct text *out, const char *prefix, const char *name, size_t length, int64_t size)
{
    autofree char *path = xprintf("%s%.*s", prefix, (int)length, name);
    member_separate(out);
    member_write_text(out, "{\"path\":", path);
    member_write_bool(out, ",\"is_dir\":", size < 0);
    if (size >= 0) {
        member_write_int(out, ",\"file_size\":", size);
    }
    text_append(out, "}");
}

/* Files are sorted by path, so those of one folder follow each other. */
static void write_folder(const struct kept_rank *kept, const char *folder, const char *prefix,
                         struct text *out)
{
    const char *last = NULL;
    size_t begin = strlen(folder), last_length = 0;
    for (int64_t i = 0; i < kept->head.count; i++) {
        if (strncmp(kept->files[i].path, folder, begin) != 0) {
            continue;
        }
        const char *name = kept->files[i].path + begin;
        size_t length = strcspn(name, "/");
        bool is_folder = name[length] == '/';
        if (!is_folder) {
            kept_write_entry(out, prefix, name, length, kept->files[i].size);
        } else if (last == NULL || last_length != length || strncmp(last, name, length) != 0) {
            kept_write_entry(out, prefix, name, length, -1);
            last = name;
            last_length = length;
        }
    }
}

static bool list_rank(const struct kept_attempt *attempt, const char *folder, const char *prefix,
                      struct text *out, struct err *err)
{
    struct kept_rank kept;
    bool known;
    int64_t rank;
    size_t digits = strcspn(folder, "/");
    autofree char *number = xstrndup(folder, digits);
    const char *path = folder[digits] == '/' ? folder + digits + 1 : "";
    autofree char *begin = *path != '\0' ? xprintf("%s/", path) : xstrdup("");
    if (!text_to_int(number, 0, LIMIT_GPUS, &rank)) {
        return true;
    }
    bool ok = kept_open(attempt, rank, &kept, &known, err);
    if (ok && known) {
        write_folder(&kept, begin, prefix, out);
    }
    kept_finish(&kept);
    return ok;
}

/* Calls for each rank that kept files, by number, until the visitor returns false. */
static bool visit_ranks(const struct kept_attempt *attempt, bool (*visit)(void *closure, int64_t rank),
                        void *closure, struct err *err)
{
    autofree int64_t *ranks = NULL;
    size_t count = 0;
    bool ok = logs_kept_ranks(attempt->logs, attempt->job_id, attempt->attempt, &ranks, &count, err);
    bool more = true;
    for (size_t i = 0; i < count && ok && more; i++) {
        struct kept_rank kept;
        bool known;
        ok = kept_open(attempt, ranks[i], &kept, &known, err);
        more = !ok || !known || kept.head.count == 0 || visit(closure, ranks[i]);
        kept_finish(&kept);
    }
    return ok;
}

struct rank_list {
    const char *prefix;
    struct text *out;
};

static bool write_rank(void *closure, int64_t rank)
{
    const struct rank_list *list = closure;
    autofree char *name = xprintf("%lld", (long long)rank);
    kept_write_entry(list->out, list->prefix, name, strlen(name), -1);
    return true;
}

bool kept_list_folder(const struct kept_attempt *attempt, const char *folder, const char *prefix,
                      struct text *out, struct err *err)
{
    struct rank_list ranks = {prefix, out};
    return *folder != '\0' ? list_rank(attempt, folder, prefix, out, err)
                           : visit_ranks(attempt, write_rank, &ranks, err);
}

static bool note(void *closure, int64_t rank)
{
    *(bool *)closure = true;
    return false;
}

bool kept_has_files(const struct kept_attempt *attempt, bool *ret_has, struct err *err)
{
    *ret_has = false;
    return visit_ranks(attempt, note, ret_has, err);
}
