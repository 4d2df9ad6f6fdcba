/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an attempt's index, and repairs it if bytes that it promises were lost. A record is readable as soon
 * as it is complete, also in an index that appears later. Reading a long index takes one system call for many
 * records. logs.c appends to the index. */
#include "daemon/blob/log_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

void log_index_init(struct log_index *index, const struct logs *logs, const char *job_id, int64_t attempt)
{
    index->path = log_index_path(logs, job_id, attempt);
    index->fd = -1;
    index->first = 0;
    index->count = 0;
}

void log_index_finish(struct log_index *index)
{
    if (index->fd >= 0) {
        close(index->fd);
    }
    free(index->path);
}

static void fetch(struct log_index *index, int64_t number)
{
    const int64_t size = (int64_t)sizeof *index->block;
    if (index->fd < 0) {
        index->fd = open(index->path, O_RDONLY | O_CLOEXEC);
    }
    ssize_t got = index->fd >= 0 ? pread(index->fd, index->block, sizeof index->block, number * size) : 0;
    index->first = number;
    index->count = got > 0 ? (size_t)(got / size) : 0;
}

static bool is_record(const struct log_record *record)
{
    int64_t rank = log_channel_rank(record->channel);
    return record->channel >= 0 && rank < LIMIT_GPUS && record->offset >= 0 && record->length >= 0 &&
           record->length <= INT64_MAX - record->offset;
}

bool log_index_read(struct log_index *index, int64_t number, struct log_record *ret_record)
{
    if (number < index->first || number >= index->first + (int64_t)index->count) {
        fetch(index, number);
    }
    if (index->count == 0) {
        return false;
    }
    *ret_record = index->block[number - index->first];
    return is_record(ret_record);
}

/* Finds the last record of the channel, searching back from the end; -1: the channel has none. */
static int64_t find_last(int fd, int64_t channel, int64_t count, struct log_record *ret_record)
{
    struct log_record block[LIMIT_INDEX_BLOCK_RECORDS];
    const int64_t size = (int64_t)sizeof *block;
    while (count > 0) {
        int64_t from = count > LIMIT_INDEX_BLOCK_RECORDS ? count - LIMIT_INDEX_BLOCK_RECORDS : 0;
        ssize_t got = pread(fd, block, (size_t)((count - from) * size), from * size);
        for (int64_t i = got / size - 1; i >= 0; i--) {
            if (block[i].channel == channel) {
                *ret_record = block[i];
                return from + i;
            }
        }
        count = from;
    }
    return -1;
}

bool log_index_repair(const char *path, int64_t channel, int64_t size, struct err *err)
{
    autoclose int fd = open(path, O_RDWR | O_CLOEXEC);
    struct log_record record;
    struct stat status;
    if (fd < 0 && errno == ENOENT) {
        return true;
    }
    if (fd < 0 || fstat(fd, &status) != 0) {
        return err_errno(err, "cannot open the index %s", path);
    }
    int64_t number = find_last(fd, channel, status.st_size / (int64_t)sizeof record, &record);
    if (number < 0 || !is_record(&record) || record.offset + record.length <= size) {
        return true;
    }
    record.length = record.offset < size ? size - record.offset : 0;
    return pwrite(fd, &record, sizeof record, number * (int64_t)sizeof record) == (ssize_t)sizeof record ||
           err_errno(err, "cannot write the index %s", path);
}
