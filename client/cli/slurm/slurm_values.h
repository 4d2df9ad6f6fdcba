/* SPDX-License-Identifier: Apache-2.0 */
/* Values as Slurm's users write them: times, GPUs, signals, words of a directive. */
#ifndef CLI_SLURM_VALUES_H
#define CLI_SLURM_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

/* MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS, DAYS-HOURS:MINUTES,
 * DAYS-HOURS:MINUTES:SECONDS; UNLIMITED, INFINITE and 0 are 0, no limit. */
bool slurm_time(const char *text, int64_t *ret_ms);

/* "now", "now+COUNT[seconds|minutes|hours|days|weeks]", "HH:MM[:SS]", which is the next such time, and
 * "YYYY-MM-DD[THH:MM[:SS]]", by the local clock. Wall clock ms. */
bool slurm_begin(const char *text, int64_t now_ms, int64_t *ret_ms);

struct slurm_gpus {
    char type[LIMIT_NAME_BYTES + 1]; /* "": any */
    int64_t count;
};

/* "[TYPE:]N" */
bool slurm_gpus(const char *text, struct slurm_gpus *ret_gpus);
/* "gpu[:TYPE][:N]" */
bool slurm_gres(const char *text, struct slurm_gpus *ret_gpus);

/* MiB, or with a unit: "4096", "4G", "512MB". */
bool slurm_memory(const char *text, int64_t *ret_bytes);

struct slurm_signal {
    char name[16]; /* "USR1", or a number */
    bool to_batch; /* to the script, not to its tasks */
    int64_t before_ms;
};

/* "[B:]SIGNAL[@SECONDS]"; 60 s where none are given. */
bool slurm_signal(const char *text, struct slurm_signal *ret_signal);

/* Takes the next word off the line, with quotes and backslashes as in a shell; a word that begins with # ends
 * the line. *ret_word is the caller's, NULL at the end. false: a quote is not closed. */
bool slurm_word(const char **line, char **ret_word);

#endif
