/* SPDX-License-Identifier: Apache-2.0 */
/* Matches paths with .gitignore files: negation, anchoring, folders only, "**". The last line that matches
 * decides. Of several files that of the nearest folder decides, and in one folder .gpuctlignore before
 * .gitignore. A match takes time in proportion to pattern and path; libc's fnmatch matches single names. */
#include "client/cli/bundle/ignore.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"

/* One line, cut at its slashes. */
struct rule {
    char **parts; /* borrowed from the text */
    size_t count;
    bool negated, folders_only;
    bool anchored; /* it matches paths from the file's folder, not names at any depth */
};

struct ignore {
    char *text;
    struct rule *rules;
    size_t count;
};

/* --- lines --- */

/* Removes spaces at the end, except for one behind a backslash. */
static void trim(char *line)
{
    char *end = line;
    for (char *at = line; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0') {
            at++;
            end = at + 1;
        } else if (*at != ' ') {
            end = at + 1;
        }
    }
    *end = '\0';
}

static void cut(struct rule *rule, char *pattern)
{
    char *rest = pattern;
    for (char *part; (part = strsep(&rest, "/")) != NULL;) {
        if (part[0] != '\0') {
            rule->parts = xrealloc(rule->parts, (rule->count + 1) * sizeof rule->parts[0]);
            rule->parts[rule->count++] = part;
        }
    }
}

static void add_line(struct ignore *ignore, char *line)
{
    struct rule rule = {0};
    trim(line);
    if (line[0] == '#') {
        return;
    }
    if (line[0] == '!') {
        rule.negated = true;
        line++;
    }
    size_t length = strlen(line);
    if (length > 0 && line[length - 1] == '/') {
        rule.folders_only = true;
        line[--length] = '\0';
    }
    rule.anchored = strchr(line, '/') != NULL;
    cut(&rule, line);
    if (rule.count > 0) {
        ignore->rules = xrealloc(ignore->rules, (ignore->count + 1) * sizeof ignore->rules[0]);
        ignore->rules[ignore->count++] = rule;
    }
}

struct ignore *ignore_parse(const char *text)
{
    struct ignore *ignore = xzalloc(sizeof *ignore);
    ignore->text = xstrdup(strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text);
    char *rest = ignore->text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        size_t length = strlen(line);
        if (length > 0 && line[length - 1] == '\r') {
            line[length - 1] = '\0';
        }
        add_line(ignore, line);
    }
    return ignore;
}

void ignore_destroy(struct ignore *ignore)
{
    if (ignore == NULL) {
        return;
    }
    for (size_t i = 0; i < ignore->count; i++) {
        free(ignore->rules[i].parts);
    }
    free(ignore->rules);
    free(ignore->text);
    free(ignore);
}

/* --- paths --- */

struct path {
    char *text;
    char **parts;
    size_t count;
};

static struct path split(const char *text)
{
    struct path path = {.text = xstrdup(text)};
    char *rest = path.text;
    for (char *part; (part = strsep(&rest, "/")) != NULL;) {
        path.parts = xrealloc(path.parts, (path.count + 1) * sizeof path.parts[0]);
        path.parts[path.count++] = part;
    }
    return path;
}

/* After a mismatch only the last "**" is tried again, for one more part of the path. An earlier one need not
 * be: the last one can stand for any of the same parts. */
static bool matches_path(const struct rule *rule, const struct path *path)
{
    size_t part = 0, at = 0, part_again = 0, at_again = 0;
    while (at < path->count) {
        if (part < rule->count && strcmp(rule->parts[part], "**") == 0) {
            part_again = ++part;
            at_again = at;
            if (part == rule->count) { /* at the end it matches everything inside */
                return true;
            }
        } else if (part < rule->count && fnmatch(rule->parts[part], path->parts[at], 0) == 0) {
            part++;
            at++;
        } else if (part_again > 0) {
            part = part_again;
            at = ++at_again;
        } else {
            return false;
        }
    }
    return part == rule->count;
}

static bool matches(const struct rule *rule, const struct path *path, bool is_folder)
{
    if (rule->folders_only && !is_folder) {
        return false;
    }
    return rule->anchored ? matches_path(rule, path)
                          : fnmatch(rule->parts[0], path->parts[path->count - 1], 0) == 0;
}

enum ignore_verdict ignore_ask(const struct ignore *ignore, const char *path, bool is_folder)
{
    enum ignore_verdict verdict = IGNORE_NOTHING;
    struct path asked = split(path);
    for (size_t i = ignore->count; i > 0 && verdict == IGNORE_NOTHING; i--) {
        const struct rule *rule = &ignore->rules[i - 1];
        if (matches(rule, &asked, is_folder)) {
            verdict = rule->negated ? IGNORE_TAKE : IGNORE_LEAVE_OUT;
        }
    }
    free(asked.parts);
    free(asked.text);
    return verdict;
}

/* --- one folder --- */

static bool append_file(const char *folder, const char *name, struct text *out, struct err *err)
{
    autofree char *path = xprintf("%s/%s", folder, name);
    autofree char *text = NULL;
    if (access(path, R_OK) != 0) {
        return true;
    }
    if (!file_read(path, CLIENT_IGNORE_BYTES, &text, NULL, err)) {
        return false;
    }
    text_printf(out, "%s\n", strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text);
    return true;
}

bool rules_read(const char *folder, const char *path, const struct rules *above, struct rules *ret_rules,
                struct err *err)
{
    autotext struct text text = {0};
    if (!append_file(folder, ".gitignore", &text, err) || !append_file(folder, ".gpuctlignore", &text, err)) {
        return false;
    }
    *ret_rules = (struct rules){.above = above,
                                .skip = path[0] != '\0' ? strlen(path) + 1 : 0,
                                .ignore = text.length > 0 ? ignore_parse(text.bytes) : NULL};
    return true;
}

void rules_finish(struct rules *rules)
{
    ignore_destroy(rules->ignore);
    *rules = (struct rules){0};
}

bool rules_leave_out(const struct rules *rules, const char *path, bool is_folder)
{
    for (; rules != NULL; rules = rules->above) {
        enum ignore_verdict verdict =
            rules->ignore != NULL ? ignore_ask(rules->ignore, path + rules->skip, is_folder) : IGNORE_NOTHING;
        if (verdict != IGNORE_NOTHING) {
            return verdict == IGNORE_LEAVE_OUT;
        }
    }
    return false;
}

size_t rules_top_of(const char *root)
{
    for (size_t length = strlen(root); length > 0; length--) {
        autofree char *mark = xprintf("%.*s/.git", (int)length, root);
        if ((root[length] == '\0' || root[length] == '/') && access(mark, F_OK) == 0) {
            return length;
        }
    }
    return 0;
}
