/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the list of Slurm's commands, and the form of their errors. */
#include "client/cli/slurm/commands/commands.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/show/print.h"

static const struct verb *const commands[] = {
    &verb_sbatch, &command_srun, &command_squeue, &command_scancel, &command_sinfo, &command_sacct, NULL};

const struct verb *slurm_command(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash != NULL ? slash + 1 : program;
    for (size_t i = 0; commands[i] != NULL; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

void slurm_print_error(const char *command, const struct err *err)
{
    char text[sizeof err->text], hint[sizeof err->hint];
    snprintf(text, sizeof text, "%s", err->text);
    snprintf(hint, sizeof hint, "%s", err->hint);
    print_disarm(text);
    print_disarm(hint);
    fprintf(stderr, "%s: error: %s%s%s%s\n", command, text, hint[0] != '\0' ? " (" : "", hint,
            hint[0] != '\0' ? ")" : "");
}
