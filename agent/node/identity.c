/* SPDX-License-Identifier: Apache-2.0 */
/* Manages the id of a state folder, by which the controller tells this agent from another agent of the same
 * name. The id stays while the folder stays the same or stays at its path. A copy of the folder at another
 * path gets a new id and begins as a new agent: it must not adopt the attempts of the first one. The boot id
 * distinguishes copies of a whole disk. */
#include "agent/node/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"

#define FILE_BYTES 8192 /* an id, an inode, and a path of PATH_MAX */

/* The path and the inode of a folder. */
struct place {
    char *path; /* owned */
    char inode[48];
};

/* The record: "ID INODE PATH". */
static bool read_record(const char *record, char out[ID_LENGTH + 1], struct place *ret_place)
{
    autofree char *text = NULL;
    if (!file_read(record, FILE_BYTES, &text, NULL, NULL)) {
        return false;
    }
    char *rest = text;
    const char *id = strsep(&rest, " "), *inode = strsep(&rest, " ");
    if (rest == NULL || !text_is_id(id)) {
        return false;
    }
    memcpy(out, id, ID_LENGTH + 1);
    snprintf(ret_place->inode, sizeof ret_place->inode, "%s", inode);
    ret_place->path = xstrdup(rest);
    return true;
}

static bool find_place(const char *state, struct place *ret_place, struct err *err)
{
    struct stat status;
    char *path = realpath(state, NULL);
    if (path == NULL || stat(path, &status) != 0) {
        free(path);
        return err_errno(err, "cannot resolve %s", state);
    }
    ret_place->path = path;
    snprintf(ret_place->inode, sizeof ret_place->inode, "%llx:%llx", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
    return true;
}

static bool forget_the_first(const char *state, struct err *err)
{
    autofree char *attempts = xprintf("%s/attempts", state);
    autofree char *run = xprintf("%s/run-folder", state);
    unlink(run);
    return file_remove_tree(attempts, err) && file_make_directories(attempts, 0700, err);
}

static bool write_record(const char *record, const char *id, const struct place *place, struct err *err)
{
    autofree char *text = xprintf("%s %s %s", id, place->inode, place->path);
    return file_replace(record, text, strlen(text), 0600, err);
}

bool identity_open(const char *state, char out[ID_LENGTH + 1], struct err *err)
{
    autofree char *record = xprintf("%s/agent-id", state);
    struct place here = {0}, written = {0};
    if (!find_place(state, &here, err)) {
        return false;
    }
    bool known = read_record(record, out, &written);
    bool same_path = known && strcmp(written.path, here.path) == 0;
    bool same_inode = known && strcmp(written.inode, here.inode) == 0;
    bool good = true;
    if (known && !same_path && !same_inode) {
        log_warning("state folder copied", "folder=%s from=%s", here.path, written.path);
        good = forget_the_first(state, err);
    }
    if (!same_path && !same_inode) {
        uint8_t bytes[10];
        random_fill(bytes, sizeof bytes);
        text_id_from_bytes(bytes, out);
    }
    good = good && ((same_path && same_inode) || write_record(record, out, &here, err));
    free(here.path);
    free(written.path);
    return good;
}
