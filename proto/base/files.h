/* SPDX-License-Identifier: Apache-2.0 */
/* Whole small files and the places that our programs use. */
#ifndef BASE_FILES_H
#define BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "proto/base/err.h"

/* Reads a whole file of at most max bytes; *ret_bytes is terminated by a NUL that *ret_length (may be NULL)
 * does not count, and is the caller's. */
bool file_read(const char *path, size_t max, char **ret_bytes, size_t *ret_length, struct err *err);

/* Replaces a file in one step: a temporary file beside it, fsync, rename, fsync of the directory. */
bool file_replace(const char *path, const void *bytes, size_t length, mode_t mode, struct err *err);

/* Copies a file to a name that is not there yet, and syncs it; its folder is left to the caller. */
bool file_copy(const char *from, const char *to, mode_t mode, struct err *err);

/* Makes what was renamed, made or removed in the folder last. */
bool file_sync_folder(const char *folder, struct err *err);

/* mkdir -p with the mode for what it makes. */
bool file_make_directories(const char *path, mode_t mode, struct err *err);

/* rm -r that follows no link and stays on one file system; a path that is not there is no error. */
bool file_remove_tree(const char *path, struct err *err);

/* The names in a folder but . and .., in any order: all of them, or an error. */
struct file_names {
    char **items;
    size_t count;
};
bool file_list(const char *folder, struct file_names *ret_names, struct err *err);
void file_names_finish(struct file_names *names);
#define autonames __attribute__((cleanup(file_names_finish)))

/* What root makes in the folder of another user is to be that user's: gives a file, or a folder and what lies
 * directly in it, to the owner of that folder. A file that has other names, too, is left alone. For all
 * others than root it does nothing. */
bool file_give_to_owner_of(const char *folder, const char *path, struct err *err);

/* The folder that a path lies in, as it is written: "." where it names none. The caller frees it. */
char *file_folder_of(const char *path);

/* The path from the top, for another working folder; the caller frees it. file_absolute_program leaves a name
 * without a slash, which is looked up in PATH. NULL stays NULL. */
char *file_absolute(const char *path);
char *file_absolute_program(const char *path);

/* The folder of the caller's own executable, and the path of another of our programs: $GPUCTL_LIBEXEC, else
 * beside the caller's file, else by the build tree's relative places. NULL with ERR_IO that names the places
 * tried. The caller frees it. */
char *file_find_program(const char *name, struct err *err);

/* SHA-256 in hex of the machine id (/etc/machine-id, else the boot id): the name of this host in requests;
 * out has room for 65. */
void file_host_id(char out[65]);

/* The kernel's boot id as text; out has room for 37. */
void file_boot_id(char out[37]);

#endif
