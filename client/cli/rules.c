/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which files of patterns count for a path, and in which order. It promises that the nearest folder
 * decides, and in it .gpuctlignore before .gitignore. The patterns are ignore.c's, the walk is tree.c's. */
#include "client/cli/rules.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/text.h"
#include "proto/limits.h"

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

/* --- the folders around --- */

/* Bytes of root that name the top of its repository; 0: there is none. */
static size_t top_of(const char *root)
{
    for (size_t length = strlen(root); length > 0; length--) {
        autofree char *mark = xprintf("%.*s/.git", (int)length, root);
        if ((root[length] == '\0' || root[length] == '/') && access(mark, F_OK) == 0) {
            return length;
        }
    }
    return 0;
}

/* Reads one folder, and asks for the next on the way to the root. */
static bool read_one(const char *root, size_t at, size_t top, struct surroundings *around, bool *ret_left_out,
                     struct err *err)
{
    autofree char *folder = xstrndup(root, at);
    const char *path = at > top ? folder + top + 1 : "";
    struct rules *rules = &around->items[around->count];
    if (!rules_read(folder, path, around->count > 0 ? rules - 1 : NULL, rules, err)) {
        return false;
    }
    around->count++;
    size_t next = at + 1 + strcspn(root + at + 1, "/");
    autofree char *inner = xstrndup(root + top + 1, next - top - 1);
    *ret_left_out = rules_leave_out(rules, inner, true);
    return true;
}

bool rules_read_around(const char *root, struct surroundings *ret_around, struct err *err)
{
    struct surroundings around = {0};
    size_t top = top_of(root), levels = 0;
    for (const char *slash = root + top; top > 0 && slash != NULL && *slash != '\0';
         slash = strchr(slash + 1, '/')) {
        levels++;
    }
    bool good = true, left_out = false;
    around.items = xzalloc((levels + 1) * sizeof around.items[0]);
    for (size_t at = top; good && !left_out && around.count < levels; at += 1 + strcspn(root + at + 1, "/")) {
        good = read_one(root, at, top, &around, &left_out, err);
    }
    if (!good || left_out) {
        rules_finish_around(&around);
    }
    around.path = xstrdup(around.count > 0 ? root + top + 1 : "");
    if (good) {
        *ret_around = around;
    } else {
        rules_finish_around(&around);
    }
    return good;
}

void rules_finish_around(struct surroundings *around)
{
    for (size_t i = 0; i < around->count; i++) {
        rules_finish(&around->items[i]);
    }
    free(around->items);
    free(around->path);
    *around = (struct surroundings){0};
}
