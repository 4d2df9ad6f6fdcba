/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with files of one job that go to the object store, and come back, together. It is exchanged as a
 * whole, so a reader finds all files or none. */
#ifndef BLOB_JOB_FOLDER_H
#define BLOB_JOB_FOLDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

/* In the folder AWAY says that the object store alone has its files, and STORED that it has all that are not
 * younger than this. Beside the folders of jobs, ARRIVING has those that are being made. */
#define JOB_FOLDER_AWAY     "away"
#define JOB_FOLDER_STORED   "stored"
#define JOB_FOLDER_ARRIVING "arriving"
bool job_folder_is_mark(const char *name);

/* Whether the files are in the object store alone, or there, too. */
bool job_folder_is_away(const char *folder);
bool job_folder_is_stored(const char *folder);

/* What shows whether the files of a folder change: their number, size and latest change. */
struct job_folder_extent {
    int64_t files, bytes, changed_ns;
};
bool job_folder_extent(const char *folder, struct job_folder_extent *ret_extent, struct err *err);

/* Puts the folder `to`, which is on disk, in the place of the job's, and removes that, if its files have this
 * extent; else removes `to`. extent NULL: if its files are away, or it is gone. mutex is held by all who
 * change files of the folder. */
bool job_folder_replace(pthread_mutex_t *mutex, const char *folder, const char *to,
                        const struct job_folder_extent *extent, struct err *err);

#endif
