/* SPDX-License-Identifier: Apache-2.0 */
/* Knows the commands that are launchers and want to run once a node. A command that it does not know runs as
 * it was asked for. */
#include "client/cli/spec/launcher.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define FIRST_WORDS 3

static bool is_torchrun(const char *words[FIRST_WORDS])
{
    const char *program = basename(words[0]);
    bool module = strncmp(program, "python", strlen("python")) == 0 && strcmp(words[1], "-m") == 0;
    return strcmp(program, "torchrun") == 0 ||
           (module && (strcmp(words[2], "torch.distributed.run") == 0 ||
                       strcmp(words[2], "torch.distributed.launch") == 0));
}

/* The first command of the script, cut at blanks alone: quotes make it one that is not known. */
static bool script_is_torchrun(const char *script)
{
    const char *words[FIRST_WORDS] = {"", "", ""};
    autofree char *line =
        xstrndup(script + strspn(script, " \t\n"), strcspn(script + strspn(script, " \t\n"), "\n"));
    char *rest = line;
    for (size_t i = 0; i < FIRST_WORDS && rest != NULL; i++) {
        words[i] = strsep(&rest, " \t");
    }
    return is_torchrun(words);
}

bool launcher_is_torchrun(const json_t *command)
{
    const char *words[FIRST_WORDS] = {"", "", ""};
    for (size_t i = 0; i < FIRST_WORDS && i < json_array_size(command); i++) {
        const char *word = json_string_value(json_array_get(command, i));
        words[i] = word != NULL ? word : ""; /* no text: refused later */
    }
    const char *program = basename(words[0]);
    bool shell = strcmp(program, "bash") == 0 || strcmp(program, "sh") == 0;
    return shell && strcmp(words[1], "-c") == 0 ? script_is_torchrun(words[2]) : is_torchrun(words);
}
