/* SPDX-License-Identifier: Apache-2.0 */
/* Whole small files, whole folders, and the places that our programs use. */
#ifndef BASE_FILES_H
#define BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/err.h"

/* Reads a whole file of at most max bytes. The caller frees *ret_bytes, which ends with a NUL that
 * *ret_length (may be NULL) does not count. */
bool file_read(const char *path, size_t max, char **ret_bytes, size_t *ret_length, struct err *err);

/* Writes all of the bytes, in several pieces if need be; false with errno. */
bool file_write_all(int fd, const void *bytes, size_t length);

/* Replaces a file atomically: writes a temporary file beside it, fsyncs it, renames it, and fsyncs the
 * directory. */
bool file_replace(const char *path, const void *bytes, size_t length, mode_t mode, struct err *err);

/* Copies a file to a name that does not exist yet, and fsyncs the copy. The caller syncs the folder. */
bool file_copy(const char *from, const char *to, mode_t mode, struct err *err);

/* Makes files durable that were just created, renamed or removed in the folder. */
bool file_sync_folder(const char *folder, struct err *err);

/* mkdir -p; the mode is for the folders that it makes. */
bool file_make_directories(const char *path, mode_t mode, struct err *err);

/* rm -r that follows no link and stays on one file system. A path that does not exist is no error. */
bool file_remove_tree(const char *path, struct err *err);

/* The names in a folder without . and .., in any order: all of them, or an error. */
struct file_names {
    char **items;
    size_t count;
};
bool file_list(const char *folder, struct file_names *ret_names, struct err *err);
void file_names_finish(struct file_names *names);
#define autonames __attribute__((cleanup(file_names_finish)))

/* Adds the sizes of the files in a folder. One that does not exist has none. */
bool file_measure(const char *folder, int64_t *bytes, struct err *err);

/* Gives a file, or a folder and its direct entries, to the owner of `folder`. So files that root makes in
 * another user's folder belong to that user. A file with other names (hard links) is left alone. Does nothing
 * unless the caller is root. */
bool file_give_to_owner_of(const char *folder, const char *path, struct err *err);

/* How large the disk of a folder is, and how much of it is free for programs; false with errno. */
struct file_disk {
    int64_t bytes, free_bytes;
};
bool file_disk(const char *folder, struct file_disk *ret_disk);

/* The folder part of a path; "." if it has none. The caller frees it. */
char *file_folder_of(const char *path);

/* The absolute path, for use in another working folder; the caller frees it. file_absolute_program leaves a
 * name without a slash as it is, because it is looked up in PATH. NULL stays NULL. */
char *file_absolute(const char *path);
char *file_absolute_program(const char *path);

/* Finds the path of another of our programs: in $GPUCTL_LIBEXEC, else beside the caller's own executable,
 * else at the build tree's relative places. NULL with ERR_IO that names the places tried. The caller frees
 * it. */
char *file_find_program(const char *name, struct err *err);

/* The name of this host in requests: SHA-256 in hex of the machine id (/etc/machine-id, else the boot id).
 * out has room for 65 bytes. */
void file_host_id(char out[65]);

/* The kernel's boot id as text; out has room for 37 bytes. */
void file_boot_id(char out[37]);

#endif
