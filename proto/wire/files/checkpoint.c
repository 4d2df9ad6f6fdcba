/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes, decodes and joins manifests. They come from other machines: a decoded one has only paths inside of
 * the folder, in their order, and its numbers agree with each other. */
#include "proto/wire/files/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/wire/files/kept_files.h"

#define SIGN        "gpuctl-checkpoint-1"
#define PIECE_BYTES (HASH_BYTES + 4)
#define NUMBERS     4

static const char *const kind_texts[] = {
#define AS_TEXT(name, text) text,
    CHECKPOINT_KINDS(AS_TEXT)
#undef AS_TEXT
};

const char *checkpoint_kind_text(enum checkpoint_kind kind)
{
    return kind_texts[kind];
}

bool checkpoint_kind_from_text(const char *text, enum checkpoint_kind *ret_kind)
{
    for (int kind = 0; kind < CHECKPOINT_KIND_COUNT; kind++) {
        if (strcmp(text, kind_texts[kind]) == 0) {
            *ret_kind = kind;
            return true;
        }
    }
    return false;
}

static const char *const gap_texts[] = {
#define AS_TEXT(name, text, meaning) text,
    CHECKPOINT_GAPS(AS_TEXT)
#undef AS_TEXT
};

static const char *const gap_meanings[] = {
#define AS_MEANING(name, text, meaning) meaning,
    CHECKPOINT_GAPS(AS_MEANING)
#undef AS_MEANING
};
_Static_assert(LIMIT_KEPT_LOOKS == 16384 && LIMIT_KEPT_LEVELS == 32, "CHECKPOINT_GAPS says so");

const char *checkpoint_gap_text(enum checkpoint_gap gap)
{
    return gap_texts[gap];
}

const char *checkpoint_gap_meaning(enum checkpoint_gap gap)
{
    return gap_meanings[gap];
}

bool checkpoint_gap_from_text(const char *text, enum checkpoint_gap *ret_gap)
{
    for (int gap = 0; gap < CHECKPOINT_GAP_COUNT; gap++) {
        if (strcmp(text, gap_texts[gap]) == 0) {
            *ret_gap = gap;
            return true;
        }
    }
    return false;
}

/* --- making --------------------------------------------------------------------------------------------- */

void manifest_add_file(struct checkpoint_manifest *manifest, const struct checkpoint_file *file)
{
    XGROW(manifest->files, manifest->file_count, manifest->file_room, 16);
    struct checkpoint_file *added = &manifest->files[manifest->file_count++];
    *added = *file;
    added->first = manifest->piece_count;
    added->count = 0;
    added->size = 0;
}

void manifest_add_piece(struct checkpoint_manifest *manifest, const struct checkpoint_piece *piece)
{
    struct checkpoint_file *file = &manifest->files[manifest->file_count - 1];
    XGROW(manifest->pieces, manifest->piece_count, manifest->piece_room, 16);
    manifest->pieces[manifest->piece_count++] = *piece;
    file->count++;
    file->size += piece->size;
    manifest->bytes += piece->size;
}

void manifest_finish(struct checkpoint_manifest *manifest)
{
    free(manifest->files);
    free(manifest->pieces);
    free(manifest->text);
    *manifest = (struct checkpoint_manifest){0};
}

static void copy_file(struct checkpoint_manifest *to, const struct checkpoint_manifest *from, size_t index)
{
    const struct checkpoint_file *file = &from->files[index];
    manifest_add_file(to, file);
    for (size_t i = 0; i < file->count; i++) {
        manifest_add_piece(to, &from->pieces[file->first + i]);
    }
}

void manifest_join(const struct checkpoint_manifest *first, const struct checkpoint_manifest *second,
                   struct checkpoint_manifest *ret_manifest)
{
    size_t a = 0, b = 0;
    *ret_manifest = (struct checkpoint_manifest){.left_files = first->left_files + second->left_files};
    while (a < first->file_count || b < second->file_count) {
        int order = a == first->file_count    ? 1
                    : b == second->file_count ? -1
                                              : strcmp(first->files[a].path, second->files[b].path);
        if (order <= 0) {
            copy_file(ret_manifest, first, a++);
            b += order == 0;
        } else {
            copy_file(ret_manifest, second, b++);
        }
    }
}

/* --- the bytes ------------------------------------------------------------------------------------------ */

static void encode_piece(const struct checkpoint_piece *piece, struct text *out)
{
    const uint8_t size[4] = {(uint8_t)piece->size, (uint8_t)(piece->size >> 8), (uint8_t)(piece->size >> 16),
                             (uint8_t)(piece->size >> 24)};
    text_append_bytes(out, piece->hash, HASH_BYTES);
    text_append_bytes(out, size, sizeof size);
}

void manifest_encode(const struct checkpoint_manifest *manifest, struct text *out)
{
    text_printf(out, SIGN " %zu %zu %lld %lld\n", manifest->file_count, manifest->piece_count,
                (long long)manifest->bytes, (long long)manifest->left_files);
    for (size_t i = 0; i < manifest->file_count; i++) {
        const struct checkpoint_file *file = &manifest->files[i];
        text_printf(out, "%lld %lld %c %zu %s", (long long)file->size, (long long)file->modified_ms,
                    file->executable ? 'x' : '-', file->count, file->path);
        text_append_bytes(out, "", 1);
        for (size_t j = 0; j < file->count; j++) {
            encode_piece(&manifest->pieces[file->first + j], out);
        }
    }
}

/* What is left to read. */
struct rest {
    char *at, *end;
};

static char *read_line(struct rest *rest, char last)
{
    char *line = rest->at, *end = memchr(line, last, (size_t)(rest->end - line));
    if (end == NULL) {
        return NULL;
    }
    *end = '\0';
    rest->at = end + 1;
    return line;
}

static bool read_head(struct rest *rest, int64_t numbers[NUMBERS])
{
    char *line = read_line(rest, '\n');
    const char *word = line != NULL ? strsep(&line, " ") : NULL;
    bool read = word != NULL && strcmp(word, SIGN) == 0;
    for (size_t i = 0; i < NUMBERS && read; i++) {
        word = strsep(&line, " ");
        read = word != NULL && text_to_int(word, 0, INT64_MAX / 4, &numbers[i]);
    }
    return read && line == NULL;
}

static bool read_entry(struct rest *rest, struct checkpoint_file *file, int64_t *ret_size, int64_t *ret_count)
{
    char *line = read_line(rest, '\0');
    if (line == NULL) {
        return false;
    }
    const char *size = strsep(&line, " "), *modified = strsep(&line, " "), *mode = strsep(&line, " "),
               *count = strsep(&line, " ");
    if (line == NULL || !text_to_int(size, 0, INT64_MAX / 4, ret_size) ||
        !text_to_int(modified, 0, INT64_MAX / 4, &file->modified_ms) ||
        !text_to_int(count, 0, LIMIT_CHECKPOINT_MANIFEST_BYTES / PIECE_BYTES, ret_count) ||
        !kept_path_is_good(line)) {
        return false;
    }
    file->executable = strcmp(mode, "x") == 0;
    file->path = line;
    return true;
}

static bool read_piece(struct rest *rest, struct checkpoint_piece *piece)
{
    if (rest->end - rest->at < PIECE_BYTES) {
        return false;
    }
    const uint8_t *size = (const uint8_t *)rest->at + HASH_BYTES;
    memcpy(piece->hash, rest->at, HASH_BYTES);
    piece->size = size[0] | (uint32_t)size[1] << 8 | (uint32_t)size[2] << 16 | (uint32_t)size[3] << 24;
    rest->at += PIECE_BYTES;
    return piece->size > 0 && piece->size <= LIMIT_CHECKPOINT_PIECE_BYTES;
}

static bool read_file(struct rest *rest, struct checkpoint_manifest *manifest)
{
    struct checkpoint_file file = {0};
    struct checkpoint_piece piece;
    int64_t size, count;
    size_t index = manifest->file_count;
    if (!read_entry(rest, &file, &size, &count) ||
        (index > 0 && strcmp(manifest->files[index - 1].path, file.path) >= 0)) {
        return false;
    }
    manifest_add_file(manifest, &file);
    for (int64_t i = 0; i < count; i++) {
        if (!read_piece(rest, &piece)) {
            return false;
        }
        manifest_add_piece(manifest, &piece);
    }
    return manifest->files[index].size == size;
}

bool manifest_decode(const void *bytes, size_t length, struct checkpoint_manifest *ret_manifest,
                     struct err *err)
{
    struct checkpoint_manifest manifest = {.text = xalloc(length + 1)};
    struct rest rest = {manifest.text, manifest.text + length};
    int64_t numbers[NUMBERS] = {0};
    memcpy(manifest.text, bytes, length);
    bool read = read_head(&rest, numbers);
    for (int64_t i = 0; i < numbers[0] && read; i++) {
        read = read_file(&rest, &manifest);
    }
    manifest.left_files = numbers[3];
    if (!read || rest.at != rest.end || (int64_t)manifest.piece_count != numbers[1] ||
        manifest.bytes != numbers[2]) {
        manifest_finish(&manifest);
        return err_set(err, ERR_MALFORMED, "the manifest of the checkpoint cannot be read");
    }
    *ret_manifest = manifest;
    return true;
}
