/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes heads and indexes of kept files. What is decoded comes from nodes: nothing is taken
 * that a path outside of the rank's folder, or a file outside of the stream, could hide in. */
#include "proto/wire/files/kept_files.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/spec/jobspec_parts.h"

#define SIGN    "gpuctl-files-1"
#define NUMBERS 5

static bool is_clean(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == '\x7f' || *text == '\\') {
            return false;
        }
    }
    return true;
}

bool kept_path_is_good(const char *path)
{
    autojson json_t *utf8 = strlen(path) <= LIMIT_PATH_BYTES ? json_string(path) : NULL;
    return utf8 != NULL && is_clean(path) && jobspec_is_inner_path(path);
}

/* --- the head ------------------------------------------------------------------------------------------- */

void kept_head_encode(const struct kept_head *head, char out[KEPT_HEAD_BYTES])
{
    char line[KEPT_HEAD_BYTES];
    snprintf(line, sizeof line, SIGN " %lld %lld %lld %lld %lld", (long long)head->index_bytes,
             (long long)head->count, (long long)head->bytes, (long long)head->left_files,
             (long long)head->left_bytes);
    snprintf(out, KEPT_HEAD_BYTES, "%-*s", KEPT_HEAD_BYTES - 1, line);
    out[KEPT_HEAD_BYTES - 1] = '\n';
}

static bool numbers_read(char *rest, int64_t numbers[NUMBERS])
{
    const char *word = strsep(&rest, " ");
    bool read = strcmp(word, SIGN) == 0;
    for (size_t i = 0; i < NUMBERS && read; i++) {
        word = strsep(&rest, " ");
        read = word != NULL && text_to_int(word, 0, INT64_MAX / 4, &numbers[i]);
    }
    return read;
}

bool kept_head_decode(const char *bytes, struct kept_head *ret_head, struct err *err)
{
    char line[KEPT_HEAD_BYTES + 1];
    int64_t numbers[NUMBERS] = {0};
    memcpy(line, bytes, KEPT_HEAD_BYTES);
    line[KEPT_HEAD_BYTES] = '\0';
    line[strcspn(line, "\n")] = '\0';
    bool read = numbers_read(line, numbers);
    *ret_head = (struct kept_head){numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
    return (read && ret_head->index_bytes <= LIMIT_KEPT_INDEX_BYTES && ret_head->count <= LIMIT_KEPT_FILES &&
            ret_head->bytes >= KEPT_HEAD_BYTES + ret_head->index_bytes) ||
           err_set(err, ERR_IO, "the head of the stored files cannot be read");
}

/* --- the index ------------------------------------------------------------------------------------------ */

void kept_entry_append(struct text *index, const struct kept_file *file)
{
    text_printf(index, "%lld %lld %c ", (long long)file->size, (long long)file->modified_ms,
                file->executable ? 'x' : '-');
    text_append_bytes(index, file->path, strlen(file->path) + 1);
}

static bool entry_decode(char *entry, struct kept_file *ret_file)
{
    char *rest = entry;
    const char *size = strsep(&rest, " "), *modified = strsep(&rest, " "), *mode = strsep(&rest, " ");
    if (rest == NULL || !text_to_int(size, 0, INT64_MAX / 4, &ret_file->size) ||
        !text_to_int(modified, 0, INT64_MAX / 4, &ret_file->modified_ms) || !kept_path_is_good(rest)) {
        return false;
    }
    ret_file->path = rest;
    ret_file->executable = strcmp(mode, "x") == 0;
    return true;
}

static bool files_decode(char *index, const struct kept_head *head, struct kept_file *files)
{
    size_t at = 0, length = (size_t)head->index_bytes;
    int64_t offset = KEPT_HEAD_BYTES + head->index_bytes;
    for (int64_t i = 0; i < head->count; i++) {
        const char *end = memchr(index + at, '\0', length - at);
        if (end == NULL || !entry_decode(index + at, &files[i]) || files[i].size > head->bytes - offset ||
            (i > 0 && strcmp(files[i - 1].path, files[i].path) >= 0)) {
            return false;
        }
        files[i].offset = offset;
        offset += files[i].size;
        at = (size_t)(end - index) + 1;
    }
    return at == length && offset == head->bytes;
}

bool kept_index_decode(char *index, const struct kept_head *head, struct kept_file **ret_files,
                       struct err *err)
{
    autofree struct kept_file *files = xzalloc(((size_t)head->count + 1) * sizeof *files);
    if (!files_decode(index, head, files)) {
        return err_set(err, ERR_IO, "the index of the stored files cannot be read");
    }
    *ret_files = give(files);
    return true;
}
