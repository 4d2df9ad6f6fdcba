/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and replaces whole small files, works on whole folders, and finds our programs and the host's
 * identity. file_replace leaves either the old or the new content, whatever happens. file_remove_tree never
 * leaves the tree through a link or a mount. All descriptors are O_CLOEXEC. Streams and locks are left to the
 * callers. */
#include "proto/base/files/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/text.h"

#define READ_STEP  4096
#define COPY_STEP  (64 << 20)
#define TREE_DEPTH 64 /* folders open at once; deeper folders are first moved up */

/* --- reading and replacing ------------------------------------------------------------------------------ */

/* Reads until the end, or until more than max bytes were read; false with errno. */
static bool read_to_end(int fd, size_t max, struct text *text)
{
    while (text->length <= max) {
        size_t left = max - text->length + 1; /* one byte more than allowed shows that there is more */
        size_t step = text->length > READ_STEP ? text->length : READ_STEP;
        step = step < left ? step : left;
        text_reserve(text, step);
        ssize_t got = read(fd, text->bytes + text->length, step);
        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            return false;
        }
        text->length += got > 0 ? (size_t)got : 0;
        text->bytes[text->length] = '\0';
    }
    return true;
}

bool file_read(const char *path, size_t max, char **ret_bytes, size_t *ret_length, struct err *err)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return err_errno(err, "cannot open %s", path);
    }
    autotext struct text text = {0};
    if (!read_to_end(fd, max, &text)) {
        return err_errno(err, "cannot read %s", path);
    }
    if (text.length > max) {
        return err_set(err, ERR_TOO_LARGE, "%s is larger than %zu bytes", path, max);
    }
    if (ret_length != NULL) {
        *ret_length = text.length;
    }
    *ret_bytes = text_take(&text);
    return true;
}

bool file_write_all(int fd, const void *bytes, size_t length)
{
    const char *rest = bytes;
    while (length > 0) {
        ssize_t wrote = write(fd, rest, length);
        if (wrote < 0 && errno != EINTR) {
            return false;
        }
        size_t done = wrote > 0 ? (size_t)wrote : 0;
        rest += done;
        length -= done;
    }
    return true;
}

char *file_absolute(const char *path)
{
    if (path == NULL || path[0] == '/') {
        return path != NULL ? xstrdup(path) : NULL;
    }
    autofree char *here = getcwd(NULL, 0);
    return xprintf("%s/%s", here != NULL ? here : "", path);
}

char *file_absolute_program(const char *path)
{
    return path != NULL && strchr(path, '/') == NULL ? xstrdup(path) : file_absolute(path);
}

bool file_give_to_owner_of(const char *folder, const char *path, struct err *err)
{
    struct stat owner, status;
    autonames struct file_names names = {0};
    if (geteuid() != 0) {
        return true;
    }
    if (stat(folder, &owner) != 0 || lstat(path, &status) != 0) {
        return err_errno(err, "cannot look at %s in %s", path, folder);
    }
    if (S_ISREG(status.st_mode) && status.st_nlink > 1) {
        return true; /* a file with another name may be anybody's */
    }
    if (S_ISDIR(status.st_mode) && !file_list(path, &names, err)) {
        return false;
    }
    bool ok = lchown(path, owner.st_uid, owner.st_gid) == 0;
    for (size_t i = 0; ok && i < names.count; i++) {
        autofree char *inner = xprintf("%s/%s", path, names.items[i]);
        ok = lchown(inner, owner.st_uid, owner.st_gid) == 0;
    }
    return ok || err_errno(err, "cannot give %s to the owner of %s", path, folder);
}

bool file_disk(const char *folder, struct file_disk *ret_disk)
{
    struct statvfs state;
    if (statvfs(folder, &state) != 0) {
        return false;
    }
    *ret_disk = (struct file_disk){.bytes = (int64_t)state.f_blocks * (int64_t)state.f_frsize,
                                   .free_bytes = (int64_t)state.f_bavail * (int64_t)state.f_frsize};
    return true;
}

char *file_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL   ? xstrdup(".")
           : slash == path ? xstrdup("/")
                           : xstrndup(path, (size_t)(slash - path));
}

bool file_replace(const char *path, const void *bytes, size_t length, mode_t mode, struct err *err)
{
    autofree char *temporary = xprintf("%s.XXXXXX", path);
    autoclose int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        return err_errno(err, "cannot make a file beside %s", path);
    }
    bool replaced = fchmod(fd, mode) == 0 && file_write_all(fd, bytes, length) && fsync(fd) == 0 &&
                    rename(temporary, path) == 0;
    if (!replaced) {
        err_errno(err, "cannot write %s", path);
        unlink(temporary);
        return false;
    }
    autofree char *folder = file_folder_of(path);
    return file_sync_folder(folder, NULL) || err_errno(err, "cannot sync the folder of %s", path);
}

/* Copies in the kernel; false with errno. */
static bool copy_all(int from, int to)
{
    ssize_t moved;
    do {
        moved = sendfile(to, from, NULL, COPY_STEP);
    } while (moved > 0 || (moved < 0 && errno == EINTR));
    return moved == 0;
}

bool file_copy(const char *from, const char *to, mode_t mode, struct err *err)
{
    autoclose int source = open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (source < 0) {
        return err_errno(err, "cannot open %s", from);
    }
    autoclose int target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    return (target >= 0 && copy_all(source, target) && fsync(target) == 0) ||
           err_errno(err, "cannot copy %s to %s", from, to);
}

bool file_sync_folder(const char *folder, struct err *err)
{
    autoclose int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return (fd >= 0 && fsync(fd) == 0) || err_errno(err, "cannot sync %s", folder);
}

/* --- folders -------------------------------------------------------------------------------------------- */

bool file_make_directories(const char *path, mode_t mode, struct err *err)
{
    autofree char *prefix = xstrdup(path);
    for (char *at = prefix; *at != '\0';) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        char separator = *at;
        *at = '\0';
        if (mkdir(prefix, mode) != 0 && errno != EEXIST) {
            return err_errno(err, "cannot make the folder %s", prefix);
        }
        *at = separator;
    }
    struct stat status;
    if (stat(path, &status) != 0) {
        return err_errno(err, "cannot make the folder %s", path);
    }
    if (!S_ISDIR(status.st_mode)) {
        errno = ENOTDIR;
        return err_errno(err, "cannot make the folder %s", path);
    }
    return true;
}

/* A mounted file system: a bind mount of the same device is a different mount. */
struct mount {
    unsigned major, minor;
    unsigned long long id; /* 0 where the kernel does not say */
};

struct removal {
    const char *path;
    struct mount mount;
    int top;         /* the tree's own folder, open */
    unsigned lifted; /* names tried for folders that were moved up into top */
    int first_errno; /* 0: nothing has failed */
    char name[64];   /* the entry that failed first; empty: the tree itself */
};

static bool mount_of(int fd, struct mount *ret_mount)
{
    struct statx status;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MNT_ID, &status) != 0) {
        return false;
    }
    *ret_mount = (struct mount){
        .major = status.stx_dev_major,
        .minor = status.stx_dev_minor,
        .id = (status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0,
    };
    return true;
}

/* Keeps the first failure; name is "" for the tree itself. */
static void note_failure(struct removal *removal, const char *name, int error)
{
    if (removal->first_errno == 0) {
        removal->first_errno = error;
        snprintf(removal->name, sizeof removal->name, "%s", name != removal->path ? name : "");
    }
}

/* Opens a folder of the tree; -1 with errno, which is EXDEV when another file system is mounted there. */
static int open_folder(struct removal *removal, int parent, const char *name)
{
    autoclose int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct mount mount;
    if (fd < 0 || !mount_of(fd, &mount)) {
        return -1;
    }
    if (removal->top < 0) {
        removal->top = fd;
        removal->mount = mount;
    }
    const struct mount *top = &removal->mount;
    if (mount.major != top->major || mount.minor != top->minor || mount.id != top->id) {
        errno = EXDEV;
        return -1;
    }
    return give_fd(&fd);
}

static void remove_entry(struct removal *removal, int parent, const char *name, int depth);

/* Removes the content of the open folder and closes it. */
static void remove_content(struct removal *removal, int folder, int depth)
{
    DIR *entries = fdopendir(folder);
    if (entries == NULL) {
        out_of_memory(); /* folder is an open folder, so this is the only possible failure */
    }
    unsigned lifted;
    do { /* repeat: the listing may have missed a folder that was moved up into this one */
        lifted = removal->lifted;
        rewinddir(entries);
        const struct dirent *entry;
        while ((entry = readdir(entries)) != NULL) {
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
                remove_entry(removal, folder, entry->d_name, depth + 1);
            }
        }
    } while (depth == 0 && lifted != removal->lifted);
    closedir(entries);
}

/* Moves a folder that lies too deep up to the top, under a name that is free there. The listing of the top
 * finds it again. */
static void lift_folder(struct removal *removal, int parent, const char *name)
{
    int status;
    do {
        char lifted[32];
        snprintf(lifted, sizeof lifted, ".lifted-%u", removal->lifted++);
        status = renameat(parent, name, removal->top, lifted);
    } while (status != 0 && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
    if (status != 0) {
        note_failure(removal, name, errno);
    }
}

static void remove_entry(struct removal *removal, int parent, const char *name, int depth)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) {
        return;
    }
    if (errno != EISDIR) {
        note_failure(removal, name, errno);
        return;
    }
    if (depth >= TREE_DEPTH) {
        lift_folder(removal, parent, name);
        return;
    }
    int folder = open_folder(removal, parent, name);
    if (folder < 0) {
        note_failure(removal, name, errno);
        return;
    }
    remove_content(removal, folder, depth);
    if (unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        note_failure(removal, name, errno);
    }
}

bool file_remove_tree(const char *path, struct err *err)
{
    struct removal removal = {.path = path, .top = -1};
    remove_entry(&removal, AT_FDCWD, path, 0);
    if (removal.first_errno == 0) {
        return true;
    }
    errno = removal.first_errno;
    if (removal.name[0] == '\0') {
        return err_errno(err, "cannot remove %s", path);
    }
    return err_errno(err, "cannot remove %s below %s", removal.name, path);
}

/* --- listing -------------------------------------------------------------------------------------------- */

void file_names_finish(struct file_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i]);
    }
    free(names->items);
    *names = (struct file_names){0};
}

static void add_name(struct file_names *names, const char *name)
{
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
        names->items = xrealloc(names->items, (names->count + 1) * sizeof *names->items);
        names->items[names->count++] = xstrdup(name);
    }
}

bool file_list(const char *folder, struct file_names *ret_names, struct err *err)
{
    DIR *listing = opendir(folder);
    *ret_names = (struct file_names){0};
    if (listing == NULL) {
        return err_errno(err, "cannot list %s", folder);
    }
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(listing)) != NULL) {
        add_name(ret_names, entry->d_name);
    }
    int error = errno;
    closedir(listing);
    if (error != 0) {
        errno = error;
        file_names_finish(ret_names);
        return err_errno(err, "cannot list %s", folder);
    }
    return true;
}

bool file_measure(const char *folder, int64_t *bytes, struct err *err)
{
    autonames struct file_names names = {0};
    struct stat status;
    if (access(folder, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    if (!file_list(folder, &names, err)) {
        return false;
    }
    for (size_t i = 0; i < names.count; i++) {
        autofree char *path = xprintf("%s/%s", folder, names.items[i]);
        *bytes += lstat(path, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
    }
    return true;
}

/* --- our programs --------------------------------------------------------------------------------------- */

/* Relative to the caller's folder: beside it, in the build tree, and as installed in bin and libexec. */
static const char *const program_places[] = {
    "",
    "../daemon/",
    "../agent/",
    "../../daemon/",
    "../../agent/",
    "../client/cli/",
    "../../client/cli/",
    "../libexec/gpuctl/",
    "../../bin/",
};

/* The folder of the caller's executable; NULL when /proc does not say. The link of a replaced executable ends
 * in " (deleted)", but its folder is still right. */
static char *own_folder(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) {
        return NULL;
    }
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    return slash != NULL ? xstrndup(path, (size_t)(slash - path)) : NULL;
}

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* Returns folder/place/name if it is a program; the caller frees it. Otherwise NULL, and the place is added
 * to tried. */
static char *try_place(const char *folder, const char *place, const char *name, struct text *tried)
{
    autofree char *path = xprintf("%s/%s%s", folder, place, name);
    if (is_program(path)) {
        return give(path);
    }
    text_printf(tried, "%s%s", tried->length > 0 ? ", " : "", place[0] != '\0' ? place : folder);
    return NULL;
}

char *file_find_program(const char *name, struct err *err)
{
    autotext struct text tried = {0};
    const char *libexec = getenv("GPUCTL_LIBEXEC");
    char *found = libexec != NULL && libexec[0] != '\0' ? try_place(libexec, "", name, &tried) : NULL;
    autofree char *folder = own_folder();
    for (size_t i = 0;
         folder != NULL && found == NULL && i < sizeof program_places / sizeof program_places[0]; i++) {
        found = try_place(folder, program_places[i], name, &tried);
    }
    if (found == NULL) {
        err_set(err, ERR_IO, "cannot find the program %s in %s", name,
                tried.length > 0 ? tried.bytes : "any place");
        err_hint(err, "set GPUCTL_LIBEXEC to the folder that holds it");
    }
    return found;
}

/* --- the host ------------------------------------------------------------------------------------------- */

/* The first word of a small file; NULL when there is none. The caller frees it. */
static char *read_word(const char *path)
{
    autofree char *bytes = NULL;
    if (!file_read(path, 4096, &bytes, NULL, NULL)) {
        return NULL;
    }
    size_t start = strspn(bytes, " \t\r\n");
    size_t length = strcspn(bytes + start, " \t\r\n");
    return length > 0 ? xstrndup(bytes + start, length) : NULL;
}

void file_host_id(char out[65])
{
    autofree char *id = read_word("/etc/machine-id");
    if (id != NULL && strcmp(id, "uninitialized") != 0) {
        hash_hex(id, strlen(id), out);
        return;
    }
    char boot_id[37];
    file_boot_id(boot_id);
    hash_hex(boot_id, strlen(boot_id), out);
}

void file_boot_id(char out[37])
{
    autofree char *id = read_word("/proc/sys/kernel/random/boot_id");
    if (id == NULL) {
        abort(); /* without /proc none of our programs works */
    }
    snprintf(out, 37, "%s", id);
}
