/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the connections of a log share (SQLite's wal-index): its regions and its eight locks. The
 * memory of a connection stays until the connection releases it, even after the end of its process. */
#include <assert.h>
#include <stdlib.h>

#include "proto/base/text/text.h"
#include "tests/sim/disk/disk_state.h"

struct shared_memory {
    void **regions;
    int count;
    int users; /* handles */
};

static void release(struct shared_memory *shared)
{
    if (--shared->users > 0) {
        return;
    }
    for (int i = 0; i < shared->count; i++) {
        free(shared->regions[i]);
    }
    free(shared->regions);
    free(shared);
}

static void attach(struct disk_handle *handle)
{
    if (handle->shared == NULL) {
        if (handle->file->shared == NULL) {
            handle->file->shared = xzalloc(sizeof *handle->file->shared);
        }
        handle->shared = handle->file->shared;
        handle->shared->users++;
    }
}

int shared_map(sqlite3_file *base, int region, int region_bytes, int extend, void volatile **ret_at)
{
    struct disk_handle *handle = (struct disk_handle *)base;
    *ret_at = NULL;
    if (handle->disk == NULL || handle->disk->crashed) {
        return SQLITE_IOERR_SHMMAP;
    }
    attach(handle);
    struct shared_memory *shared = handle->shared;
    while (extend && shared->count <= region) {
        shared->regions = xrealloc(shared->regions, ((size_t)shared->count + 1) * sizeof *shared->regions);
        shared->regions[shared->count++] = xzalloc((size_t)region_bytes);
    }
    if (region < shared->count) {
        *ret_at = shared->regions[region];
    }
    return SQLITE_OK;
}

static bool is_free(const struct disk_handle *handle, unsigned slots, bool exclusive)
{
    for (const struct disk_handle *other = handle->disk->handles; other != NULL; other = other->next) {
        unsigned held = exclusive ? other->exclusive_locks | other->shared_locks : other->exclusive_locks;
        if (other != handle && other->shared == handle->shared && (held & slots) != 0) {
            return false;
        }
    }
    return true;
}

int shared_lock(sqlite3_file *base, int offset, int count, int flags)
{
    struct disk_handle *handle = (struct disk_handle *)base;
    unsigned slots = ((1U << count) - 1) << offset;
    unsigned *held = flags & SQLITE_SHM_EXCLUSIVE ? &handle->exclusive_locks : &handle->shared_locks;
    assert(offset >= 0 && count > 0 && offset + count <= SQLITE_SHM_NLOCK);
    assert(count == 1 || (flags & SQLITE_SHM_EXCLUSIVE) != 0);
    if (flags & SQLITE_SHM_UNLOCK) {
        assert(handle->disk == NULL || (*held & slots) == slots);
        *held &= ~slots;
        return SQLITE_OK;
    }
    if (handle->disk == NULL || handle->disk->crashed) {
        return SQLITE_IOERR_SHMLOCK;
    }
    if (!is_free(handle, slots, flags & SQLITE_SHM_EXCLUSIVE)) {
        return SQLITE_BUSY;
    }
    *held |= slots;
    return SQLITE_OK;
}

void shared_barrier(sqlite3_file *base)
{
    /* one thread */
}

/* As with the system's own VFS, memory that no connection maps any more is not passed on to the next one. */
int shared_unmap(sqlite3_file *base, int delete_it)
{
    struct disk_handle *handle = (struct disk_handle *)base;
    if (handle->shared == NULL) {
        return SQLITE_OK;
    }
    if (handle->file != NULL && handle->shared->users == 1) {
        handle->file->shared = NULL;
    }
    release(handle->shared);
    handle->shared = NULL;
    handle->shared_locks = handle->exclusive_locks = 0;
    return SQLITE_OK;
}

void shared_detach(struct disk_handle *handle)
{
    handle->file->shared = NULL;
}
