/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and opens files in a folder in which a rank may have put anything: no link is followed, and only
 * plain files with a single name count, because another name may be that of a file which the rank itself
 * could not read. */
#ifndef AGENT_FOREIGN_FOLDER_H
#define AGENT_FOREIGN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "proto/wire/files/checkpoint.h"

struct foreign_file {
    char *path; /* relative, UTF-8, each part a plain name */
    int64_t size;
    int64_t modified_ns, changed_ns; /* wall clock */
    uint64_t inode;
    bool executable;
};

struct foreign_list {
    struct foreign_file *files; /* sorted by path */
    size_t count, room;
    size_t looks;                   /* entries seen */
    enum checkpoint_gap gap;        /* why it may miss files that are none of these: NONE, it does not */
    int64_t left_files, left_bytes; /* what was left out: links, names that are not UTF-8, above the limits */
};

/* folder -1: it has no files. */
void foreign_list_read(int folder, struct foreign_list *ret_list);
void foreign_list_finish(struct foreign_list *list);

/* Opens a file for reading; -1: there is none, or something else has its name. ret_file may be NULL; its path
 * is the given one. */
int foreign_open(int folder, const char *path, struct foreign_file *ret_file);

#endif
