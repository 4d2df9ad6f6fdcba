/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a file, or a folder, out of a volume of the node. Links are not followed and not copied, and neither
 * are special files. The version is a hash of names, sizes and times. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/fetcher/fetcher_parts.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/files/files.h"
#include "proto/limits_agent.h"

struct found {
    char *path; /* owned: below the input */
    int64_t size;
};

/* A walk over the files of an input. */
struct walk {
    struct fetcher *fetcher;
    int top;
    struct found *files;
    size_t count, room;
    int64_t size;
    struct hash *hash;
};

static void finish(struct walk *walk)
{
    uint8_t unused[HASH_BYTES];
    for (size_t i = 0; i < walk->count; i++) {
        free(walk->files[i].path);
    }
    free(walk->files);
    if (walk->hash != NULL) {
        hash_finish(walk->hash, unused);
    }
    cleanup_close(&walk->top);
}

static bool add(struct walk *walk, const char *path, const struct stat *status)
{
    autofree char *line = xprintf("%s\t%lld\t%lld.%09ld\n", path, (long long)status->st_size,
                                  (long long)status->st_mtim.tv_sec, status->st_mtim.tv_nsec);
    if (walk->count == LIMIT_INPUT_FILES) {
        return fetcher_fail(walk->fetcher, FAULT_JOB, "%s has more than %d files", walk->fetcher->url,
                            LIMIT_INPUT_FILES);
    }
    XGROW(walk->files, walk->count, walk->room, 64);
    walk->files[walk->count++] = (struct found){xstrdup(path), status->st_size};
    walk->size += status->st_size;
    hash_update(walk->hash, line, strlen(line));
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Ends with one name above the limit. The caller has file_names_finish free the names. */
static bool list(int folder, struct file_names *ret_names)
{
    int readable = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = readable >= 0 ? fdopendir(readable) : NULL;
    size_t room = 0;
    if (entries == NULL) {
        cleanup_close(&readable);
        return false;
    }
    for (struct dirent *entry; (entry = readdir(entries)) != NULL && ret_names->count <= LIMIT_INPUT_FILES;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            XGROW(ret_names->items, ret_names->count, room, 64);
            ret_names->items[ret_names->count++] = xstrdup(entry->d_name);
        }
    }
    closedir(entries);
    if (ret_names->count > 0) {
        qsort(ret_names->items, ret_names->count, sizeof *ret_names->items, by_text);
    }
    return true;
}

static bool walk_folder(struct walk *walk, int folder, const char *above, int depth)
{
    autonames struct file_names names = {0};
    bool good =
        (depth < LIMIT_INPUT_DEPTH ||
         fetcher_fail(walk->fetcher, FAULT_JOB, "%s: %s: folders lie too deep", walk->fetcher->url, above)) &&
        (list(folder, &names) || fetcher_fail_errno(walk->fetcher, above)) &&
        (names.count <= LIMIT_INPUT_FILES ||
         fetcher_fail(walk->fetcher, FAULT_JOB,
                      "%s: %s: more than %d files, folders and links are in one folder", walk->fetcher->url,
                      above, LIMIT_INPUT_FILES));
    for (size_t i = 0; i < names.count && good; i++) {
        struct stat status;
        autofree char *path = xprintf("%s%s%s", above, *above != '\0' ? "/" : "", names.items[i]);
        if (fstatat(folder, names.items[i], &status, AT_SYMLINK_NOFOLLOW) != 0) {
            good = errno == ENOENT || fetcher_fail_errno(walk->fetcher, path);
        } else if (S_ISREG(status.st_mode)) {
            good = add(walk, path, &status);
        } else if (S_ISDIR(status.st_mode)) {
            autoclose int below =
                openat(folder, names.items[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            good = below >= 0 ? walk_folder(walk, below, path, depth + 1)
                              : fetcher_fail_errno(walk->fetcher, path);
        }
    }
    return good;
}

/* A part of the volume, by a path that does not lead out of it. */
static int open_inside(int volume, const char *path)
{
    const struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, volume, *path != '\0' ? path : ".", &how, sizeof how);
}

/* What its files' owners do not let everybody read is no input. */
static bool fail_open(const struct fetcher *fetcher)
{
    return fetcher_fail(fetcher, errno == EIO || errno == ESTALE ? FAULT_TIMES : FAULT_JOB, "%s: %s%s",
                        fetcher->url, strerror(errno),
                        errno == EACCES ? ": inputs are read without rights; ask for the volume itself" : "");
}

static bool copy(struct fetcher *fetcher, int from, const char *path)
{
    char bytes[256 * 1024];
    ssize_t got;
    autoclose int piece = fetcher_piece_open(fetcher, false);
    if (piece < 0) {
        return false;
    }
    while ((got = read(from, bytes, sizeof bytes)) > 0) {
        if (!file_write_all(piece, bytes, (size_t)got)) {
            return fetcher_fail_errno(fetcher, "cannot write");
        }
        if (!fetcher_count(fetcher, got)) {
            return false;
        }
    }
    return got == 0 ? fetcher_piece_keep(fetcher, piece, path) : fetcher_fail_errno(fetcher, path);
}

static bool copy_all(struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++) {
        const struct found *file = &walk->files[i];
        if (fetcher_has(walk->fetcher, file->path, file->size)) {
            walk->fetcher->done_bytes += file->size;
            continue;
        }
        autoclose int from = open_inside(walk->top, file->path);
        if (from < 0) {
            return fail_open(walk->fetcher);
        }
        if (!copy(walk->fetcher, from, file->path)) {
            return false;
        }
    }
    return true;
}

/* finish has to follow. */
static bool look(struct walk *walk, const struct stat *status, char ret_version[HASH_HEX + 1])
{
    uint8_t sum[HASH_BYTES];
    bool good =
        S_ISDIR(status->st_mode) ? walk_folder(walk, walk->top, "", 0)
        : S_ISREG(status->st_mode)
            ? add(walk, walk->fetcher->entry, status)
            : fetcher_fail(walk->fetcher, FAULT_JOB, "%s is neither a file nor a folder", walk->fetcher->url);
    hash_finish(give(walk->hash), sum);
    text_to_hex(sum, sizeof sum, ret_version);
    return good;
}

static bool begin(struct walk *walk, struct fetcher *fetcher, struct stat *ret_status)
{
    size_t name = strcspn(fetcher->place, "/");
    const char *path = fetcher->place + name + (fetcher->place[name] == '/');
    autoclose int volume = open(fetcher->volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *walk = (struct walk){
        .fetcher = fetcher, .top = volume >= 0 ? open_inside(volume, path) : -1, .hash = hash_create()};
    return (walk->top >= 0 && fstat(walk->top, ret_status) == 0) || fail_open(fetcher);
}

static bool is_as_wanted(const struct fetcher *fetcher, const char *version)
{
    return strcmp(version, fetcher->version) == 0 ||
           fetcher_fail(fetcher, FAULT_TIMES, "%s has changed while it was copied", fetcher->url);
}

/* A file that was written meanwhile has another time now. */
static bool is_as_before(struct fetcher *fetcher)
{
    struct walk walk;
    struct stat status;
    char version[HASH_HEX + 1];
    bool good =
        begin(&walk, fetcher, &status) && look(&walk, &status, version) && is_as_wanted(fetcher, version);
    finish(&walk);
    return good;
}

bool fetcher_volume(struct fetcher *fetcher)
{
    struct walk walk;
    struct stat status;
    char version[HASH_HEX + 1];
    if (fetcher->volume == NULL) {
        return fetcher_fail(fetcher, FAULT_TIMES, "%s: the volume is not there", fetcher->url);
    }
    bool good = begin(&walk, fetcher, &status) && look(&walk, &status, version);
    bool tree = good && S_ISDIR(status.st_mode);
    if (good && !fetcher->fetches) {
        good = fetcher_check_size(fetcher, walk.size) && fetcher_found(version, walk.size, tree);
    } else if (good) {
        good = is_as_wanted(fetcher, version) &&
               (tree ? copy_all(&walk) : copy(fetcher, walk.top, fetcher->entry)) && is_as_before(fetcher);
    }
    finish(&walk);
    return good;
}
