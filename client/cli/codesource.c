/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what `code_source` of `air` means here: a bundle of the folder that it names. It promises that what is
 * no folder is refused. Which files are sent is tree.c's. */
#include "client/cli/codesource.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text.h"

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
                     struct err *err)
{
    const char *root = root_of(field, value, err);
    if (root == NULL) {
        return false;
    }
    autofree char *source = xprintf("%s/%s", folder, root);
    json_object_set_new(spec, "bundle", json_pack("{s:s}", "source", source));
    return true;
}
