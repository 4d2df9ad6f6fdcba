/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that SQLite calls: a VFS and its files, on a disk in memory. It gives the guarantees of
 * SQLite's own VFS on a file system that honours syncs. A void handle touches nothing. disk.c counts and
 * fails operations; disk_shared.c has the shared memory. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "tests/sim/disk/disk_state.h"

/* The values of SQLite's VFS for Unix, which determine the padding of the log. */
enum { SECTOR_SIZE = 4096, PATH_BYTES = 512 };

/* --- files ---------------------------------------------------------------------------------------------- */

static bool is_void(const struct disk_handle *handle)
{
    return handle->disk == NULL;
}

static int file_close(sqlite3_file *base)
{
    struct disk_handle *handle = (struct disk_handle *)base;
    shared_unmap(base, 0);
    if (is_void(handle)) {
        return SQLITE_OK;
    }
    struct disk_handle **at = &handle->disk->handles;
    while (*at != handle) {
        at = &(*at)->next;
    }
    *at = handle->next;
    struct disk_file *file = handle->file;
    file->handles--;
    if (file->name == NULL) {
        disk_forget(handle->disk, file);
    }
    return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *bytes, int size, sqlite3_int64 offset)
{
    struct disk_handle *handle = (struct disk_handle *)base;
    int code = is_void(handle) ? SQLITE_IOERR_READ : disk_begin(handle->disk, DISK_READ);
    if (code != SQLITE_OK) {
        return code;
    }
    size_t count = content_read(&handle->file->content, bytes, (size_t)size, (size_t)offset);
    memset((char *)bytes + count, 0, (size_t)size - count);
    return count == (size_t)size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *base, const void *bytes, int size, sqlite3_int64 offset)
{
    struct disk_handle *handle = (struct disk_handle *)base;
    if (is_void(handle)) {
        return SQLITE_IOERR_WRITE;
    }
    struct disk *disk = handle->disk;
    bool worked = !disk->crashed;
    int code = disk_begin(disk, DISK_WRITE);
    if (code == SQLITE_OK && !disk_has_room(disk, handle->file, offset + size)) {
        return SQLITE_FULL;
    }
    size_t count = (size_t)size;
    if (code != SQLITE_OK) {
        count = worked ? (size_t)chance_below(&disk->chance, count + 1) : 0;
    }
    content_write(&handle->file->content, &disk->chance, bytes, count, (size_t)offset);
    return code;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct disk_handle *handle = (struct disk_handle *)base;
    int code = is_void(handle) ? SQLITE_IOERR_TRUNCATE : disk_begin(handle->disk, DISK_TRUNCATE);
    if (code == SQLITE_OK) {
        content_truncate(&handle->file->content, (size_t)size);
    }
    return code;
}

static int file_sync(sqlite3_file *base, int flags)
{
    struct disk_handle *handle = (struct disk_handle *)base;
    if (is_void(handle)) {
        return SQLITE_IOERR_FSYNC;
    }
    struct disk *disk = handle->disk;
    bool worked = !disk->crashed;
    int code = disk_begin(disk, DISK_SYNC);
    if (code == SQLITE_OK && !disk->lies) {
        content_sync_early(&handle->file->content, disk->early_sectors);
        disk_keep_names(disk);
    } else if (code != SQLITE_OK && worked && !disk->crashed) {
        content_sync_in_part(&handle->file->content, &disk->chance);
    }
    return code;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *ret_size)
{
    const struct disk_handle *handle = (struct disk_handle *)base;
    if (is_void(handle) || handle->disk->crashed) {
        return SQLITE_IOERR_FSTAT;
    }
    *ret_size = (sqlite3_int64)handle->file->content.now_size;
    return SQLITE_OK;
}

/* --- locks of files ------------------------------------------------------------------------------------- */

/* The highest lock that another connection holds. */
static int lock_of_others(const struct disk_handle *handle)
{
    int highest = SQLITE_LOCK_NONE;
    for (const struct disk_handle *other = handle->disk->handles; other != NULL; other = other->next) {
        if (other != handle && other->file == handle->file && other->lock > highest) {
            highest = other->lock;
        }
    }
    return highest;
}

static int file_lock(sqlite3_file *base, int level)
{
    struct disk_handle *handle = (struct disk_handle *)base;
    if (is_void(handle) || handle->disk->crashed) {
        return SQLITE_IOERR_LOCK;
    }
    if (handle->lock >= level) {
        return SQLITE_OK;
    }
    int others = lock_of_others(handle);
    if (others >= (level == SQLITE_LOCK_SHARED ? SQLITE_LOCK_PENDING : SQLITE_LOCK_RESERVED)) {
        return SQLITE_BUSY;
    }
    if (level == SQLITE_LOCK_EXCLUSIVE && others >= SQLITE_LOCK_SHARED) {
        handle->lock = SQLITE_LOCK_PENDING; /* no new readers */
        return SQLITE_BUSY;
    }
    handle->lock = level;
    return SQLITE_OK;
}

static int file_unlock(sqlite3_file *base, int level)
{
    struct disk_handle *handle = (struct disk_handle *)base;
    handle->lock = handle->lock < level ? handle->lock : level;
    return SQLITE_OK;
}

static int file_check_reserved_lock(sqlite3_file *base, int *ret_reserved)
{
    const struct disk_handle *handle = (struct disk_handle *)base;
    if (is_void(handle) || handle->disk->crashed) {
        return SQLITE_IOERR_CHECKRESERVEDLOCK;
    }
    *ret_reserved = handle->lock >= SQLITE_LOCK_RESERVED || lock_of_others(handle) >= SQLITE_LOCK_RESERVED;
    return SQLITE_OK;
}

/* --- what files say about themselves -------------------------------------------------------------------- */

static int file_control(sqlite3_file *base, int operation, void *argument)
{
    return SQLITE_NOTFOUND;
}

static int file_sector_size(sqlite3_file *base)
{
    return SECTOR_SIZE;
}

static int file_characteristics(sqlite3_file *base)
{
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = shared_map,
    .xShmLock = shared_lock,
    .xShmBarrier = shared_barrier,
    .xShmUnmap = shared_unmap,
};

/* --- the VFS -------------------------------------------------------------------------------------------- */

/* Anyone who may write a database may create it, even without the flag: a store creates the real file
 * itself. */
static struct disk_file *file_of(struct disk *disk, const char *name, int flags)
{
    struct disk_file *file = name != NULL ? disk_find(disk, name) : NULL;
    return file != NULL || flags & SQLITE_OPEN_READONLY ? file : disk_make(disk, name);
}

static int vfs_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *base, int flags, int *ret_flags)
{
    struct disk *disk = vfs->pAppData;
    struct disk_handle *handle = (struct disk_handle *)base;
    *handle = (struct disk_handle){0};
    struct disk_file *file = disk->crashed ? NULL : file_of(disk, name, flags);
    if (file == NULL) {
        return SQLITE_CANTOPEN;
    }
    assert(name == NULL || (flags & SQLITE_OPEN_DELETEONCLOSE) == 0);
    handle->base.pMethods = &methods;
    handle->disk = disk;
    handle->file = file;
    handle->next = disk->handles;
    disk->handles = handle;
    file->handles++;
    if (ret_flags != NULL) {
        *ret_flags = flags;
    }
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    struct disk *disk = vfs->pAppData;
    struct disk_file *file = disk_find(disk, name);
    if (file == NULL) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    int code = disk_begin(disk, DISK_DELETE);
    if (code != SQLITE_OK) {
        return code;
    }
    file->exists = false;
    file->kept = file->kept && !sync_folder;
    return SQLITE_OK;
}

/* An empty file does not count, as with SQLite's own VFS. */
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret_there)
{
    const struct disk *disk = vfs->pAppData;
    if (disk->crashed) {
        return SQLITE_IOERR_ACCESS;
    }
    const struct disk_file *file = disk_find(disk, name);
    *ret_there = file != NULL && (flags != SQLITE_ACCESS_EXISTS || file->content.now_size > 0);
    return SQLITE_OK;
}

static int vfs_full_pathname(sqlite3_vfs *vfs, const char *name, int size, char *ret_name)
{
    if (strlen(name) >= (size_t)size) {
        return SQLITE_CANTOPEN;
    }
    strcpy(ret_name, name);
    return SQLITE_OK;
}

static int vfs_randomness(sqlite3_vfs *vfs, int size, char *bytes)
{
    struct disk *disk = vfs->pAppData;
    for (int i = 0; i < size; i++) {
        bytes[i] = (char)chance_below(&disk->sqlite_chance, 256);
    }
    return size;
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    struct disk *disk = vfs->pAppData;
    disk->now_us += microseconds;
    return microseconds;
}

static int vfs_current_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *ret_ms)
{
    static const int64_t year_2000_ms =
        2451545 * (int64_t)86400000; /* since noon of day 0 of the Julian calendar */
    struct disk *disk = vfs->pAppData;
    *ret_ms = year_2000_ms + ++disk->now_us / 1000;
    return SQLITE_OK;
}

static int vfs_current_time(sqlite3_vfs *vfs, double *ret_days)
{
    sqlite3_int64 ms;
    int code = vfs_current_time_ms(vfs, &ms);
    *ret_days = (double)ms / 86400000.0;
    return code;
}

static int vfs_last_error(sqlite3_vfs *vfs, int size, char *text)
{
    return 0;
}

void disk_vfs_init(sqlite3_vfs *vfs)
{
    *vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = sizeof(struct disk_handle),
        .mxPathname = PATH_BYTES,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_pathname,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_current_time,
        .xGetLastError = vfs_last_error,
        .xCurrentTimeInt64 = vfs_current_time_ms,
    };
}
