/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the choice of the files of a folder. It promises that .git and what the folder's own .gitignore names
 * stay here, and that nothing is left out in silence. Of .gitignore the plain patterns of the topmost file
 * are understood; negation and the files of deeper folders are not. */
#include "client/cli/codesource.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define LIMIT_IGNORE_BYTES (64 * KIB)
#define LIMIT_DEPTH        16

struct walk {
    const char *folder; /* of the job file */
    const char *root;   /* as it was written, from there */
    const char *field;
    char *ignore; /* of .gitignore; NULL: there is none */
    json_t *files;
    struct notes *notes;
    struct err *err;
};

/* --- .gitignore --- */

/* Does one line name the file? path is from the root, name its last part. */
static bool line_names(char *line, const char *path, const char *name, bool is_folder)
{
    size_t length = strlen(line);
    if (length > 0 && line[length - 1] == '/') {
        if (!is_folder) {
            return false;
        }
        line[length - 1] = '\0';
    }
    if (strchr(line, '/') == NULL) {
        return fnmatch(line, name, 0) == 0;
    }
    return fnmatch(line + (line[0] == '/'), path, FNM_PATHNAME) == 0;
}

static bool is_ignored(const struct walk *walk, const char *path, const char *name, bool is_folder)
{
    autofree char *copy = xstrdup(walk->ignore != NULL ? walk->ignore : "");
    char *rest = copy;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        line[strcspn(line, "\r")] = '\0';
        bool counts = line[0] != '\0' && line[0] != '#' && line[0] != '!';
        if (counts && line_names(line, path, name, is_folder)) {
            return true;
        }
    }
    return strcmp(path, ".git") == 0;
}

static bool read_ignore(struct walk *walk)
{
    autofree char *path = xprintf("%s/%s/.gitignore", walk->folder, walk->root);
    struct stat status;
    if (stat(path, &status) != 0) {
        return true;
    }
    if (!file_read(path, LIMIT_IGNORE_BYTES, &walk->ignore, NULL, walk->err)) {
        return false;
    }
    if (walk->ignore[0] == '!' || strstr(walk->ignore, "\n!") != NULL) {
        notes_add(walk->notes, "%s: the lines of .gitignore that begin with ! are left out", walk->field);
    }
    return true;
}

/* --- the walk --- */

static bool add_file(struct walk *walk, const char *path)
{
    if (json_array_size(walk->files) >= LIMIT_FILES) {
        return err_field(walk->err, ERR_USAGE, walk->field,
                         "name what is not needed in .gitignore, or put the code where the nodes find it",
                         "%s has more than %d files", walk->field, LIMIT_FILES);
    }
    autofree char *source = xprintf("%s/%s", walk->root, path);
    json_t *entry = json_pack("{s:s,s:s}", "path", path, "source", source);
    if (entry == NULL) {
        return err_field(walk->err, ERR_USAGE, walk->field, NULL, "%s: a name in it is not UTF-8",
                         walk->field);
    }
    json_array_append_new(walk->files, entry);
    return true;
}

static bool walk_folder(struct walk *walk, const char *inside, int depth);

static bool visit(struct walk *walk, const char *inside, const char *name, int depth)
{
    autofree char *path = xprintf("%s%s%s", inside, inside[0] != '\0' ? "/" : "", name);
    autofree char *local = xprintf("%s/%s/%s", walk->folder, walk->root, path);
    struct stat status;
    if (lstat(local, &status) != 0) {
        err_errno(walk->err, "cannot read %s", local);
        return false;
    }
    if (is_ignored(walk, path, name, S_ISDIR(status.st_mode))) {
        return true;
    }
    if (S_ISDIR(status.st_mode)) {
        return walk_folder(walk, path, depth + 1);
    }
    if (!S_ISREG(status.st_mode)) {
        notes_add(walk->notes, "%s: %s is no regular file and is left out", walk->field, path);
        return true;
    }
    return add_file(walk, path);
}

static bool walk_folder(struct walk *walk, const char *inside, int depth)
{
    autofree char *path = xprintf("%s/%s/%s", walk->folder, walk->root, inside);
    struct dirent **entries;
    int count = depth > LIMIT_DEPTH ? -1 : scandir(path, &entries, NULL, alphasort);
    if (count < 0) {
        errno = depth > LIMIT_DEPTH ? ELOOP : errno;
        return err_errno(walk->err, "cannot read %s", path);
    }
    bool good = true;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        good =
            good && (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || visit(walk, inside, name, depth));
        free(entries[i]);
    }
    free(entries);
    return good;
}

/* root_path of the new form, or of the old one with its snapshot; NULL with the error. */
static const char *root_of(const char *field, const json_t *value, struct err *err)
{
    const json_t *snapshot = json_object_get(value, "snapshot");
    const json_t *holder = snapshot != NULL ? snapshot : value;
    const char *name;
    json_t *member;
    json_object_foreach ((json_t *)(uintptr_t)holder, name, member) {
        bool known = strcmp(name, "root_path") == 0 || (snapshot == NULL && strcmp(name, "type") == 0);
        if (!known) {
            autofree char *path = xprintf("%s.%s%s", field, snapshot != NULL ? "snapshot." : "", name);
            err_field(err, ERR_USAGE, path, "check the code out, and name its folder as root_path",
                      "%s is not supported", path);
            return NULL;
        }
    }
    const char *root = json_string_value(json_object_get(holder, "root_path"));
    if (root == NULL || root[0] == '\0' || root[0] == '/') {
        err_field(err, ERR_USAGE, field, NULL, "%s.root_path must name a folder, from the job file's own",
                  field);
        return NULL;
    }
    return root;
}

bool codesource_take(const char *folder, const char *field, const json_t *value, json_t *spec,
                     struct notes *notes, struct err *err)
{
    struct walk walk = {.folder = folder, .field = field, .notes = notes, .err = err};
    walk.root = root_of(field, value, err);
    if (walk.root == NULL) {
        return false;
    }
    walk.files = json_object_get(spec, "files");
    if (walk.files == NULL) {
        walk.files = json_array();
        json_object_set_new(spec, "files", walk.files);
    }
    bool good = read_ignore(&walk) && walk_folder(&walk, "", 0);
    free(walk.ignore);
    if (!good && err->field[0] == '\0') {
        struct err inner = *err;
        err_field(err, inner.code, field, inner.hint, "%s: %s", field, inner.text);
    }
    return good;
}
