/* SPDX-License-Identifier: Apache-2.0 */
/* What .gitignore and .gpuctlignore files leave out, with git's meaning: one file, and those of folders that
 * lie in one another. */
#ifndef CLI_IGNORE_H
#define CLI_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

struct ignore;

/* What a file says of a path; nothing leaves it to the files of the folders around. */
enum ignore_verdict { IGNORE_NOTHING, IGNORE_LEAVE_OUT, IGNORE_TAKE };

/* Never fails: a line that means nothing matches nothing. */
struct ignore *ignore_parse(const char *text);
void ignore_destroy(struct ignore *ignore);

/* path is from the folder that the file lies in. The folders on its way must have been asked for before: what
 * lies in one that is left out is not asked for. */
enum ignore_verdict ignore_ask(const struct ignore *ignore, const char *path, bool is_folder);

static inline void cleanup_ignore(struct ignore **ignore)
{
    ignore_destroy(*ignore);
}
#define autoignore __attribute__((cleanup(cleanup_ignore)))

/* --- folders --- */

/* The files of one folder. */
struct rules {
    const struct rules *above; /* of the folder around it; NULL: none count */
    size_t skip;               /* bytes of a path from the topmost folder that lead into this one */
    struct ignore *ignore;     /* NULL: it has no such file */
};

/* Reads the files of a folder. path is its own, from the topmost folder, "" for that itself. */
bool rules_read(const char *folder, const char *path, const struct rules *above, struct rules *ret_rules,
                struct err *err);
void rules_finish(struct rules *rules);

/* path is from the topmost folder; those on its way must have been asked for before. rules may be NULL. */
bool rules_leave_out(const struct rules *rules, const char *path, bool is_folder);

/* Bytes of the real path root that name the top of its git repository; 0 without one. */
size_t rules_top_of(const char *root);

#endif
