/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of the verbs that people bring from Slurm, kubectl, docker and other programs. An answer can
 * be copied into a shell: for arguments that a shell would not take as they are it says ID, NAME or COMMAND.
 */
#include "client/cli/frame/hint.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/,=@%+-"

static const struct hint all[] = {
    /* look at jobs */
    {"status", "get", "ID", "ps"},
    {"state", "get", "ID", "ps"},
    {"describe job", "get", "ID", NULL},
    {"describe node", "nodes show", "NAME", NULL},
    {"describe", "get", "ID", NULL},
    {"inspect", "get", "ID", NULL},
    {"info", "get", "ID", "ps"},
    {"show job", "get", "ID", NULL},
    {"show node", "nodes show", "NAME", NULL},
    {"show", "get", "ID", "ps"},
    {"list nodes", "nodes", NULL, NULL},
    {"list", "ps", NULL, NULL},
    {"jobs", "ps", NULL, NULL},
    {"job list", "ps", NULL, NULL},
    {"job", "get", "ID", "ps"},
    {"history", "events", "ID", "ps --all"},
    {"log", "logs", "ID", NULL},
    {"tail", "logs --follow", "ID", NULL},
    {"output", "logs", "ID", NULL},
    {"watch", "top", "ID", "top"},
    {"stats", "metrics", "ID", "usage"},
    /* end jobs, and start them */
    {"kill", "cancel", "ID", NULL},
    {"stop", "cancel", "ID", NULL},
    {"abort", "cancel", "ID", NULL},
    {"terminate", "cancel", "ID", NULL},
    {"delete job", "cancel", "ID", NULL},
    {"delete", "cancel", "ID", NULL},
    {"remove", "rm", "ID", NULL},
    {"rerun", "retry", "ID", NULL},
    {"restart", "retry", "ID", NULL},
    {"resubmit", "retry", "ID", NULL},
    {"requeue", "retry", "ID", NULL},
    {"suspend", "hold", "ID", NULL},
    {"pause", "hold", "ID", NULL},
    {"resume", "release", "ID", NULL},
    {"edit", "update", "ID", NULL},
    {"create", "submit --", "COMMAND", NULL},
    {"start", "submit --", "COMMAND", NULL},
    {"launch", "submit --", "COMMAND", NULL},
    {"apply", "submit -f", "FILE", NULL},
    {"download", "cp", "ID: DIR", NULL},
    /* Slurm */
    {"squeue", "ps", NULL, NULL},
    {"sinfo", "nodes", NULL, NULL},
    {"sacct", "ps --all", NULL, NULL},
    {"scancel", "cancel", "ID", NULL},
    {"srun", "run --", "COMMAND", NULL},
    {"salloc", "run --", "COMMAND", NULL},
    {"sprio", "queue", NULL, NULL},
    {"sshare", "shares", NULL, NULL},
    {"sreport", "usage", NULL, NULL},
    {"sacctmgr", "quotas", NULL, NULL},
    {"sstat", "metrics", "ID", NULL},
    {"sattach", "logs --follow", "ID", NULL},
    {"scontrol show job", "get", "ID", "ps"},
    {"scontrol show jobs", "ps", NULL, NULL},
    {"scontrol show node", "nodes show", "NAME", "nodes"},
    {"scontrol show nodes", "nodes", NULL, NULL},
    {"scontrol show partition", "pools", NULL, NULL},
    {"scontrol hold", "hold", "ID", NULL},
    {"scontrol release", "release", "ID", NULL},
    {"scontrol update", "update", "ID", NULL},
    {"scontrol requeue", "preempt", "ID", NULL},
    {"scontrol", "get", "ID", NULL},
    /* nodes and the rest */
    {"node", "nodes show", "NAME", "nodes"},
    {"drain", "nodes drain", "NAME", NULL},
    {"cordon", "nodes drain", "NAME", NULL},
    {"uncordon", "nodes resume", "NAME", NULL},
    {"nvidia-smi", "gpus", NULL, NULL},
    {"config", "context", NULL, NULL},
    {"contexts", "context", NULL, NULL},
    {"profile", "context", NULL, NULL},
    {"check", "doctor", NULL, NULL},
    {"diagnose", "doctor", NULL, NULL},
    {"me", "whoami", NULL, NULL},
    {"who", "whoami", NULL, NULL},
    {"partitions", "pools", NULL, NULL},
    {"secrets", "secret list", NULL, NULL},
    {"tokens", "token list", NULL, NULL},
    {.words = NULL},
};

const struct hint *hint_all(void)
{
    return all;
}

/* How many words of the command line the hint names; 0: others. */
static size_t match(const struct hint *hint, char **words, size_t count)
{
    size_t matched = 0;
    for (const char *at = hint->words; *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (matched == count || strlen(words[matched]) != length ||
            strncmp(words[matched], at, length) != 0) {
            return 0;
        }
        matched++;
        at += length;
    }
    return matched;
}

/* Can they stand behind any verb, in any shell? */
static bool are_plain(char **words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (words[i][0] == '-' || words[i][0] == '\0' || words[i][strspn(words[i], PLAIN)] != '\0') {
            return false;
        }
    }
    return count > 0;
}

bool hint_find(char **words, size_t count, struct err *err)
{
    const struct hint *hint = all;
    size_t matched = 0;
    while (hint->words != NULL && (matched = match(hint, words, count)) == 0) {
        hint++;
    }
    if (hint->words == NULL) {
        return false;
    }
    autotext struct text use = {0};
    bool alone = hint->alone != NULL && matched == count;
    text_append(&use, alone ? hint->alone : hint->ours);
    if (!alone && hint->arguments != NULL && !are_plain(words + matched, count - matched)) {
        text_printf(&use, " %s", hint->arguments);
    } else if (!alone && hint->arguments != NULL) {
        for (size_t i = matched; i < count; i++) {
            text_printf(&use, " %s", words[i]);
        }
    }
    err_set(err, ERR_USAGE, "\"%s\" is no verb of gpuctl; use: gpuctl %s", words[0], use.bytes);
    return true;
}
