/* SPDX-License-Identifier: Apache-2.0 */
/* Owns contexts/NAME/config in the folder of the user's configuration, and the lines of the file "config"
 * that name a controller. A change of context writes that file alone, at once: no program ever sees the URL
 * of one controller with the token of another. */
#include "client/cli/login/saved_context.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/settings/settings.h"
#include "proto/base/text/text.h"

#define CONFIG_BYTES (64 * 1024)
#define NAME_BYTES   64

void saved_context_finish(struct saved_context *context)
{
    free(context->name);
    free(context->url);
    free(context->token_file);
    free(context->cacert);
    *context = (struct saved_context){.name = NULL};
}

bool saved_context_check(const char *name, struct err *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    size_t length = strlen(name);
    bool word = strcmp(name, "list") == 0 || strcmp(name, "add") == 0 || strcmp(name, "remove") == 0;
    if (!word && length > 0 && length <= NAME_BYTES && name[0] != '.' && name[0] != '-' &&
        strspn(name, plain) == length) {
        return true;
    }
    return err_field(err, ERR_USAGE, "context", "take up to 64 letters, digits, \"-\", \"_\" and \".\"",
                     "\"%.80s\" cannot be the name of a context", name);
}

/* --- places --------------------------------------------------------------------------------------------- */

static char *contexts_folder(void)
{
    autofree char *folder = settings_user_directory();
    return xprintf("%s/contexts", folder);
}

static char *place_of(const char *name)
{
    autofree char *contexts = contexts_folder();
    return xprintf("%s/%s", contexts, name);
}

char *saved_context_folder(const char *name)
{
    return strcmp(name, SAVED_CONTEXT_DEFAULT) == 0 ? settings_user_directory() : place_of(name);
}

static char *used_file(void)
{
    autofree char *folder = settings_user_directory();
    return xprintf("%s/" SETTINGS_CLIENT, folder);
}

/* --- lines ---------------------------------------------------------------------------------------------- */

/* Where the value begins of a line that sets the name, as in "  Token_File = x"; 0: it sets another one. */
static size_t value_at(const char *line, size_t length, const char *name)
{
    size_t at = strspn(line, " \t"), i = 0;
    for (; name[i] != '\0' && at + i < length; i++) {
        char c = line[at + i];
        c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if (c != name[i]) {
            return 0;
        }
    }
    size_t rest = at + i + strspn(line + at + i, " \t");
    bool sets = name[i] == '\0' && rest < length && (line[rest] == '=' || line[rest] == ':');
    return sets ? rest + 1 + strspn(line + rest + 1, " \t") : 0;
}

static void take_text(char **text, const char *value, size_t length)
{
    while (length > 0 && strchr(" \t\r", value[length - 1]) != NULL) {
        length--;
    }
    free(*text);
    *text = length > 0 ? xstrndup(value, length) : NULL;
}

/* Is the line about which controller? What it says goes into the context. */
static bool take_line(const char *line, size_t length, struct saved_context *context)
{
    autofree char *plain = NULL;
    const struct {
        const char *name;
        char **text;
    } known[] = {{"url", &context->url},
                 {"token-file", &context->token_file},
                 {"cacert", &context->cacert},
                 {"ca-file", &context->cacert},
                 {"insecure-plain-http", &plain}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t at = value_at(line, length, known[i].name);
        if (at > 0) {
            take_text(known[i].text, line + at, at < length ? length - at : 0);
            context->plain_allowed |=
                plain != NULL && strchr("tTyY1oO", plain[0]) != NULL && strcasecmp(plain, "off") != 0;
            return true;
        }
    }
    return false;
}

/* Reads a file of settings; the lines about other things are appended to others. A file that is not there has
 * none. */
static bool read_lines(const char *path, struct saved_context *ret_context, struct text *others,
                       struct err *err)
{
    autofree char *before = NULL;
    *ret_context = (struct saved_context){.name = NULL};
    if (access(path, F_OK) != 0) {
        return true;
    }
    if (!file_read(path, CONFIG_BYTES, &before, NULL, err)) {
        return false;
    }
    for (const char *line = before; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if (!take_line(line, length, ret_context)) {
            text_printf(others, "%.*s\n", (int)length, line);
        }
        line += length + (line[length] == '\n');
    }
    return true;
}

static void append_lines(const struct saved_context *context, struct text *out)
{
    text_printf(out, "url = %s\n", context->url);
    if (context->token_file != NULL) {
        text_printf(out, "token-file = %s\n", context->token_file);
    }
    if (context->cacert != NULL) {
        text_printf(out, "cacert = %s\n", context->cacert);
    }
    if (context->plain_allowed) {
        text_append(out, "insecure-plain-http = true\n");
    }
}

/* false: it does not name a controller. */
static bool read_context(const char *path, struct saved_context *ret_context)
{
    autotext struct text others = {0};
    struct err unused;
    bool named = read_lines(path, ret_context, &others, &unused) && ret_context->url != NULL;
    if (!named) {
        saved_context_finish(ret_context);
    }
    return named;
}

/* --- those that are saved ------------------------------------------------------------------------------- */

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

void saved_context_list(struct file_names *ret_names)
{
    autofree char *folder = contexts_folder();
    struct err unused;
    *ret_names = (struct file_names){NULL, 0};
    if (access(folder, F_OK) == 0 && file_list(folder, ret_names, &unused) && ret_names->count > 0) {
        qsort(ret_names->items, ret_names->count, sizeof ret_names->items[0], by_name);
    }
}

bool saved_context_read(const char *name, struct saved_context *ret_context)
{
    autofree char *place = place_of(name);
    autofree char *path = xprintf("%s/" SETTINGS_CLIENT, place);
    struct err unused;
    if (!saved_context_check(name, &unused) || !read_context(path, ret_context)) {
        return false;
    }
    ret_context->name = xstrdup(name);
    return true;
}

bool saved_context_find(const char *name, struct saved_context *ret_context, struct err *err)
{
    autonames struct file_names names = {NULL, 0};
    autotext struct text known = {0};
    if (saved_context_read(name, ret_context)) {
        return true;
    }
    saved_context_list(&names);
    for (size_t i = 0; i < names.count; i++) {
        text_printf(&known, "%s%s", i > 0 ? ", " : "", names.items[i]);
    }
    err_field(err, ERR_NOT_FOUND, "context", NULL, "there is no context \"%.80s\"", name);
    return known.length > 0
               ? err_hint(err, "there are %s", known.bytes)
               : err_hint(err, "make one: gpuctl login URL --context NAME, or gpuctl context add NAME URL");
}

bool saved_context_write(const struct saved_context *context, struct err *err)
{
    autofree char *place = place_of(context->name);
    autofree char *path = xprintf("%s/" SETTINGS_CLIENT, place);
    autotext struct text text = {0};
    append_lines(context, &text);
    return file_make_directories(place, 0700, err) && file_replace(path, text.bytes, text.length, 0600, err);
}

bool saved_context_remove(const char *name, struct err *err)
{
    autofree char *place = place_of(name);
    return file_remove_tree(place, err);
}

/* --- the one that is used ------------------------------------------------------------------------------- */

static bool is_same(const char *left, const char *right)
{
    return left == NULL || right == NULL ? left == right : strcmp(left, right) == 0;
}

static void find_name(struct saved_context *used)
{
    autonames struct file_names names;
    saved_context_list(&names);
    for (size_t i = 0; i < names.count && used->name == NULL; i++) {
        autosaved_context struct saved_context saved = {.name = NULL};
        if (saved_context_read(names.items[i], &saved) && is_same(saved.url, used->url) &&
            is_same(saved.token_file, used->token_file) && is_same(saved.cacert, used->cacert)) {
            used->name = xstrdup(saved.name);
        }
    }
}

bool saved_context_used(struct saved_context *ret_context)
{
    autofree char *path = used_file();
    bool named = read_context(path, ret_context);
    if (named) {
        find_name(ret_context);
    }
    return named;
}

bool saved_context_use(const struct saved_context *context, struct err *err)
{
    autofree char *path = used_file();
    autosaved_context struct saved_context before = {.name = NULL};
    autotext struct text text = {0};
    if (!read_lines(path, &before, &text, err)) {
        return false;
    }
    if (context != NULL) {
        append_lines(context, &text);
    }
    return file_replace(path, text.length > 0 ? text.bytes : "", text.length, 0600, err);
}

bool saved_context_keep_used(struct err *err)
{
    autosaved_context struct saved_context used = {.name = NULL}, other = {.name = NULL};
    if (!saved_context_used(&used) || used.name != NULL) {
        return true;
    }
    if (saved_context_read(SAVED_CONTEXT_DEFAULT, &other)) {
        err_set(err, ERR_CONFLICT, "the controller in use, %.200s, has no name and would be forgotten",
                used.url);
        return err_hint(err, "name it first: gpuctl context add NAME %.200s --token-file %.200s", used.url,
                        used.token_file != NULL ? used.token_file : "FILE");
    }
    used.name = xstrdup(SAVED_CONTEXT_DEFAULT);
    return saved_context_write(&used, err);
}
