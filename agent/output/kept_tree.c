/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files that a rank keeps in place, and copies nothing. The same folder gives the same stream, so
 * an upload goes on after a restart of the agent. A rank may have put anything there: no link is followed,
 * and only plain files with a single name are read, because another name may be that of a file which the rank
 * itself could not read. */
#include "agent/output/kept_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/wire/kept_files.h"

struct kept_tree {
    int folder;
    struct kept_file *files; /* sorted by path */
    size_t count, room;
    size_t looks; /* entries seen */
    struct kept_head head;
    struct text start; /* head and index */
    int open;          /* one of the files, -1: none ... */
    size_t open_index; /* ... this one */
};

/* --- looking -------------------------------------------------------------------------------------------- */

static void leave_out(struct kept_tree *tree, int64_t bytes)
{
    tree->head.left_files++;
    tree->head.left_bytes += bytes;
}

/* Takes path over. */
static void add(struct kept_tree *tree, char *path, const struct stat *status)
{
    if (!S_ISREG(status->st_mode) || status->st_nlink != 1 || !kept_path_is_good(path)) {
        leave_out(tree, S_ISREG(status->st_mode) ? (int64_t)status->st_size : 0);
        free(path);
        return;
    }
    int64_t modified_ms = (int64_t)status->st_mtim.tv_sec * 1000 + status->st_mtim.tv_nsec / 1000000;
    XGROW(tree->files, tree->count, tree->room, 16);
    tree->files[tree->count++] = (struct kept_file){.path = path,
                                                    .size = (int64_t)status->st_size,
                                                    .modified_ms = modified_ms > 0 ? modified_ms : 0,
                                                    .executable = (status->st_mode & S_IXUSR) != 0};
}

static void look(struct kept_tree *tree, int folder, const char *prefix, int level);

static void look_at(struct kept_tree *tree, int folder, const char *prefix, const char *name, int level)
{
    struct stat status;
    autofree char *path = xprintf("%s%s", prefix, name);
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return;
    }
    if (!S_ISDIR(status.st_mode)) {
        add(tree, give(path), &status);
        return;
    }
    autofree char *inner = xprintf("%s/", path);
    int below = level < LIMIT_KEPT_LEVELS
                    ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                    : -1;
    if (below < 0) {
        leave_out(tree, 0);
    } else {
        look(tree, below, inner, level + 1);
    }
}

/* Takes the folder over. */
static void look(struct kept_tree *tree, int folder, const char *prefix, int level)
{
    DIR *listing = fdopendir(folder);
    const struct dirent *entry;
    if (listing == NULL) {
        close(folder);
        return;
    }
    while ((entry = readdir(listing)) != NULL && tree->looks < LIMIT_KEPT_LOOKS) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            tree->looks++;
            look_at(tree, dirfd(listing), prefix, entry->d_name, level);
        }
    }
    if (entry != NULL) {
        leave_out(tree, 0); /* nobody knows how many more */
    }
    closedir(listing);
}

/* --- the stream ----------------------------------------------------------------------------------------- */

static int by_path(const void *left, const void *right)
{
    return strcmp(((const struct kept_file *)left)->path, ((const struct kept_file *)right)->path);
}

/* Files that are too much are left out, and smaller ones behind them are not. */
static void choose(struct kept_tree *tree, struct text *index, int64_t limit)
{
    size_t kept = 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < tree->count; i++) {
        struct kept_file file = tree->files[i];
        size_t before = index->length;
        kept_entry_append(index, &file);
        if (kept == LIMIT_KEPT_FILES || index->length > LIMIT_KEPT_INDEX_BYTES || file.size > limit - bytes) {
            index->length = before;
            leave_out(tree, file.size);
            free((char *)(uintptr_t)file.path);
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
    if (tree->count > 0) {
        qsort(tree->files, tree->count, sizeof *tree->files, by_path);
    }
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
    int listed = tree->folder >= 0 ? fcntl(tree->folder, F_DUPFD_CLOEXEC, 0) : -1;
    if (listed >= 0) {
        look(tree, listed, "", 0);
    }
    if (tree->count == 0 && tree->head.left_files == 0) {
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
    for (size_t i = 0; i < tree->count; i++) {
        free((char *)(uintptr_t)tree->files[i].path);
    }
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

/* Somebody may have put a link on the way since. */
static int open_inner(int folder, const char *path)
{
    const struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    struct stat status;
    autoclose int file = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    bool plain = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1;
    return plain ? give_fd(&file) : -1;
}

static int file_of(struct kept_tree *tree, size_t index)
{
    if (tree->open < 0 || tree->open_index != index) {
        cleanup_close(&tree->open);
        tree->open = open_inner(tree->folder, tree->files[index].path);
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
