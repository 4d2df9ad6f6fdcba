/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of one .gitignore file, with git's meaning. */
#ifndef CLI_IGNORE_H
#define CLI_IGNORE_H

#include <stdbool.h>

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

#endif
