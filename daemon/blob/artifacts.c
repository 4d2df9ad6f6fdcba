/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the folder of artifacts: `kept` has complete artifacts under the names that clients chose, `arriving`
 * has uploads in progress. A name shows either a complete upload or its previous content. Links are never
 * followed. Callers decide which run an artifact belongs to, and who may read it. */
#include "daemon/blob/artifacts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/upload.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/limits.h"
#include "proto/members.h"

struct artifacts {
    char *root; /* the path of `kept` */
    int kept, arriving;
    pthread_mutex_t mutex; /* guards the names of files while placeholders come and go */
};

struct artifact_upload {
    struct upload upload;
    struct artifacts *artifacts;
    char *path;
};

struct artifacts *artifacts_open(const char *folder, struct err *err)
{
    autofree char *root = xprintf("%s/kept", folder);
    autofree char *arriving = xprintf("%s/arriving", folder);
    struct artifacts artifacts = {0};
    if (!upload_open_folders(root, arriving, &artifacts.kept, &artifacts.arriving, err)) {
        return NULL;
    }
    artifacts.root = give(root);
    struct artifacts *opened = xzalloc(sizeof *opened);
    *opened = artifacts;
    pthread_mutex_init(&opened->mutex, NULL);
    return opened;
}

void artifacts_close(struct artifacts *artifacts)
{
    if (artifacts == NULL) {
        return;
    }
    close(artifacts->kept);
    close(artifacts->arriving);
    pthread_mutex_destroy(&artifacts->mutex);
    free(artifacts->root);
    free(artifacts);
}

bool artifact_path_check(const char *path, struct err *err)
{
    if (*path == '\0' || path[strlen(path) - 1] == '/' || strlen(path) > LIMIT_PATH_BYTES) {
        return err_field(err, ERR_FIELD, "path", NULL,
                         "the path of an artifact has 1 to %d bytes and ends with a name", LIMIT_PATH_BYTES);
    }
    for (const char *part = path; *part != '\0'; part += strspn(part, "/")) {
        size_t length = strcspn(part, "/");
        if (length > LIMIT_PATH_PART_BYTES) {
            return err_field(err, ERR_FIELD, "path", NULL, "a part of the path is longer than %d bytes",
                             LIMIT_PATH_PART_BYTES);
        }
        part += length;
    }
    return true;
}

/* --- uploads -------------------------------------------------------------------------------------------- */

struct artifact_upload *artifact_upload_begin(struct artifacts *artifacts, const char *path)
{
    struct artifact_upload *upload = xzalloc(sizeof *upload);
    upload_init(&upload->upload, "an artifact", artifacts->arriving);
    upload->artifacts = artifacts;
    upload->path = xstrdup(path);
    return upload;
}

bool artifact_upload_write(struct artifact_upload *upload, const void *bytes, size_t length, struct err *err)
{
    return upload_write(&upload->upload, bytes, length, err);
}

/* Opens the folder of the name and makes the folders on the way; fsyncs the parent of each new folder. */
static int make_parent(int root, const char *path, const char **ret_name, struct err *err)
{
    autoclose int folder = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const char *slash; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        autofree char *part = xstrndup(path, (size_t)(slash - path));
        bool made = mkdirat(folder, part, 0700) == 0;
        if (made && fsync(folder) != 0) {
            err_errno(err, "cannot keep a folder of artifacts");
            return -1;
        }
        int next = openat(folder, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) {
            err_field(err, ERR_FIELD, "path", NULL, "%s cannot be a folder: %s", part, strerror(errno));
            return -1;
        }
        close(folder);
        folder = next;
    }
    *ret_name = path;
    return give_fd(&folder);
}

bool artifact_upload_keep(struct artifact_upload *upload, struct err *err)
{
    const char *name;
    if (!upload_sync(&upload->upload, err)) {
        return false;
    }
    autoclose int folder = make_parent(upload->artifacts->kept, upload->path, &name, err);
    pthread_mutex_lock(&upload->artifacts->mutex);
    bool placed = folder >= 0 && upload_place(&upload->upload, folder, name, err);
    pthread_mutex_unlock(&upload->artifacts->mutex);
    return placed;
}

void artifact_upload_end(struct artifact_upload *upload)
{
    if (upload != NULL) {
        upload_finish(&upload->upload);
        free(upload->path);
        free(upload);
    }
}

static bool is_placeholder(const struct stat *state)
{
    return S_ISREG(state->st_mode) && (state->st_mode & S_IXUSR) != 0;
}

/* --- reading -------------------------------------------------------------------------------------------- */

int artifacts_open_file(const struct artifacts *artifacts, const char *path, uint64_t *ret_length,
                        struct err *err)
{
    struct stat state;
    autoclose int fd = openat(artifacts->kept, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR) {
        err_errno(err, "cannot open the artifact %s", path);
        return -1;
    }
    if (fd < 0 || fstat(fd, &state) != 0 || !S_ISREG(state.st_mode)) {
        err_set(err, ERR_NOT_FOUND, "there is no artifact %s", path);
        return -1;
    }
    if (is_placeholder(&state)) {
        err_set(err, ERR_UNAVAILABLE, "the artifact %s is in the object store", path);
        return -1;
    }
    futimens(fd, NULL); /* its last use */
    *ret_length = (uint64_t)state.st_size;
    return give_fd(&fd);
}

static int is_shown(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void show(int folder, const char *name, const char *prefix, struct text *out)
{
    struct stat state;
    if (fstatat(folder, name, &state, AT_SYMLINK_NOFOLLOW) != 0) {
        return; /* deleted meanwhile */
    }
    autofree char *path = xprintf("%s%s", prefix, name);
    member_separate(out);
    member_write_text(out, "{\"path\":", path);
    if (S_ISDIR(state.st_mode)) {
        text_append(out, ",\"is_dir\":true}");
    } else {
        text_printf(out, ",\"is_dir\":false,\"file_size\":%lld}", (long long)state.st_size);
    }
}

bool artifacts_list(const struct artifacts *artifacts, const char *path, const char *prefix, struct text *out,
                    struct err *err)
{
    struct dirent **entries = NULL;
    autoclose int folder =
        openat(artifacts->kept, *path != '\0' ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return true;
    }
    int count = folder < 0 ? -1 : scandirat(folder, ".", &entries, is_shown, alphasort);
    if (count < 0) {
        return err_errno(err, "cannot list the artifacts in %s", path);
    }
    for (int i = 0; i < count; i++) {
        if (i < LIMIT_ARTIFACT_LIST) {
            show(folder, entries[i]->d_name, prefix, out);
        }
        free(entries[i]);
    }
    free(entries);
    return true;
}

static char *whole_path(const struct artifacts *artifacts, const char *path)
{
    return xprintf("%s/%s", artifacts->root, path);
}

bool artifacts_delete(const struct artifacts *artifacts, const char *path, struct err *err)
{
    autofree char *whole = whole_path(artifacts, path);
    if (unlink(whole) == 0 || errno == ENOENT || errno == ENOTDIR) {
        return true;
    }
    return errno == EISDIR ? file_remove_tree(whole, err)
                           : err_errno(err, "cannot delete the artifact %s", path);
}

/* --- for the object store ------------------------------------------------------------------------------- */

const char *artifacts_folder(const struct artifacts *artifacts)
{
    return artifacts->root;
}

char *artifacts_arriving(const struct artifacts *artifacts)
{
    autofree char *above = file_folder_of(artifacts->root);
    return xprintf("%s/arriving", above);
}

bool artifacts_is_away(const struct artifacts *artifacts, const char *path)
{
    struct stat state;
    return fstatat(artifacts->kept, path, &state, AT_SYMLINK_NOFOLLOW) == 0 && is_placeholder(&state);
}

/* Makes a hole of the size, under the name, in the folder of arriving files. */
static bool make_placeholder(const struct artifacts *artifacts, const char *name, int64_t size)
{
    autoclose int fd = openat(artifacts->arriving, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500);
    return fd >= 0 && ftruncate(fd, size) == 0;
}

void artifacts_evict(struct artifacts *artifacts, const char *path, int64_t before_s)
{
    struct stat state;
    char name[ID_LENGTH + 1];
    random_id(name);
    pthread_mutex_lock(&artifacts->mutex);
    if (fstatat(artifacts->kept, path, &state, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(state.st_mode) &&
        (state.st_mode & (S_IWUSR | S_IXUSR)) == 0 && state.st_mtim.tv_sec < before_s &&
        (!make_placeholder(artifacts, name, state.st_size) ||
         renameat(artifacts->arriving, name, artifacts->kept, path) != 0)) {
        unlinkat(artifacts->arriving, name, 0);
    }
    pthread_mutex_unlock(&artifacts->mutex);
}

bool artifacts_bring_back(struct artifacts *artifacts, const char *from, const char *path, bool missing,
                          struct err *err)
{
    autofree char *to = whole_path(artifacts, path), *folder = file_folder_of(to);
    struct stat state;
    bool ok = true;
    pthread_mutex_lock(&artifacts->mutex);
    bool there = lstat(to, &state) == 0;
    if (there ? is_placeholder(&state) : missing) {
        ok = (there || file_make_directories(folder, 0700, err)) &&
             (rename(from, to) == 0 || err_errno(err, "cannot keep the artifact %s", path)) &&
             file_sync_folder(folder, err);
    }
    pthread_mutex_unlock(&artifacts->mutex);
    unlink(from); /* which is gone where it was moved */
    return ok;
}
