/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the ranks of an attempt kept, as the log store has them: head, index and content of a stream
 * of each rank. Functions that read them wait for the disk, and may be called on any thread. */
#ifndef HTTP_KEPT_H
#define HTTP_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/blob/logs.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/wire/files/kept_files.h"

struct request;

struct kept_attempt {
    const struct logs *logs;
    char job_id[ID_LENGTH + 1];
    int64_t attempt;
};

/* The stream of one rank. */
struct kept_rank {
    int file;
    int64_t rank, stored;
    struct kept_head head;
    char *index;
    struct kept_file *files; /* head.count of them, by path */
};

/* *ret_known false: head and index have not come yet. The caller calls kept_finish in any case. */
bool kept_open(const struct kept_attempt *attempt, int64_t rank, struct kept_rank *ret_kept, bool *ret_known,
               struct err *err);
void kept_finish(struct kept_rank *kept);

/* The rank and the path of a name "RANK/PATH"; *ret_path points into it. false: it names no file. */
bool kept_name_cut(const char *name, int64_t *ret_rank, const char **ret_path);

/* The bytes of a file: a range of its stream. */
struct kept_content {
    int file; /* the caller closes it; -1: none */
    int64_t offset, size;
};
/* Finds the file of a name that kept_name_cut takes. ERR_NOT_FOUND, or ERR_CONFLICT while it has not come as
 * a whole. */
bool kept_find(const struct kept_attempt *attempt, const char *name, struct kept_content *ret_content,
               struct err *err);
/* Replies with the bytes, or the range of them that the request asks for, and takes the file over. */
void kept_reply(struct request *request, struct kept_content *content);

/* Appends what is in a folder to an array, as {"path", "is_dir", "file_size"}: "" has the ranks that kept
 * files, "RANK" or "RANK/PATH" what they kept there. Each path begins with prefix. A folder that is not
 * there, or that is a file, has nothing. */
bool kept_list_folder(const struct kept_attempt *attempt, const char *folder, const char *prefix,
                      struct text *out, struct err *err);
/* Appends one such entry; size -1: it is a folder. */
void kept_write_entry(struct text *out, const char *prefix, const char *name, size_t length, int64_t size);
/* Whether any rank has kept a file. */
bool kept_has_files(const struct kept_attempt *attempt, bool *ret_has, struct err *err);

#endif
