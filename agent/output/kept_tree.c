/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files that a rank keeps in place, and copies nothing. The same folder gives the same stream, so
 * an upload goes on after a restart of the agent. */
#include "agent/output/kept_tree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/output/foreign_folder.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/wire/files/kept_files.h"

struct kept_tree {
    int folder;
    struct foreign_list list;
    struct kept_file *files; /* sorted by path, which are the list's */
    size_t count;
    struct kept_head head;
    struct text start; /* head and index */
    int open;          /* one of the files, -1: none ... */
    size_t open_index; /* ... this one */
};

static void leave_out(struct kept_tree *tree, int64_t bytes)
{
    tree->head.left_files++;
    tree->head.left_bytes += bytes;
}

/* --- the stream ----------------------------------------------------------------------------------------- */

/* Files that are too much are left out, and smaller ones behind them are not. */
static void choose(struct kept_tree *tree, struct text *index, int64_t limit)
{
    size_t kept = 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < tree->list.count; i++) {
        const struct foreign_file *found = &tree->list.files[i];
        const struct kept_file file = {.path = found->path,
                                       .size = found->size,
                                       .modified_ms = found->modified_ns / 1000000,
                                       .executable = found->executable};
        size_t before = index->length;
        kept_entry_append(index, &file);
        if (kept == LIMIT_KEPT_FILES || index->length > LIMIT_KEPT_INDEX_BYTES || file.size > limit - bytes) {
            index->length = before;
            leave_out(tree, file.size);
            continue;
        }
        bytes += file.size;
        tree->files[kept++] = file;
    }
    tree->count = kept;
    tree->head.bytes = bytes;
}

static void compose(struct kept_tree *tree, int64_t limit)
{
    char head[KEPT_HEAD_BYTES];
    autotext struct text index = {0};
    tree->files = xzalloc((tree->list.count + 1) * sizeof *tree->files);
    choose(tree, &index, limit);
    tree->head.count = (int64_t)tree->count;
    tree->head.index_bytes = (int64_t)index.length;
    tree->head.bytes += KEPT_HEAD_BYTES + (int64_t)index.length;
    kept_head_encode(&tree->head, head);
    text_append_bytes(&tree->start, head, sizeof head);
    text_append_bytes(&tree->start, index.bytes, index.length);
    int64_t offset = (int64_t)tree->start.length;
    for (size_t i = 0; i < tree->count; i++) {
        tree->files[i].offset = offset;
        offset += tree->files[i].size;
    }
}

struct kept_tree *kept_tree_open(const char *logs, const char *name, int64_t limit)
{
    autofree char *path = xprintf("%s/%s", logs, name);
    struct kept_tree *tree = xzalloc(sizeof *tree);
    tree->open = -1;
    tree->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    foreign_list_read(tree->folder, &tree->list);
    tree->head.left_files = tree->list.left_files;
    tree->head.left_bytes = tree->list.left_bytes;
    if (tree->list.count == 0 && tree->list.left_files == 0) {
        kept_tree_close(give(tree));
        return NULL;
    }
    compose(tree, limit);
    return tree;
}

void kept_tree_close(struct kept_tree *tree)
{
    if (tree == NULL) {
        return;
    }
    foreign_list_finish(&tree->list);
    cleanup_close(&tree->open);
    cleanup_close(&tree->folder);
    free(tree->files);
    text_finish(&tree->start);
    free(tree);
}

int64_t kept_tree_bytes(const struct kept_tree *tree)
{
    return tree->head.bytes;
}

/* --- reading -------------------------------------------------------------------------------------------- */

static int file_of(struct kept_tree *tree, size_t index)
{
    if (tree->open < 0 || tree->open_index != index) {
        cleanup_close(&tree->open);
        tree->open = foreign_open(tree->folder, tree->files[index].path, NULL);
        tree->open_index = index;
    }
    return tree->open;
}

/* The last file that begins at the offset or before it; empty files take no place. */
static size_t find(const struct kept_tree *tree, int64_t offset)
{
    size_t low = 0, high = tree->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(tree->files[middle].offset <= offset ? &low : &high) = middle;
    }
    return low;
}

static void read_file(struct kept_tree *tree, size_t index, int64_t at, char *buffer, size_t length)
{
    int file = file_of(tree, index);
    size_t done = 0;
    ssize_t got = 1;
    while (file >= 0 && done < length && got > 0) {
        got = pread(file, buffer + done, length - done, (off_t)at + (off_t)done);
        done += got > 0 ? (size_t)got : 0;
    }
    memset(buffer + done, 0, length - done);
}

static size_t smaller(size_t length, int64_t rest)
{
    return (int64_t)length < rest ? length : (size_t)rest;
}

size_t kept_tree_read(struct kept_tree *tree, int64_t offset, char *buffer, size_t length)
{
    size_t done = 0, want = offset < tree->head.bytes ? smaller(length, tree->head.bytes - offset) : 0;
    while (done < want) {
        int64_t at = offset + (int64_t)done;
        int64_t start = (int64_t)tree->start.length;
        size_t piece;
        if (at < start) {
            piece = smaller(want - done, start - at);
            memcpy(buffer + done, tree->start.bytes + at, piece);
        } else {
            size_t index = find(tree, at);
            int64_t inside = at - tree->files[index].offset;
            piece = smaller(want - done, tree->files[index].size - inside);
            read_file(tree, index, inside, buffer + done, piece);
        }
        done += piece;
    }
    return done;
}
