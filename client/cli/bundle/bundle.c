/* SPDX-License-Identifier: Apache-2.0 */
/* The field `bundle` of a spec, and how a folder becomes a blob. An unchanged folder gives an unchanged hash,
 * so it is sent once. tree.c chooses the files, tar.c writes the archive. */
#include "client/cli/bundle/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/transport/blob.h"
#include "client/cli/show/print.h"
#include "client/cli/bundle/tar.h"
#include "client/cli/bundle/tree.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/limits_client.h"

/* --- the field --- */

bool bundle_read(const char *folder, json_t *spec, struct err *err)
{
    json_t *bundle = json_object_get(spec, "bundle");
    if (json_is_string(bundle)) { /* the short form: `bundle: DIR` */
        bundle = json_pack("{s:O}", "source", bundle);
        json_object_set_new(spec, "bundle", bundle);
    }
    const json_t *source = json_object_get(bundle, "source");
    const char *name = json_string_value(source);
    if (source == NULL) {
        return true;
    }
    if (name == NULL || name[0] == '\0') {
        return err_field(err, ERR_USAGE, "bundle.source", NULL, "bundle.source must name a folder");
    }
    if (json_object_get(bundle, "blob") != NULL) {
        return err_field(err, ERR_USAGE, "bundle.source", "leave one of them out",
                         "bundle.source and bundle.blob say the same");
    }
    autofree char *path = name[0] == '/' ? xstrdup(name) : xprintf("%s/%s", folder, name);
    json_object_set_new(bundle, "source", json_string(path));
    return true;
}

/* "./src/" becomes "src", "" and "./" become ".". */
static char *plain_path(const char *path)
{
    while (strncmp(path, "./", 2) == 0) {
        path += 2 + strspn(path + 2, "/");
    }
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    return length > 0 ? xstrndup(path, length) : xstrdup(".");
}

static bool check_python_path(const struct tree *tree, const char *root, json_t *paths, struct err *err)
{
    for (size_t i = 0; i < json_array_size(paths); i++) {
        const char *given = json_string_value(json_array_get(paths, i));
        if (given == NULL) {
            continue; /* refused by the decoder */
        }
        autofree char *plain = plain_path(given);
        bool inside = strcmp(plain, ".") == 0 || jobspec_is_inner_path(plain);
        if (!inside || (strcmp(plain, ".") != 0 && !tree_has_folder(tree, plain))) {
            return err_field(err, ERR_USAGE, "bundle.python_path",
                             inside ? "name a folder that is sent; is it in .gitignore?"
                                    : "name a folder as it is called in there: src for instance",
                             "the Python path \"%s\" is no folder %s %s", given, inside ? "in" : "inside of",
                             root);
        }
        json_array_set_new(paths, i, json_string(plain));
    }
    return true;
}

/* --- the archive --- */

/* Opens a file without a name, which ends with its last user. */
static FILE *open_scratch(struct err *err)
{
    const char *folder = getenv("TMPDIR");
    autofree char *path = xprintf("%s/gpuctl-XXXXXX", folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (file == NULL) {
        err_errno(err, "cannot make a file in %s", folder != NULL ? folder : "/tmp");
        err_hint(err, "name a folder that can be written by TMPDIR");
    }
    if (fd >= 0) {
        unlink(path);
    }
    return file;
}

/* Packs the folder, sends the archive unless api is NULL, and replaces the folder's name by the hash. */
static bool put_folder(struct api *api, json_t *bundle, const char *root, const struct tree *tree,
                       struct err *err)
{
    size_t length;
    char hex[HASH_HEX + 1];
    autofclose FILE *scratch = open_scratch(err);
    if (scratch == NULL || !tar_pack(root, tree, scratch, hex, &length, err)) {
        return false;
    }
    if (api != NULL && (int64_t)length >= CLIENT_BUNDLE_TOLD_BYTES && !blob_is_there(api, hex)) {
        char size[32];
        print_bytes((int64_t)length, size);
        print_note("sending %s: %zu files, %s", root, tree->files, size);
    }
    if (!blob_put_file(api, hex, scratch, length, err)) {
        return false;
    }
    json_object_set_new(bundle, "blob", json_string(hex));
    json_object_del(bundle, "source");
    return true;
}

/* Says that an error without a field is about the folder. */
static bool place(const char *field, struct err *err)
{
    struct err inner = *err;
    return inner.field[0] != '\0' ? false : err_field(err, inner.code, field, inner.hint, "%s", inner.text);
}

static bool need_folder(const char *root, struct err *err)
{
    struct stat status;
    if (stat(root, &status) == 0 && !S_ISDIR(status.st_mode)) {
        errno = ENOTDIR;
    } else if (access(root, R_OK | X_OK) == 0) {
        return true;
    }
    return err_errno(err, "cannot send the folder %s", root);
}

/* Checks all other members with any hash in place of the folder. */
static bool check_members(const json_t *bundle, struct err *err)
{
    char any[HASH_HEX + 1];
    struct job_bundle decoded;
    hash_hex("", 0, any);
    autojson json_t *copy = json_deep_copy(bundle);
    json_object_del(copy, "source");
    json_object_set_new(copy, "blob", json_string(any));
    return jobspec_decode_bundle(copy, &decoded, err);
}

/* Lists the folder, and checks everything that can be checked here. */
static bool look(json_t *bundle, const char *root, struct tree *ret_tree, struct notes *notes,
                 struct err *err)
{
    struct notes unheard = {0};
    bool good = need_folder(root, err) && tree_read(root, ret_tree, notes != NULL ? notes : &unheard, err) &&
                check_python_path(ret_tree, root, json_object_get(bundle, "python_path"), err) &&
                check_members(bundle, err);
    notes_finish(&unheard);
    return good;
}

bool bundle_fill(struct api *api, json_t *spec, const char *field, struct notes *notes, struct err *err)
{
    json_t *bundle = json_object_get(spec, "bundle");
    const char *root = json_string_of(bundle, "source");
    autotree struct tree tree = {0};
    if (root == NULL) {
        return true;
    }
    if (!look(bundle, root, &tree, notes, err)) {
        return place(field, err);
    }
    if (api == NULL) {
        autofree char *absolute = realpath(root, NULL);
        json_object_set_new(bundle, "source", json_string(absolute != NULL ? absolute : root));
        return true;
    }
    return put_folder(api, bundle, root, &tree, err);
}

bool bundle_name(json_t *spec, struct err *err)
{
    json_t *bundle = json_object_get(spec, "bundle");
    const char *root = json_string_of(bundle, "source");
    autotree struct tree tree = {0};
    return root == NULL ||
           (look(bundle, root, &tree, NULL, err) && put_folder(NULL, bundle, root, &tree, err));
}
