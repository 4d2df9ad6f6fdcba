/* SPDX-License-Identifier: Apache-2.0 */
/* Reads requirements files of pip for nodes, which have no file of this machine. Files that are included
 * become part of the lines. Lines that need another local file or folder are refused by a table. pip judges
 * the rest. */
#include "client/cli/spec/requirements.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"

/* Lines that no node can install, as POSIX extended expressions. */
static const struct rule {
    const char *pattern;
    const char *what, *hint;
    const char *url_hint; /* for lines with a URL; NULL: these are accepted */
} rules[] = {
    {"^(-e|--editable([= \t]|$))", "is an editable installation, which nodes cannot have",
     "send its folder with --bundle DIR and --python-path, or name the package and its version",
     "write NAME @ URL, without -e"},
    {"^(-c|--constraint([= \t]|$))", "names a file of this machine",
     "write the versions into the requirements themselves", NULL},
    {"^(-f|-i|--(find-links|index-url|extra-index-url)([= \t]|$))", "names a folder of this machine",
     "name an index that the nodes reach by https", NULL},
    {"^([./]|[^-/:][^/:]*@|[^- \t;][^ \t;]*(/|\\.(whl|zip|tgz|tar(\\.(gz|bz2|xz))?)([ \t;]|$)))",
     "is a file or folder of this machine",
     "name a package and its version, or a URL that the nodes reach; send code with --bundle DIR and "
     "--python-path",
     NULL},
};

#define RULES (sizeof rules / sizeof rules[0])

struct reading {
    json_t *lines;
    size_t bytes;
    const char *field;
    struct err *err;
    regex_t compiled[RULES];
};

/* The place of a line. */
struct place {
    const char *folder; /* from which other files are named */
    const char *file;   /* NULL: the line was given by hand */
    size_t line;
    int depth;
};

static bool read_file(struct reading *reading, const char *path, int depth);

static bool refuse(struct reading *reading, const struct place *at, const char *hint, const char *line,
                   const char *what)
{
    autofree char *place = at->file != NULL ? xprintf("%s:%zu", at->file, at->line) : xstrdup(reading->field);
    return err_field(reading->err, ERR_USAGE, reading->field, hint, "%s: \"%.100s\" %s", place, line, what);
}

/* --- kinds of lines --- */

/* Whether a line has an address that a node can use, so not that of a file. */
static bool has_url(const char *line)
{
    const char *scheme = strstr(line, "://");
    return scheme != NULL && (scheme - line < 4 || strncmp(scheme - 4, "file", 4) != 0);
}

/* Returns the file of "-r FILE", "-rFILE", "--requirement FILE" or "--requirement=FILE"; NULL for other
 * lines. */
static const char *included_by(const char *line)
{
    static const char name[] = "--requirement";
    size_t length = strncmp(line, "-r", 2) == 0 ? 2 : 0;
    if (strncmp(line, name, strlen(name)) == 0 && strchr("= \t", line[strlen(name)]) != NULL) {
        length = strlen(name);
    }
    return length > 0 && !has_url(line) ? line + length + strspn(line + length, "= \t") : NULL;
}

static bool check(struct reading *reading, const struct place *at, const char *line)
{
    bool url = has_url(line);
    for (size_t i = 0; i < RULES; i++) {
        const char *hint = url ? rules[i].url_hint : rules[i].hint;
        if (hint != NULL && regexec(&reading->compiled[i], line, 0, NULL, 0) == 0) {
            return refuse(reading, at, hint, line, rules[i].what);
        }
    }
    return true;
}

/* --- lines --- */

static bool include(struct reading *reading, const struct place *at, const char *line, const char *name)
{
    if (name[0] == '\0') {
        return refuse(reading, at, "write -r FILE", line, "names no file");
    }
    if (at->depth >= CLIENT_REQUIREMENTS_DEPTH) {
        return refuse(reading, at, "does a file include itself?", line, "is one inclusion too many");
    }
    bool whole = name[0] == '/' || strcmp(at->folder, ".") == 0;
    autofree char *path = whole ? xstrdup(name) : xprintf("%s/%s", at->folder, name);
    return read_file(reading, path, at->depth + 1);
}

static bool keep(struct reading *reading, const struct place *at, const char *line)
{
    json_t *text = json_string(line);
    reading->bytes += strlen(line) + 1;
    if (text == NULL) {
        return refuse(reading, at, "save the file as UTF-8", "...", "is not UTF-8");
    }
    json_array_append_new(reading->lines, text);
    return reading->bytes <= CLIENT_REQUIREMENTS_BYTES ||
           err_field(reading->err, ERR_TOO_LARGE, reading->field, NULL,
                     "the requirements are larger than %lld bytes", (long long)CLIENT_REQUIREMENTS_BYTES);
}

/* A comment begins at the line's start or after a space. */
static void cut_comment(char *line)
{
    for (char *at = line; (at = strchr(at, '#')) != NULL; at++) {
        if (at == line || at[-1] == ' ' || at[-1] == '\t') {
            *at = '\0';
            break;
        }
    }
    size_t length = strlen(line);
    while (length > 0 && strchr(" \t\r\f\v", line[length - 1]) != NULL) {
        length--;
    }
    line[length] = '\0';
}

/* Takes one whole line, which it may change. */
static bool take_line(struct reading *reading, const struct place *at, char *line)
{
    cut_comment(line);
    line += strspn(line, " \t");
    const char *file = included_by(line);
    if (line[0] == '\0') {
        return true;
    }
    return file != NULL ? include(reading, at, line, file)
                        : check(reading, at, line) && keep(reading, at, line);
}

/* --- texts --- */

static bool is_comment(const char *line)
{
    return line[strspn(line, " \t")] == '#';
}

/* A backslash at the end joins a line with the next. */
static bool take_text(struct reading *reading, struct place *at, char *text)
{
    autotext struct text whole = {0};
    char *rest = text;
    size_t line_number = 0;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        size_t length = strlen(line);
        line_number++;
        at->line = whole.length == 0 ? line_number : at->line;
        if (length > 0 && line[length - 1] == '\r') {
            line[--length] = '\0';
        }
        bool goes_on = length > 0 && line[length - 1] == '\\' && !is_comment(line) && rest != NULL;
        if (is_comment(line)) {
            text_append(&whole, " "); /* so that it is still a comment in the joined line */
        }
        text_append_bytes(&whole, line, goes_on ? length - 1 : length);
        if (goes_on) {
            continue;
        }
        if (!take_line(reading, at, whole.bytes)) {
            return false;
        }
        text_clear(&whole);
    }
    return true;
}

static bool fail_at(struct reading *reading)
{
    struct err inner = *reading->err;
    return err_field(reading->err, inner.code, reading->field, inner.hint, "%s", inner.text);
}

static bool read_file(struct reading *reading, const char *path, int depth)
{
    autofree char *text = NULL;
    autofree char *folder = file_folder_of(path);
    struct place at = {.folder = folder, .file = path, .depth = depth};
    size_t length, dot = strlen(path);
    if (dot > 5 && strcmp(path + dot - 5, ".toml") == 0) {
        return err_field(reading->err, ERR_USAGE, reading->field,
                         "make one with `pip-compile`, `uv export --format requirements-txt` or `pip freeze`",
                         "%s is no requirements file of pip", path);
    }
    if (!file_read(path, CLIENT_REQUIREMENTS_BYTES, &text, &length, reading->err)) {
        return fail_at(reading);
    }
    if (memchr(text, '\0', length) != NULL) {
        return err_field(reading->err, ERR_USAGE, reading->field, "save it as UTF-8", "%s is not UTF-8",
                         path);
    }
    return take_text(reading, &at, strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text);
}

/* --- readings --- */

static void begin(struct reading *reading)
{
    reading->lines = json_array();
    for (size_t i = 0; i < RULES; i++) {
        if (regcomp(&reading->compiled[i], rules[i].pattern, REG_EXTENDED | REG_NOSUB) != 0) {
            abort();
        }
    }
}

/* Returns the lines, or NULL after an error. */
static json_t *end(struct reading *reading, bool good)
{
    for (size_t i = 0; i < RULES; i++) {
        regfree(&reading->compiled[i]);
    }
    if (!good) {
        json_decref(reading->lines);
    }
    return good ? reading->lines : NULL;
}

json_t *requirements_read(const char *path, const char *field, struct err *err)
{
    struct reading reading = {.field = field, .err = err};
    begin(&reading);
    return end(&reading, read_file(&reading, path, 0));
}

json_t *requirements_take(const char *folder, const json_t *given, const char *field, struct err *err)
{
    struct reading reading = {.err = err};
    struct place at = {.folder = folder};
    bool good = true;
    begin(&reading);
    for (size_t i = 0; good && i < json_array_size(given); i++) {
        autofree char *path = xprintf("%s[%zu]", field, i);
        const char *text = json_string_value(json_array_get(given, i));
        bool is_line = text != NULL && strpbrk(text, "\r\n") == NULL;
        autofree char *line = xstrdup(is_line ? text : "");
        reading.field = path;
        good = is_line ? take_line(&reading, &at, line)
                       : err_field(err, ERR_USAGE, path, "one line of a requirements file each",
                                   "%s must be a text of one line", path);
    }
    return end(&reading, good);
}
