/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the files of a folder. No link is followed, and none that leads outside is taken. For a folder that
 * is too large the error names the largest entries. ignore.c matches the patterns, tar.c reads the files. */
#include "client/cli/bundle/tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/show/print.h"
#include "client/cli/bundle/ignore.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_client.h"

#define LARGEST 3  /* entries that an error names */
#define NOTED   10 /* left out entries that get a note each */

/* One entry of the root, with everything in it. */
struct tally {
    char *name;
    int64_t bytes;
    size_t files;
    int64_t share; /* its part of the sum that is too large */
};

struct walk {
    const char *root;   /* a real path */
    const char *prefix; /* the root's path from the topmost folder with rules; "" for that itself */
    struct ignore *never;
    struct tree tree;
    struct tally *tallies;
    size_t tally_count;
    size_t left_out; /* entries that a person may miss */
    struct notes *notes;
    struct err *err;
};

static bool walk_folder(struct walk *walk, const char *inside, const struct rules *above, int depth);

/* --- what is left out --- */

/* Entries that tools keep beside code, or that are of this machine. */
static const char never[] =
    ".git\n.hg\n.svn\n__pycache__\nnode_modules\n.tox\n.nox\n.mypy_cache\n.pytest_cache\n"
    ".ruff_cache\nmlruns\n.ipynb_checkpoints\n.DS_Store\n*.pyc\n";

static bool never_travels(const struct walk *walk, const char *local, const char *name, bool is_folder)
{
    autofree char *mark = is_folder ? xprintf("%s/pyvenv.cfg", local) : NULL;
    return ignore_ask(walk->never, name, is_folder) == IGNORE_LEAVE_OUT ||
           (mark != NULL && access(mark, F_OK) == 0);
}

static char *from_top(const struct walk *walk, const char *path)
{
    return xprintf("%s%s%s", walk->prefix, walk->prefix[0] != '\0' && path[0] != '\0' ? "/" : "", path);
}

static bool is_left_out(const struct walk *walk, const struct rules *rules, const char *path, bool is_folder)
{
    autofree char *whole = from_top(walk, path);
    return rules_leave_out(rules, whole, is_folder);
}

static size_t depth_of(const char *path)
{
    size_t depth = 0;
    for (const char *at = path; (at = strchr(at, '/')) != NULL; at++) {
        depth++;
    }
    return depth;
}

/* Whether a link's target lies in the root, judged by names alone. */
static bool leads_inside(const char *path, const char *target)
{
    long depth = (long)depth_of(path);
    for (const char *part = target; target[0] != '/' && depth >= 0 && *part != '\0';) {
        size_t length = strcspn(part, "/");
        bool up = length == 2 && strncmp(part, "..", 2) == 0;
        bool stays = length == 0 || (length == 1 && part[0] == '.');
        depth += up ? -1 : stays ? 0 : 1;
        part += length + (part[length] == '/');
    }
    return target[0] != '/' && depth >= 0;
}

/* Notes an entry that is left out, and why. */
static bool leave_out(struct walk *walk, const char *format, const char *path, const char *target)
{
    if (walk->left_out++ < NOTED) {
        autofree char *what = xprintf("%s; it is left out", format);
        notes_add(walk->notes, what, path, target);
    }
    return true;
}

/* --- what is taken --- */

static struct tally *tally_of(struct walk *walk, const char *path)
{
    size_t length = strcspn(path, "/");
    struct tally *last = walk->tally_count > 0 ? &walk->tallies[walk->tally_count - 1] : NULL;
    if (last != NULL && strlen(last->name) == length && strncmp(last->name, path, length) == 0) {
        return last;
    }
    walk->tallies = xrealloc(walk->tallies, (walk->tally_count + 1) * sizeof walk->tallies[0]);
    last = &walk->tallies[walk->tally_count++];
    *last = (struct tally){.name = xstrndup(path, length)};
    return last;
}

/* Adds an entry. Beyond the limits it only counts, for the error. */
static void add(struct walk *walk, const char *path, const struct stat *status, const char *target)
{
    struct tree *tree = &walk->tree;
    struct tally *tally = tally_of(walk, path);
    bool is_file = S_ISREG(status->st_mode);
    tree->bytes += is_file ? status->st_size : 0;
    tally->bytes += is_file ? status->st_size : 0;
    tree->files += !S_ISDIR(status->st_mode);
    tally->files += !S_ISDIR(status->st_mode);
    if (tree->files > CLIENT_BUNDLE_FILES) {
        return;
    }
    tree->entries = xrealloc(tree->entries, (tree->count + 1) * sizeof tree->entries[0]);
    tree->entries[tree->count++] = (struct tree_entry){.path = xstrdup(path),
                                                       .mode = status->st_mode,
                                                       .size = is_file ? status->st_size : 0,
                                                       .modified_s = status->st_mtime,
                                                       .target = target != NULL ? xstrdup(target) : NULL};
}

/* Returns the target of a link as a path inside the root; NULL if it leads outside. */
static char *inner_target(const struct walk *walk, const char *path, const char *local, const char *target)
{
    autofree char *real = realpath(local, NULL); /* NULL: the target does not exist */
    size_t root = strlen(walk->root);
    bool inside = real != NULL && strncmp(real, walk->root, root) == 0 && strchr("/", real[root]) != NULL;
    if (leads_inside(path, target) && (real == NULL || inside)) {
        return xstrdup(target);
    }
    if (!inside) {
        return NULL;
    }
    autotext struct text way = {0};
    for (size_t i = depth_of(path); i > 0; i--) {
        text_append(&way, "../");
    }
    text_append(&way, real[root] != '\0' ? real + root + 1 : ".");
    return text_take(&way);
}

static bool add_link(struct walk *walk, const char *path, const char *local, const struct stat *status)
{
    char target[LIMIT_PATH_BYTES + 1];
    ssize_t length = readlink(local, target, sizeof target);
    if (length < 0) {
        return err_errno(walk->err, "cannot read the link %s", local);
    }
    if ((size_t)length == sizeof target) {
        return leave_out(walk, "the target of the link %s is too long", path, "");
    }
    target[length] = '\0';
    autofree char *inner = inner_target(walk, path, local, target);
    if (inner == NULL) {
        return leave_out(walk, "the link %s leads outside, to %s", path, target);
    }
    add(walk, path, status, inner);
    return true;
}

/* --- the walk --- */

static bool visit(struct walk *walk, const char *inside, const char *name, const struct rules *rules,
                  int depth)
{
    autofree char *path = xprintf("%s%s%s", inside, inside[0] != '\0' ? "/" : "", name);
    autofree char *local = xprintf("%s/%s", walk->root, path);
    struct stat status;
    if (walk->tree.files > CLIENT_BUNDLE_SEEN) {
        return true;
    }
    if (lstat(local, &status) != 0) { /* it was removed after the listing */
        return errno == ENOENT || err_errno(walk->err, "cannot read %s", local);
    }
    bool is_folder = S_ISDIR(status.st_mode);
    if (never_travels(walk, local, name, is_folder) || is_left_out(walk, rules, path, is_folder)) {
        return true;
    }
    if (S_ISLNK(status.st_mode)) {
        return add_link(walk, path, local, &status);
    }
    if (!is_folder && !S_ISREG(status.st_mode)) {
        return leave_out(walk, "%s is no regular file", path, "");
    }
    if (access(local, is_folder ? R_OK | X_OK : R_OK) != 0) {
        return leave_out(walk, "%s cannot be read", path, "");
    }
    add(walk, path, &status, NULL);
    return !is_folder || walk_folder(walk, path, rules, depth + 1);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool walk_entries(struct walk *walk, const char *inside, const char *local, const struct rules *rules,
                         int depth)
{
    struct dirent **entries;
    int count = scandir(local, &entries, NULL, by_name);
    if (count < 0) {
        return err_errno(walk->err, "cannot read %s", local);
    }
    bool good = true;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        bool real = strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
        good = good && (!real || visit(walk, inside, name, rules, depth));
        free(entries[i]);
    }
    free(entries);
    return good;
}

static bool walk_folder(struct walk *walk, const char *inside, const struct rules *above, int depth)
{
    autofree char *local = xprintf("%s%s%s", walk->root, inside[0] != '\0' ? "/" : "", inside);
    autofree char *whole = from_top(walk, inside);
    struct rules rules;
    if (depth > CLIENT_BUNDLE_DEPTH) {
        return err_set(walk->err, ERR_TOO_LARGE, "%s lies deeper than %d folders", local,
                       CLIENT_BUNDLE_DEPTH);
    }
    if (!rules_read(local, whole, above, &rules, walk->err)) {
        return false;
    }
    bool good = walk_entries(walk, inside, local, &rules, depth);
    rules_finish(&rules);
    return good;
}

/* --- too large --- */

static int by_share(const void *a, const void *b)
{
    const struct tally *left = a, *right = b;
    return (left->share < right->share) - (left->share > right->share);
}

static bool refuse(struct walk *walk, bool bytes)
{
    autotext struct text largest = {0};
    char is[32], limit[32], part[32];
    for (size_t i = 0; i < walk->tally_count; i++) {
        struct tally *tally = &walk->tallies[i];
        tally->share = bytes ? tally->bytes : (int64_t)tally->files;
    }
    qsort(walk->tallies, walk->tally_count, sizeof walk->tallies[0], by_share);
    for (size_t i = 0; i < walk->tally_count && i < LARGEST; i++) {
        const struct tally *tally = &walk->tallies[i];
        print_bytes(tally->bytes, part);
        text_printf(&largest, "%s%.40s (", i > 0 ? ", " : "", tally->name);
        text_printf(&largest, bytes ? "%s)" : "%s in %zu file%s)", part, tally->files,
                    tally->files == 1 ? "" : "s");
    }
    print_bytes(walk->tree.bytes, is);
    print_bytes(CLIENT_BUNDLE_BYTES, limit);
    const char *over = walk->tree.files > CLIENT_BUNDLE_SEEN ? "more than " : "";
    autofree char *sum = bytes ? xprintf("%s%s, the limit is %s", over, is, limit)
                               : xprintf("%s%zu files, the limit is %lld", over, walk->tree.files,
                                         (long long)CLIENT_BUNDLE_FILES);
    err_set(walk->err, ERR_TOO_LARGE, "the folder %.80s has %s; the largest in it: %s", walk->root, sum,
            largest.bytes);
    return err_hint(
        walk->err, "name in its .gitignore what the job does not need, or a smaller folder; let the job read "
                   "data from where the nodes find it");
}

/* --- the tree --- */

/* Reads the rules of the folders from the top of the repository to the root, one by one, and walks the root.
 * at is the length of a folder's path. Rules that leave out the root do not count, because a person has
 * chosen it. */
static bool walk_from(struct walk *walk, size_t top, size_t at, const struct rules *above)
{
    struct rules rules;
    if (walk->root[at] == '\0') {
        return walk_folder(walk, "", above, 0);
    }
    autofree char *folder = xstrndup(walk->root, at);
    if (!rules_read(folder, at > top ? folder + top + 1 : "", above, &rules, walk->err)) {
        return false;
    }
    size_t next = at + 1 + strcspn(walk->root + at + 1, "/");
    autofree char *inner = xstrndup(walk->root + top + 1, next - top - 1);
    bool left_out = rules_leave_out(&rules, inner, true);
    walk->prefix = left_out ? "" : walk->prefix;
    bool good = left_out ? walk_folder(walk, "", NULL, 0) : walk_from(walk, top, next, &rules);
    rules_finish(&rules);
    return good;
}

static bool walk_root(struct walk *walk)
{
    size_t top = rules_top_of(walk->root), length = strlen(walk->root);
    bool is_inside = top > 0 && top < length;
    walk->prefix = is_inside ? walk->root + top + 1 : "";
    return walk_from(walk, top, is_inside ? top : length, NULL);
}

bool tree_read(const char *root, struct tree *ret_tree, struct notes *notes, struct err *err)
{
    autofree char *real = realpath(root, NULL);
    autoignore struct ignore *fixed = ignore_parse(never);
    struct walk walk = {.root = real, .never = fixed, .notes = notes, .err = err};
    if (real == NULL) {
        return err_errno(err, "cannot read %s", root);
    }
    bool good = walk_root(&walk);
    if (walk.left_out > NOTED) {
        notes_add(notes, "%zu more are left out", walk.left_out - NOTED);
    }
    if (good && (walk.tree.files > CLIENT_BUNDLE_FILES || walk.tree.bytes > CLIENT_BUNDLE_BYTES)) {
        good = refuse(&walk, walk.tree.bytes > CLIENT_BUNDLE_BYTES);
    }
    for (size_t i = 0; i < walk.tally_count; i++) {
        free(walk.tallies[i].name);
    }
    free(walk.tallies);
    if (good) {
        *ret_tree = walk.tree;
    } else {
        tree_finish(&walk.tree);
    }
    return good;
}

void tree_finish(struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        free(tree->entries[i].path);
        free(tree->entries[i].target);
    }
    free(tree->entries);
    *tree = (struct tree){0};
}

bool tree_has_folder(const struct tree *tree, const char *path)
{
    for (size_t i = 0; i < tree->count; i++) {
        if (S_ISDIR(tree->entries[i].mode) && strcmp(tree->entries[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}
