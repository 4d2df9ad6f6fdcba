/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of .gitignore and .gpuctlignore files, with git's meaning: those of one file, and of nested
 * folders. */
#ifndef CLI_IGNORE_H
#define CLI_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

struct ignore;

/* The verdict of a file on a path. After IGNORE_NOTHING the file of the folder above decides. */
enum ignore_verdict { IGNORE_NOTHING, IGNORE_LEAVE_OUT, IGNORE_TAKE };

/* Never fails: an invalid line matches nothing. */
struct ignore *ignore_parse(const char *text);
void ignore_destroy(struct ignore *ignore);

/* path is relative to the file's folder. The caller asks for each folder on the way first, and does not enter
 * folders that are left out. */
enum ignore_verdict ignore_ask(const struct ignore *ignore, const char *path, bool is_folder);

static inline void cleanup_ignore(struct ignore **ignore)
{
    ignore_destroy(*ignore);
}
#define autoignore __attribute__((cleanup(cleanup_ignore)))

/* --- folders --- */

/* The files of one folder. */
struct rules {
    const struct rules *above; /* of the folder above; NULL: there are none */
    size_t skip;               /* length of the folder's path from the topmost folder, with its slash */
    struct ignore *ignore;     /* NULL: the folder has no such file */
};

/* Reads the files of a folder. path is the folder's, from the topmost folder; "" for that one itself. */
bool rules_read(const char *folder, const char *path, const struct rules *above, struct rules *ret_rules,
                struct err *err);
void rules_finish(struct rules *rules);

/* path is from the topmost folder. The caller asks as for ignore_ask. rules may be NULL. */
bool rules_leave_out(const struct rules *rules, const char *path, bool is_folder);

/* Returns how many bytes of the real path root name the top of its git repository; 0 without one. */
size_t rules_top_of(const char *root);

#endif
