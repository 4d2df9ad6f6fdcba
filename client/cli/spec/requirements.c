/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what becomes of a requirements file before it travels. It promises that no line names a file of this
 * machine: files that are included are written out, packages of local folders and archives are refused. What
 * pip makes of the rest is pip's. */
#include "client/cli/spec/requirements.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/json.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define BUNDLE_HINT "send its folder with --bundle DIR and --python-path, or name the package and its version"
#define WHEEL_HINT                                                                                           \
    "name a package and its version, or a URL that the nodes reach; send code with --bundle DIR and "        \
    "--python-path"

struct reading {
    json_t *lines;
    size_t bytes;
    const char *field;
    struct err *err;
};

/* Where one line stands. */
struct place {
    const char *folder; /* that other files are named from */
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

/* --- what a line is about --- */

/* One option of pip with a value: "-r FILE", "-rFILE", "--requirement FILE", "--requirement=FILE". NULL: the
 * line is another. */
static const char *value_of(const char *line, const char *letter, const char *name)
{
    size_t length = strlen(name);
    const char *value = NULL;
    if (strncmp(line, name, length) == 0 && strchr("= \t", line[length]) != NULL) {
        value = line + length;
    } else if (letter[0] != '\0' && strncmp(line, letter, 2) == 0 && line[1] != '-') {
        value = line + 2;
    }
    return value != NULL ? value + strspn(value, "= \t") : NULL;
}

static bool is_url(const char *text)
{
    return strstr(text, "://") != NULL && strncmp(text, "file:", 5) != 0 && strstr(text, "+file:") == NULL;
}

static bool is_archive(const char *word, size_t length)
{
    static const char *const ends[] = {".whl", ".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t end = strlen(ends[i]);
        if (length > end && strncmp(word + length - end, ends[i], end) == 0) {
            return true;
        }
    }
    return false;
}

/* Where a package comes from: behind the @ of "NAME @ URL", else the line itself. */
static const char *source_of(const char *line)
{
    const char *at = strchr(line, '@'), *scheme = strstr(line, "://");
    bool named = at != NULL && (scheme == NULL || at < scheme);
    return named ? at + 1 + strspn(at + 1, " \t") : line;
}

/* A package by its path or a file: URL. */
static bool is_local(const char *line)
{
    const char *source = source_of(line);
    size_t word = strcspn(source, " \t;");
    if (is_url(source)) {
        return false;
    }
    return source != line || source[0] == '.' || memchr(source, '/', word) != NULL ||
           is_archive(source, word);
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

static bool take_option(struct reading *reading, const struct place *at, const char *line, bool *ret_taken)
{
    const char *file = value_of(line, "-r", "--requirement");
    const char *constraint = value_of(line, "-c", "--constraint");
    const char *links = value_of(line, "-f", "--find-links");
    const char *index = value_of(line, "-i", "--index-url");
    const char *extra = value_of(line, "", "--extra-index-url");
    *ret_taken = true;
    if (value_of(line, "-e", "--editable") != NULL) {
        bool remote = is_url(line);
        return refuse(reading, at, remote ? "write NAME @ URL, without -e" : BUNDLE_HINT, line,
                      "is an editable installation, which nodes cannot have");
    }
    if (file != NULL && !is_url(file)) {
        return include(reading, at, line, file);
    }
    if (constraint != NULL && !is_url(constraint)) {
        return refuse(reading, at, "write the versions into the requirements themselves", line,
                      "names a file of this machine");
    }
    if ((links != NULL && !is_url(links)) || (index != NULL && !is_url(index)) ||
        (extra != NULL && !is_url(extra))) {
        return refuse(reading, at, "name an index that the nodes reach by https", line,
                      "names a folder of this machine");
    }
    *ret_taken = false;
    return true;
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

/* One whole line, which may be changed. */
static bool take_line(struct reading *reading, const struct place *at, char *line)
{
    cut_comment(line);
    line += strspn(line, " \t");
    bool taken = false;
    if (line[0] == '\0') {
        return true;
    }
    if (line[0] == '-') {
        return take_option(reading, at, line, &taken) && (taken || keep(reading, at, line));
    }
    if (is_local(line)) {
        return refuse(reading, at, WHEEL_HINT, line, "is a file or folder of this machine");
    }
    return keep(reading, at, line);
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
            text_append(&whole, " "); /* so that it stays a comment where it is joined to */
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

json_t *requirements_read(const char *path, const char *field, struct err *err)
{
    autojson json_t *lines = json_array();
    struct reading reading = {.lines = lines, .field = field, .err = err};
    return read_file(&reading, path, 0) ? give(lines) : NULL;
}

json_t *requirements_take(const char *folder, const json_t *given, const char *field, struct err *err)
{
    autojson json_t *lines = json_array();
    for (size_t i = 0; i < json_array_size(given); i++) {
        autofree char *path = xprintf("%s[%zu]", field, i);
        const char *text = json_string_value(json_array_get(given, i));
        struct reading reading = {.lines = lines, .field = path, .err = err};
        struct place at = {.folder = folder};
        if (text == NULL || strpbrk(text, "\r\n") != NULL) {
            err_field(err, ERR_USAGE, path, "one line of a requirements file each",
                      "%s must be a text of one line", path);
            return NULL;
        }
        autofree char *line = xstrdup(text);
        if (!take_line(&reading, &at, line)) {
            return NULL;
        }
    }
    return give(lines);
}
