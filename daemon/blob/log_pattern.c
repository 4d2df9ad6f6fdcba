/* SPDX-License-Identifier: Apache-2.0 */
/* Owns patterns of searches. It promises that a pattern has bounded costs whoever wrote it: no
 * back-references, few repetitions, and automata of the C library, which grow with what they read, are made
 * anew in time. The lines that look like an error are the table below. */
#include "daemon/blob/log_pattern.h"

#include <assert.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

#define REPEATED 2 /* signs of repetitions in a row: ".*?", which is no other than ".*" here */

/* An expression is tried only on lines that have its word, which is found much faster. */
struct error_row {
    const char *word;
    const char *expression; /* NULL: the word alone is enough */
};

/* The first lines of failures of programs, of Python, GPUs, shells and the kernel. */
static const struct error_row error_rows[] = {
    {"Traceback (most recent call last)", NULL},
    {"Error", "(^|[^A-Za-z0-9])[A-Z][A-Za-z0-9]+Error(:|$)"},
    {"Exception", "(^|[^A-Za-z0-9])[A-Z][A-Za-z0-9]+Exception(:|$)"},
    {"rror:", "(^|: |\\] )(fatal |internal )?[Ee]rror: "},
    {"ERROR", "(^|[^A-Za-z0-9_])ERROR([^A-Za-z0-9_]|$)"},
    {"FATAL", "(^|[^A-Za-z0-9_])FATAL([^A-Za-z0-9_]|$)"},
    {"CRITICAL", "(^|[^A-Za-z0-9_])CRITICAL([^A-Za-z0-9_]|$)"},
    {"CUDA error", NULL},
    {"NCCL WARN", NULL},
    {"NCCL error", NULL},
    {"Xid", "NVRM: Xid"},
    {"ut of memory", "[Oo]ut of memory"},
    {"oom-kill", NULL},
    {"Segmentation fault", NULL},
    {"Bus error", NULL},
    {"Floating point exception", NULL},
    {"Illegal instruction", NULL},
    {"Aborted", "(^|[ :])Aborted( |$)"},
    {"Killed", "(^|[ :])Killed( |$)"},
    {"core dumped", NULL},
    {"terminate called", NULL},
    {"panic: ", NULL},
    {"ssertion", "[Aa]ssertion .*failed"},
    {"No space left on device", NULL},
    {"command not found", NULL},
    {"can't open file", NULL},
};

#define ERROR_ROWS (sizeof error_rows / sizeof *error_rows)

struct expression {
    const char *source; /* borrowed */
    int flags;
    regex_t compiled;
    size_t read; /* bytes since it was compiled */
};

struct log_pattern {
    char *text; /* of a text, or of the expression; NULL: errors */
    size_t length;
    bool plain; /* it is found byte for byte */
    struct expression own;
    struct expression errors[ERROR_ROWS]; /* source NULL: none */
};

/* --- expressions ---------------------------------------------------------------------------------------- */

static bool expression_compile(struct expression *expression, struct err *err)
{
    int failure = regcomp(&expression->compiled, expression->source, expression->flags);
    expression->read = 0;
    if (failure == 0) {
        return true;
    }
    char said[128];
    regerror(failure, &expression->compiled, said, sizeof said);
    expression->source = NULL;
    return err_field(err, ERR_FIELD, "q", "write an extended regular expression, or leave regex out",
                     "q is no regular expression: %s", said);
}

static void expression_finish(struct expression *expression)
{
    if (expression->source != NULL) {
        regfree(&expression->compiled);
    }
}

/* The library keeps each state of the automaton that it has met, some KiB each: at most one a byte. false:
 * there is no expression. */
static bool freshen(struct expression *expression, size_t length)
{
    struct err ignored;
    expression->read += length;
    if (expression->source == NULL || expression->read <= LIMIT_SEARCH_STATES) {
        return expression->source != NULL;
    }
    regfree(&expression->compiled);
    return expression_compile(expression, &ignored); /* as it did before, unless memory is short */
}

/* The library's contract wants a NUL behind the line; within it there may be others. */
static bool expression_finds(struct expression *expression, const char *line, size_t length)
{
    char copy[LIMIT_SEARCH_LINE_BYTES + 1];
    regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)length};
    assert(length < sizeof copy);
    memcpy(copy, line, length);
    copy[length] = '\0';
    return freshen(expression, length) && regexec(&expression->compiled, copy, 1, &range, REG_STARTEND) == 0;
}

/* The index behind a bracket expression that begins at `at`: "[]a]" and "[^]a]" hold a bracket, and so does
 * "[[:alpha:]]". */
static size_t behind_bracket(const char *text, size_t at)
{
    at += text[at + 1] == '^' ? 2 : 1;
    at += text[at] == ']';
    while (text[at] != '\0' && text[at] != ']') {
        const char *end = NULL;
        if (text[at] == '[' && text[at + 1] != '\0' && strchr(":.=", text[at + 1]) != NULL) {
            const char closing[] = {text[at + 1], ']', '\0'};
            end = strstr(text + at + 2, closing);
        }
        at = end != NULL ? (size_t)(end - text) + 2 : at + 1;
    }
    return text[at] != '\0' ? at + 1 : at;
}

/* How many copies of the expression before them the braces make: "{2,}" makes three. */
static int64_t repeats_of(const char *braces)
{
    char *end;
    int64_t least = strtol(braces + 1, &end, 10);
    int64_t most = *end == ',' ? strtol(end + 1, &end, 10) : least;
    most = most > least ? most : least < INT64_MAX ? least + 1 : least;
    return most > 1 ? most : 1;
}

/* A group of an expression, or the whole. */
struct group {
    int64_t nodes;  /* of the automaton: each character and sign, with repetitions written out */
    bool empty;     /* the alternative at hand may be nothing, as far as it goes */
    bool any_empty; /* an alternative before it may */
};

struct costs {
    struct group groups[LIMIT_SEARCH_PATTERN + 1]; /* the open ones, the whole first */
    size_t depth;
    int64_t last;    /* nodes of the character or group that a repetition would be of; 0: there is none */
    bool last_empty; /* it may be nothing */
    int signs;       /* of repetitions behind it */
    bool loops;      /* what may be nothing is repeated: the library takes for ever over some of these */
};

static void costs_next(struct costs *costs, int64_t nodes, bool empty)
{
    struct group *group = &costs->groups[costs->depth];
    group->nodes += costs->last;
    group->empty = group->empty && (costs->last == 0 || costs->last_empty);
    costs->last = nodes;
    costs->last_empty = empty;
    costs->signs = 0;
}

static void costs_alternative(struct costs *costs)
{
    struct group *group = &costs->groups[costs->depth];
    costs_next(costs, 0, true);
    group->nodes++;
    group->any_empty = group->any_empty || group->empty;
    group->empty = true;
}

static void costs_open(struct costs *costs)
{
    costs_next(costs, 0, true);
    costs->groups[++costs->depth] = (struct group){.empty = true};
}

static void costs_close(struct costs *costs)
{
    if (costs->depth > 0) {
        costs_next(costs, 0, true);
        const struct group *group = &costs->groups[costs->depth--];
        costs->last = group->nodes + 1;
        costs->last_empty = group->empty || group->any_empty;
    }
}

/* The sign makes this many copies, and may make a loop, or allow nothing. */
static void costs_repeat(struct costs *costs, int64_t copies, bool loop, bool none)
{
    bool large = copies > LIMIT_SEARCH_NODES || costs->last * copies > LIMIT_SEARCH_NODES;
    costs->loops = costs->loops || (costs->last > 0 && costs->last_empty && (loop || copies > 1));
    costs->last = large ? LIMIT_SEARCH_NODES + 1 : costs->last * copies + 1;
    costs->last_empty = costs->last_empty || none;
    costs->signs++;
}

/* "{2,5}", or a brace that is a character. Returns the place of its end. */
static size_t costs_braces(struct costs *costs, const char *text, size_t at)
{
    size_t end = at + 1 + strspn(text + at + 1, "0123456789,");
    costs_repeat(costs, repeats_of(text + at), text[end - 1] == ',', strtol(text + at + 1, NULL, 10) == 0);
    return text[end] == '}' ? end : at;
}

static int64_t costs_sum(const struct costs *costs)
{
    int64_t sum = costs->last;
    for (size_t i = 0; i <= costs->depth; i++) {
        sum += costs->groups[i].nodes;
    }
    return sum;
}

/* Takes the character at `at` in, and returns the place of the last one that belongs to it. */
static size_t costs_take(struct costs *costs, const char *text, size_t at)
{
    switch (text[at]) {
    case '(':
        costs_open(costs);
        return at;
    case ')':
        costs_close(costs);
        return at;
    case '|':
        costs_alternative(costs);
        return at;
    case '*':
        costs_repeat(costs, 1, true, true);
        return at;
    case '?':
        costs_repeat(costs, 1, false, true);
        return at;
    case '+': /* one, and any number more */
        costs_repeat(costs, 2, true, false);
        return at;
    case '{':
        return costs_braces(costs, text, at);
    case '[':
        costs_next(costs, 1, false);
        return behind_bracket(text, at) - 1;
    case '\\':
        costs_next(costs, 1, text[at + 1] != '\0' && strchr("bB<>`'", text[at + 1]) != NULL);
        return text[at + 1] != '\0' ? at + 1 : at;
    default:
        costs_next(costs, 1, text[at] == '^' || text[at] == '$');
        return at;
    }
}

static bool check_costs(const char *text, struct err *err)
{
    struct costs costs = {.groups = {{.empty = true}}};
    for (size_t at = 0; text[at] != '\0'; at++) {
        if (text[at] == '\\' && text[at + 1] >= '1' && text[at + 1] <= '9') {
            return err_field(err, ERR_FIELD, "q", "write it without \\1 to \\9",
                             "q has a back-reference, whose search may take for ever");
        }
        at = costs_take(&costs, text, at);
        if (costs.signs > REPEATED || costs.loops) {
            return err_field(err, ERR_FIELD, "q",
                             "write one of * + ? {N}, behind what has a character at least",
                             "q repeats what is repeated already, or may be nothing");
        }
        if (costs_sum(&costs) > LIMIT_SEARCH_NODES) {
            return err_field(err, ERR_FIELD, "q", "write fewer repetitions {N} and + within one another",
                             "q repeats too much: written out it must have at most %d characters",
                             LIMIT_SEARCH_NODES);
        }
    }
    return true;
}

/* The expression that finds the text itself. */
static char *escaped(const char *text)
{
    struct text out = {0};
    for (; *text != '\0'; text++) {
        text_append_bytes(&out, strchr("\\^$.[]|()*+?{}", *text) != NULL ? "\\" : "",
                          strchr("\\^$.[]|()*+?{}", *text) != NULL);
        text_append_bytes(&out, text, 1);
    }
    return text_take(&out);
}

/* --- patterns ------------------------------------------------------------------------------------------- */

static bool check_text(const char *text, struct err *err)
{
    if (*text == '\0') {
        return err_field(err, ERR_FIELD, "q", "give a text, or errors=1", "q is empty");
    }
    if (strlen(text) > LIMIT_SEARCH_PATTERN) {
        return err_field(err, ERR_FIELD, "q", NULL, "q must have at most %d bytes", LIMIT_SEARCH_PATTERN);
    }
    return strpbrk(text, "\r\n") == NULL ||
           err_field(err, ERR_FIELD, "q", NULL, "q has the end of a line, and lines are searched one by one");
}

struct log_pattern *log_pattern_create(const char *text, bool regex, bool ignore_case, struct err *err)
{
    if (!check_text(text, err) || (regex && !check_costs(text, err))) {
        return NULL;
    }
    struct log_pattern *pattern = xzalloc(sizeof *pattern);
    pattern->plain = !regex && !ignore_case;
    pattern->text = regex || pattern->plain ? xstrdup(text) : escaped(text);
    pattern->length = strlen(pattern->text);
    if (!pattern->plain) {
        pattern->own = (struct expression){.source = pattern->text,
                                           .flags = REG_EXTENDED | (ignore_case ? REG_ICASE : 0) | REG_NOSUB};
        if (!expression_compile(&pattern->own, err)) {
            log_pattern_destroy(pattern);
            return NULL;
        }
    }
    return pattern;
}

struct log_pattern *log_pattern_errors(void)
{
    struct log_pattern *pattern = xzalloc(sizeof *pattern);
    for (size_t i = 0; i < ERROR_ROWS; i++) {
        struct err ignored;
        pattern->errors[i] =
            (struct expression){.source = error_rows[i].expression, .flags = REG_EXTENDED | REG_NOSUB};
        if (error_rows[i].expression != NULL) {
            expression_compile(&pattern->errors[i], &ignored);
        }
    }
    return pattern;
}

void log_pattern_destroy(struct log_pattern *pattern)
{
    if (pattern == NULL) {
        return;
    }
    expression_finish(&pattern->own);
    for (size_t i = 0; i < ERROR_ROWS; i++) {
        expression_finish(&pattern->errors[i]);
    }
    free(pattern->text);
    free(pattern);
}

static bool finds_error(struct log_pattern *pattern, const char *line, size_t length)
{
    for (size_t i = 0; i < ERROR_ROWS; i++) {
        const struct error_row *row = &error_rows[i];
        if (memmem(line, length, row->word, strlen(row->word)) != NULL &&
            (row->expression == NULL || expression_finds(&pattern->errors[i], line, length))) {
            return true;
        }
    }
    return false;
}

bool log_pattern_finds(struct log_pattern *pattern, const char *line, size_t length)
{
    if (pattern->text == NULL) {
        return finds_error(pattern, line, length);
    }
    return pattern->plain ? memmem(line, length, pattern->text, pattern->length) != NULL
                          : expression_finds(&pattern->own, line, length);
}
