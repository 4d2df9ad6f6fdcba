/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that people know from other programs, and ours in their place. */
#ifndef CLI_HINT_H
#define CLI_HINT_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

/* A verb of another program. */
struct hint {
    const char *words;     /* "kill", or "scontrol show job"; of two that fit the longer one comes first */
    const char *ours;      /* what follows `gpuctl` instead */
    const char *arguments; /* behind it, where those that were typed are not plain; NULL: it takes none */
    const char *alone;     /* in the place of ours where no argument was typed; or NULL */
};

/* All of them; the last one has no words. */
const struct hint *hint_all(void);

/* true: words[0] is the verb of another program, and *err says in one line what to type instead. */
bool hint_find(char **words, size_t count, struct err *err);

#endif
