/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values as Slurm spells them. batch_spec.c gives them their meaning. */
#include "client/cli/slurm/slurm_values.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define LIMIT_UNITS        100000  /* of one part of a time */
#define BEGIN_MOST         1000000 /* units that a job waits */
#define DEFAULT_SIGNAL_S   60
#define LIMIT_SIGNAL_S     65535
#define LIMIT_SIGNAL_VALUE 64

/* --- times --- */

/* "A:B:C" into at most three numbers; the count of them, 0 for anything else. */
static int read_parts(const char *text, int64_t parts[3])
{
    autofree char *copy = xstrdup(text);
    char *rest = copy;
    int count = 0;
    for (char *part; (part = strsep(&rest, ":")) != NULL; count++) {
        if (count == 3 || !text_to_int(part, 0, LIMIT_UNITS, &parts[count])) {
            return 0;
        }
    }
    return count;
}

/* "1hour", "30": seconds without a unit. */
static bool read_wait(const char *text, int64_t *ret_ms)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = {{"", 1},         {"second", 1},    {"seconds", 1},   {"minute", 60},
                 {"minutes", 60}, {"hour", 3600},   {"hours", 3600},  {"day", 86400},
                 {"days", 86400}, {"week", 604800}, {"weeks", 604800}};
    size_t digits = strspn(text, "0123456789");
    autofree char *number = xstrndup(text, digits);
    int64_t count;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text + digits, units[i].name) == 0) {
            *ret_ms = 1000 * units[i].seconds;
            return text_to_int(number, 0, BEGIN_MOST, &count) && (*ret_ms *= count) >= 0;
        }
    }
    return false;
}

/* Reads all of the text by one of the forms of strptime. */
static bool read_form(const char *text, const char *const *forms, struct tm *time)
{
    for (; *forms != NULL; forms++) {
        struct tm read = *time;
        const char *end = strptime(text, *forms, &read);
        if (end != NULL && *end == '\0') {
            *time = read;
            return true;
        }
    }
    return false;
}

bool slurm_begin(const char *text, int64_t now_ms, int64_t *ret_ms)
{
    static const char *const clocks[] = {"%H:%M:%S", "%H:%M", NULL};
    static const char *const dates[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", NULL};
    time_t now = (time_t)(now_ms / 1000);
    struct tm time;
    int64_t wait_ms = 0;
    if (strncmp(text, "now", 3) == 0) {
        *ret_ms = now_ms;
        bool good = text[3] == '\0' || (text[3] == '+' && read_wait(text + 4, &wait_ms));
        *ret_ms += wait_ms;
        return good;
    }
    localtime_r(&now, &time);
    time.tm_hour = time.tm_min = time.tm_sec = 0;
    time.tm_isdst = -1;
    bool clock = read_form(text, clocks, &time);
    if (!clock && !read_form(text, dates, &time)) {
        return false;
    }
    struct tm copy = time;
    time_t at = mktime(&copy);
    if (clock && at < now) {
        time.tm_mday++;
        at = mktime(&time);
    }
    *ret_ms = (int64_t)at * 1000;
    return at > 0;
}

bool slurm_time(const char *text, int64_t *ret_ms)
{
    int64_t parts[3] = {0};
    int64_t days = 0;
    if (strcasecmp(text, "unlimited") == 0 || strcasecmp(text, "infinite") == 0) {
        *ret_ms = 0;
        return true;
    }
    const char *dash = strchr(text, '-');
    if (dash != NULL) {
        autofree char *number = xstrndup(text, (size_t)(dash - text));
        if (!text_to_int(number, 0, LIMIT_UNITS, &days)) {
            return false;
        }
    }
    int count = read_parts(dash != NULL ? dash + 1 : text, parts);
    int64_t seconds = dash != NULL ? parts[0] * 3600 + parts[1] * 60 + parts[2]
                      : count == 3 ? parts[0] * 3600 + parts[1] * 60 + parts[2]
                                   : parts[0] * 60 + parts[1];
    *ret_ms = (days * 86400 + seconds) * 1000;
    return count > 0;
}

/* --- GPUs --- */

bool slurm_gpus(const char *text, struct slurm_gpus *ret_gpus)
{
    const char *colon = strrchr(text, ':');
    autofree char *type = colon != NULL ? xstrndup(text, (size_t)(colon - text)) : xstrdup("");
    if ((colon != NULL && !text_is_name(type, LIMIT_NAME_BYTES)) ||
        !text_to_int(colon != NULL ? colon + 1 : text, 0, LIMIT_GPUS, &ret_gpus->count)) {
        return false;
    }
    snprintf(ret_gpus->type, sizeof ret_gpus->type, "%s", type);
    return true;
}

bool slurm_gres(const char *text, struct slurm_gpus *ret_gpus)
{
    const char *plain = strncmp(text, "gres:", 5) == 0 ? text + 5 : text;
    if (strncmp(plain, "gpu", 3) != 0 || (plain[3] != '\0' && plain[3] != ':')) {
        return false;
    }
    if (plain[3] == '\0') {
        *ret_gpus = (struct slurm_gpus){.count = 1};
        return true;
    }
    if (slurm_gpus(plain + 4, ret_gpus)) {
        return true;
    }
    *ret_gpus = (struct slurm_gpus){.count = 1};
    snprintf(ret_gpus->type, sizeof ret_gpus->type, "%s", plain + 4);
    return text_is_name(plain + 4, LIMIT_NAME_BYTES);
}

/* --- memory --- */

bool slurm_memory(const char *text, int64_t *ret_bytes)
{
    int64_t mib;
    if (text_to_int(text, 0, LIMIT_MEMORY_BYTES / MIB, &mib)) {
        *ret_bytes = mib * MIB;
        return true;
    }
    return text_to_size(text, ret_bytes) && *ret_bytes <= LIMIT_MEMORY_BYTES;
}

/* --- signals --- */

static bool is_signal(const char *name)
{
    static const char *const names[] = {"HUP",  "INT",  "QUIT", "ABRT", "USR1", "USR2",  "TERM",
                                        "CONT", "ALRM", "URG",  "XCPU", "PIPE", "WINCH", "PWR"};
    int64_t number;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return text_to_int(name, 1, LIMIT_SIGNAL_VALUE, &number);
}

bool slurm_signal(const char *text, struct slurm_signal *ret_signal)
{
    int64_t seconds = DEFAULT_SIGNAL_S;
    bool to_batch = strncmp(text, "B:", 2) == 0;
    const char *name = to_batch ? text + 2 : text;
    name = strncmp(name, "SIG", 3) == 0 ? name + 3 : name;
    size_t length = strcspn(name, "@");
    if (name[length] == '@' && !text_to_int(name + length + 1, 0, LIMIT_SIGNAL_S, &seconds)) {
        return false;
    }
    *ret_signal = (struct slurm_signal){.to_batch = to_batch, .before_ms = seconds * 1000};
    if (length >= sizeof ret_signal->name) {
        return false;
    }
    memcpy(ret_signal->name, name, length);
    return is_signal(ret_signal->name);
}

/* --- words --- */

/* Appends the text in quotes; *at is behind the first quote and goes behind the second. */
static bool read_quoted(const char **at, struct text *word)
{
    char quote = (*at)[-1];
    for (; **at != quote; (*at)++) {
        if (quote == '"' && **at == '\\' && (*at)[1] != '\0') {
            (*at)++;
        }
        if (**at == '\0') {
            return false;
        }
        text_append_bytes(word, *at, 1);
    }
    (*at)++;
    return true;
}

bool slurm_word(const char **line, char **ret_word)
{
    autotext struct text word = {0};
    const char *at = *line + strspn(*line, " \t");
    *ret_word = NULL;
    if (*at == '\0' || *at == '#') {
        return true;
    }
    while (*at != '\0' && *at != ' ' && *at != '\t') {
        char c = *at++;
        if (c == '\'' || c == '"') {
            if (!read_quoted(&at, &word)) {
                return false;
            }
            continue;
        }
        if (c == '\\' && *at != '\0') {
            c = *at++;
        }
        text_append_bytes(&word, &c, 1);
    }
    *line = at;
    *ret_word = text_take(&word);
    return true;
}
