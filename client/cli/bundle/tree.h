/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a folder that travel with a job. */
#ifndef CLI_TREE_H
#define CLI_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/cli/show/notes.h"
#include "proto/base/err.h"

struct tree_entry {
    char *path;   /* from the root */
    mode_t mode;  /* type (file, folder or link) and permissions */
    int64_t size; /* bytes of a file */
    int64_t modified_s;
    char *target; /* of a link; else NULL */
};

/* A folder comes before its entries. The same folder gives the same order. */
struct tree {
    struct tree_entry *entries;
    size_t count;
    size_t files; /* entries other than folders */
    int64_t bytes;
};

/* Lists the folder. The .gitignore and .gpuctlignore files in it and, in a git repository, in the folders
 * around it leave out entries silently. Repositories, caches, *.pyc and virtual environments are always left
 * out. Any other entry that is left out gets a note. Above CLIENT_BUNDLE_FILES or CLIENT_BUNDLE_BYTES
 * ERR_TOO_LARGE names the largest entries. */
bool tree_read(const char *root, struct tree *ret_tree, struct notes *notes, struct err *err);
void tree_finish(struct tree *tree);

/* Whether the tree has a folder at the path. */
bool tree_has_folder(const struct tree *tree, const char *path);

static inline void cleanup_tree(struct tree *tree)
{
    tree_finish(tree);
}
#define autotree __attribute__((cleanup(cleanup_tree)))

#endif
