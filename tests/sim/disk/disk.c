/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a disk in memory, its counts and its faults: loss of power, failures, lack of space. The same
 * seed and the same operations give the same bytes. content.c keeps the bytes of a file; disk_vfs.c has the
 * functions that SQLite calls. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "tests/sim/disk/disk_state.h"

static uint64_t scrambled(uint64_t seed)
{
    seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9U;
    seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebU;
    return (seed ^ (seed >> 31)) | 1; /* not 0 */
}

void disk_seed(struct disk *disk, uint64_t seed)
{
    disk->chance.state = scrambled(seed + 0x9e3779b97f4a7c15U);
    disk->sqlite_chance.state = scrambled(seed + 0x3c6ef372fe94f82aU);
    sqlite3_randomness(
        0, NULL); /* makes the generator of all connections ask the default VFS for a seed again */
}

struct disk *disk_create(const char *vfs_name, bool as_default, uint64_t seed)
{
    struct disk *disk = xzalloc(sizeof *disk);
    disk->vfs_name = xstrdup(vfs_name);
    disk->crash_left = disk->fail_left = disk->read_fail_left = -1;
    disk_vfs_init(&disk->vfs);
    disk->vfs.zName = disk->vfs_name;
    disk->vfs.pAppData = disk;
    int code = sqlite3_vfs_register(&disk->vfs, as_default);
    assert(code == SQLITE_OK);
    disk_seed(disk, seed);
    return disk;
}

void disk_use(struct disk *disk)
{
    int code = sqlite3_vfs_register(&disk->vfs, 1);
    assert(code == SQLITE_OK);
}

void disk_destroy(struct disk *disk)
{
    if (disk == NULL) {
        return;
    }
    assert(disk->handles == NULL);
    sqlite3_vfs_unregister(&disk->vfs);
    while (disk->files != NULL) {
        disk_forget(disk, disk->files);
    }
    free(disk->vfs_name);
    free(disk);
}

/* --- files ---------------------------------------------------------------------------------------------- */

struct disk_file *disk_find(const struct disk *disk, const char *name)
{
    for (struct disk_file *file = disk->files; file != NULL; file = file->next) {
        if (file->exists && file->name != NULL && strcmp(file->name, name) == 0) {
            return file;
        }
    }
    return NULL;
}

/* Finds a file that was deleted, but not durably yet. A new file of its name takes its place, so that one of
 * the two comes back after a loss of power. */
static struct disk_file *find_deleted(const struct disk *disk, const char *name)
{
    for (struct disk_file *file = disk->files; file != NULL; file = file->next) {
        if (!file->exists && file->kept && file->handles == 0 && file->name != NULL &&
            strcmp(file->name, name) == 0) {
            return file;
        }
    }
    return NULL;
}

struct disk_file *disk_make(struct disk *disk, const char *name)
{
    struct disk_file *file = name != NULL ? find_deleted(disk, name) : NULL;
    if (file != NULL) {
        content_truncate(&file->content, 0);
    } else {
        file = xzalloc(sizeof *file);
        file->name = name != NULL ? xstrdup(name) : NULL;
        file->next = disk->files;
        disk->files = file;
    }
    file->exists = true;
    return file;
}

void disk_forget(struct disk *disk, struct disk_file *file)
{
    assert(file->handles == 0 && file->shared == NULL);
    struct disk_file **at = &disk->files;
    while (*at != file) {
        at = &(*at)->next;
    }
    *at = file->next;
    content_finish(&file->content);
    free(file->name);
    free(file);
}

/* Forgets files that do not exist and cannot come back. */
static void forget_gone(struct disk *disk)
{
    for (struct disk_file *file = disk->files, *next; file != NULL; file = next) {
        next = file->next;
        if (!file->exists && !file->kept && file->handles == 0) {
            disk_forget(disk, file);
        }
    }
}

void disk_keep_names(struct disk *disk)
{
    for (struct disk_file *file = disk->files; file != NULL; file = file->next) {
        file->kept = file->exists && file->name != NULL;
    }
    forget_gone(disk);
}

uint8_t *disk_copy(const struct disk *disk, const char *path, size_t *ret_size)
{
    const struct disk_file *file = disk_find(disk, path);
    if (file == NULL) {
        return NULL;
    }
    *ret_size = file->content.now_size;
    uint8_t *bytes = xalloc(*ret_size + 1);
    content_read(&file->content, bytes, *ret_size, 0);
    return bytes;
}

void disk_put(struct disk *disk, const char *path, const uint8_t *bytes, size_t size)
{
    struct disk_file *file = disk_find(disk, path);
    if (file == NULL) {
        file = disk_make(disk, path);
    }
    content_truncate(&file->content, 0);
    content_write(&file->content, &disk->chance, bytes, size, 0);
    content_sync(&file->content);
    file->kept = true;
}

/* --- counting and failing ------------------------------------------------------------------------------- */

int64_t disk_operations(const struct disk *disk)
{
    return disk->operations;
}

void disk_watch(struct disk *disk, void (*before)(enum disk_operation operation, void *closure),
                void *closure)
{
    disk->before = before;
    disk->before_closure = closure;
}

void disk_crash_after(struct disk *disk, int64_t operations)
{
    disk->crash_left = operations;
    disk->crashed = disk->crashed || operations == 0;
}

bool disk_crashed(const struct disk *disk)
{
    return disk->crashed;
}

void disk_fail_after(struct disk *disk, int64_t operations, int code, bool lasting)
{
    disk->fail_left = operations;
    disk->fail_code = code;
    disk->fail_lasts = lasting;
}

void disk_fail_read_after(struct disk *disk, int64_t reads, int code)
{
    disk->read_fail_left = reads;
    disk->read_fail_code = code;
}

void disk_heal(struct disk *disk)
{
    disk->fail_left = disk->read_fail_left = -1;
}

int64_t disk_failures(const struct disk *disk)
{
    return disk->failures;
}

void disk_limit(struct disk *disk, int64_t bytes)
{
    disk->limit = bytes;
}

int64_t disk_used(const struct disk *disk)
{
    size_t used = 0;
    for (const struct disk_file *file = disk->files; file != NULL; file = file->next) {
        used += file->exists || file->handles > 0 ? file->content.now_size : 0;
    }
    return (int64_t)used;
}

bool disk_has_room(const struct disk *disk, const struct disk_file *file, int64_t end)
{
    int64_t size = (int64_t)file->content.now_size;
    return disk->limit == 0 || end <= size || disk_used(disk) + end - size <= disk->limit;
}

void disk_lie(struct disk *disk, bool lies)
{
    disk->lies = lies;
}

void disk_sync_early(struct disk *disk, size_t sectors)
{
    disk->early_sectors = sectors;
}

/* The error codes of the system's own VFS. */
static int failure(enum disk_operation operation, int code)
{
    switch (operation) {
    case DISK_WRITE:
        return code == SQLITE_IOERR ? SQLITE_IOERR_WRITE : code;
    case DISK_SYNC:
        return SQLITE_IOERR_FSYNC;
    case DISK_TRUNCATE:
        return SQLITE_IOERR_TRUNCATE;
    case DISK_DELETE:
        return SQLITE_IOERR_DELETE;
    case DISK_READ:
        return code == SQLITE_IOERR ? SQLITE_IOERR_READ : code;
    }
    abort();
}

static int begin_read(struct disk *disk)
{
    if (disk->crashed) {
        return SQLITE_IOERR_READ;
    }
    if (disk->read_fail_left < 0 || disk->read_fail_left-- > 0) {
        return SQLITE_OK;
    }
    disk->failures++;
    return failure(DISK_READ, disk->read_fail_code);
}

int disk_begin(struct disk *disk, enum disk_operation operation)
{
    if (operation == DISK_READ) {
        return begin_read(disk);
    }
    if (disk->crashed) {
        return failure(operation, SQLITE_IOERR);
    }
    if (disk->before != NULL) {
        disk->before(operation, disk->before_closure);
    }
    disk->operations++;
    if (disk->crash_left > 0 && --disk->crash_left == 0) {
        disk->crashed = true;
        return failure(operation, SQLITE_IOERR);
    }
    if (disk->fail_left < 0 || disk->fail_left-- > 0) {
        return SQLITE_OK;
    }
    disk->failures++;
    disk->fail_left = disk->fail_lasts ? 0 : -1;
    return failure(operation, disk->fail_code);
}

/* --- the end of the process ----------------------------------------------------------------------------- */

static void void_handles(struct disk *disk)
{
    while (disk->handles != NULL) {
        struct disk_handle *handle = disk->handles;
        shared_detach(handle);
        handle->file->handles--;
        disk->handles = handle->next;
        handle->disk = NULL;
        handle->file = NULL;
    }
}

/* Whether the file exists after a loss of power; by chance if its name is not durable. */
static bool survives(const struct disk_file *file, struct chance *chance)
{
    return file->name != NULL && (file->exists == file->kept ? file->exists : chance_of(chance, 50));
}

static void lose_power(struct disk *disk)
{
    for (struct disk_file *file = disk->files; file != NULL; file = file->next) {
        file->exists = file->kept = survives(file, &disk->chance);
        content_lose_power(&file->content, &disk->chance);
    }
}

static void drop_temporaries(struct disk *disk)
{
    for (struct disk_file *file = disk->files; file != NULL; file = file->next) {
        file->exists = file->exists && file->name != NULL;
    }
    forget_gone(disk);
}

void disk_restart(struct disk *disk, bool power)
{
    void_handles(disk);
    if (power) {
        lose_power(disk);
    }
    drop_temporaries(disk);
    disk->crashed = false;
    disk->crash_left = -1;
}

/* --- images --------------------------------------------------------------------------------------------- */

static struct disk_file *find_any(const struct disk *disk, const char *name)
{
    struct disk_file *file = disk_find(disk, name);
    return file != NULL ? file : find_deleted(disk, name);
}

static void image_file(const struct disk *disk, const char *path, const char *suffix, struct disk *to,
                       const char *to_path)
{
    char *name = xprintf("%s%s", path, suffix), *to_name = xprintf("%s%s", to_path, suffix);
    const struct disk_file *file = find_any(disk, name);
    struct disk_file *target = find_any(to, to_name);
    bool there = file != NULL && survives(file, &to->chance);
    if (there) {
        target = target != NULL ? target : disk_make(to, to_name);
        target->exists = target->kept = true;
        content_assign(&target->content, &file->content);
        content_lose_power(&target->content, &to->chance);
    } else if (target != NULL) {
        disk_forget(to, target);
    }
    free(name);
    free(to_name);
}

void disk_image(const struct disk *disk, const char *path, struct disk *to, const char *to_path)
{
    static const char *const suffixes[] = {"", "-wal", "-journal"};
    assert(to->handles == NULL);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        image_file(disk, path, suffixes[i], to, to_path);
    }
}
