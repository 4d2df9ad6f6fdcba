/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to shells that complete a command line of gpuctl. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include <stddef.h>

/* The scripts that ask; their sources are the files completion.bash, .zsh and .fish. */
extern const unsigned char completion_bash[], completion_zsh[], completion_fish[];
extern const size_t completion_bash_length, completion_zsh_length, completion_fish_length;

/* words are those behind `gpuctl`, the last of them as far as it is written. Prints what it may become: a
 * line for each word, with a tab and its meaning behind it; or ":files" for names of files; or ":command N"
 * for a command behind the first N words of the line. Returns the command line of gpuctl that prints more
 * such words and ends with NULL; or NULL. */
const char *const *completion_offer(char **words, size_t count);

#endif
