/* SPDX-License-Identifier: Apache-2.0 */
/* Writes tar archives: headers, records, padding. The same entries give the same bytes. Bundles need files,
 * folders and symbolic links alone, for which a library would bring 40 MB of others. */
#include "client/cli/bundle/tar.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define BLOCK_BYTES 512
#define CHUNK_BYTES (256 * KIB)

enum kind { KIND_FILE = '0', KIND_LINK = '2', KIND_FOLDER = '5', KIND_RECORDS = 'x' };

/* The header of POSIX. All of it is text, and numbers are octal. */
struct header {
    char name[100];
    char mode[8], uid[8], gid[8];
    char size[12], modified[12];
    char sum[8];
    char kind;
    char target[100];
    char magic[6], version[2];
    char user[32], group[32];
    char major[8], minor[8];
    char prefix[155];
    char rest[12];
};

_Static_assert(sizeof(struct header) == BLOCK_BYTES, "a header fills one block");

struct tar {
    FILE *out;
    struct hash *hash;
    size_t length;
};

/* The entry of a header. target is "" for all but links. */
struct entry {
    const char *path, *target;
    enum kind kind;
    mode_t mode;
    int64_t size, modified_s;
};

static bool put(struct tar *tar, const void *bytes, size_t length, struct err *err)
{
    if (fwrite(bytes, 1, length, tar->out) != length) {
        err_errno(err, "cannot write the archive");
        return err_hint(err, "name a folder with room by TMPDIR");
    }
    hash_update(tar->hash, bytes, length);
    tar->length += length;
    return true;
}

static bool pad(struct tar *tar, struct err *err)
{
    static const char zeros[BLOCK_BYTES];
    size_t over = tar->length % BLOCK_BYTES;
    return over == 0 || put(tar, zeros, BLOCK_BYTES - over, err);
}

/* --- headers --- */

static void set_octal(char *field, size_t size, int64_t value)
{
    field[size - 1] = '\0';
    for (size_t i = size - 1; i > 0; i--) {
        field[i - 1] = (char)('0' + (value & 7));
        value >>= 3;
    }
}

/* Text that fills its field needs no NUL. */
static void set_chars(char *field, size_t size, const char *text, size_t length)
{
    memcpy(field, text, length < size ? length : size);
}

/* Returns where a long path is cut into prefix and name; 0 if it needs no cut or cannot be cut. */
static size_t cut_of(const char *path)
{
    size_t length = strlen(path);
    if (length <= sizeof((struct header *)NULL)->name) {
        return 0;
    }
    for (size_t i = length - 1; i > 0; i--) {
        bool fits = path[i] == '/' && length - i - 1 <= sizeof((struct header *)NULL)->name;
        if (fits && i <= sizeof((struct header *)NULL)->prefix && i + 1 < length) {
            return i;
        }
    }
    return 0;
}

static void set_sum(struct header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    unsigned sum = 0;
    memset(header->sum, ' ', sizeof header->sum);
    for (size_t i = 0; i < sizeof *header; i++) {
        sum += bytes[i];
    }
    set_octal(header->sum, sizeof header->sum - 1, sum);
}

static bool put_header(struct tar *tar, const struct entry *entry, struct err *err)
{
    struct header header = {.kind = (char)entry->kind};
    size_t cut = cut_of(entry->path);
    const char *name = cut > 0 ? entry->path + cut + 1 : entry->path;
    set_chars(header.prefix, sizeof header.prefix, entry->path, cut);
    set_chars(header.name, sizeof header.name, name, strlen(name));
    set_chars(header.target, sizeof header.target, entry->target, strlen(entry->target));
    set_octal(header.mode, sizeof header.mode, entry->mode & 0777);
    set_octal(header.uid, sizeof header.uid, 0);
    set_octal(header.gid, sizeof header.gid, 0);
    set_octal(header.size, sizeof header.size, entry->size);
    set_octal(header.modified, sizeof header.modified, entry->modified_s > 0 ? entry->modified_s : 0);
    set_octal(header.major, sizeof header.major, 0);
    set_octal(header.minor, sizeof header.minor, 0);
    memcpy(header.magic, "ustar", sizeof header.magic);
    memcpy(header.version, "00", sizeof header.version);
    set_sum(&header);
    return put(tar, &header, sizeof header, err);
}

/* --- records --- */

/* "LENGTH NAME=VALUE\n", where the length counts itself. */
static void add_record(struct text *records, const char *name, const char *value)
{
    size_t length = strlen(name) + strlen(value) + 3, digits = 1;
    for (size_t bound = 10; length + digits >= bound; bound *= 10) {
        digits++;
    }
    text_printf(records, "%zu %s=%s\n", length + digits, name, value);
}

/* Writes the path and target that do not fit into the following header. */
static bool put_records(struct tar *tar, const struct entry *entry, struct err *err)
{
    autotext struct text records = {0};
    if (strlen(entry->path) > sizeof((struct header *)NULL)->name && cut_of(entry->path) == 0) {
        add_record(&records, "path", entry->path);
    }
    if (strlen(entry->target) > sizeof((struct header *)NULL)->target) {
        add_record(&records, "linkpath", entry->target);
    }
    if (records.length == 0) {
        return true;
    }
    struct entry header = {
        .path = "pax", .target = "", .kind = KIND_RECORDS, .mode = 0644, .size = (int64_t)records.length};
    return put_header(tar, &header, err) && put(tar, records.bytes, records.length, err) && pad(tar, err);
}

/* --- entries --- */

static bool put_content(struct tar *tar, const char *path, int64_t size, FILE *file, struct err *err)
{
    autofree char *chunk = xalloc(CHUNK_BYTES);
    for (int64_t left = size; left > 0;) {
        size_t wanted = left < CHUNK_BYTES ? (size_t)left : (size_t)CHUNK_BYTES;
        size_t got = fread(chunk, 1, wanted, file);
        if (got == 0) {
            return ferror(file) ? err_errno(err, "cannot read %s", path)
                                : err_set(err, ERR_IO, "%s became shorter while it was read", path);
        }
        if (!put(tar, chunk, got, err)) {
            return false;
        }
        left -= (int64_t)got;
    }
    return pad(tar, err);
}

static bool put_file(struct tar *tar, const char *root, const struct tree_entry *entry, struct err *err)
{
    autofree char *local = xprintf("%s/%s", root, entry->path);
    int fd = open(local, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    autofclose FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        err_errno(err, "cannot read %s", local);
        return err_hint(err, "name it in .gitignore when the job does not need it");
    }
    bool good = put_content(tar, entry->path, entry->size, file, err);
    return good || err->hint[0] != '\0' || err_hint(err, "try again when nothing writes there");
}

static bool put_entry(struct tar *tar, const char *root, const struct tree_entry *entry, struct err *err)
{
    bool is_folder = S_ISDIR(entry->mode), is_link = entry->target != NULL;
    autofree char *path = xprintf("%s%s", entry->path, is_folder ? "/" : "");
    struct entry header = {.path = path,
                           .target = is_link ? entry->target : "",
                           .kind = is_folder ? KIND_FOLDER
                                   : is_link ? KIND_LINK
                                             : KIND_FILE,
                           .mode = is_folder ? entry->mode | 0700
                                   : is_link ? 0777
                                             : entry->mode,
                           .size = entry->size,
                           .modified_s = is_folder || is_link ? 0 : entry->modified_s};
    return put_records(tar, &header, err) && put_header(tar, &header, err) &&
           (header.kind != KIND_FILE || put_file(tar, root, entry, err));
}

bool tar_pack(const char *root, const struct tree *tree, FILE *out, char ret_hex[HASH_HEX + 1],
              size_t *ret_length, struct err *err)
{
    static const char end[2 * BLOCK_BYTES];
    uint8_t digest[HASH_BYTES];
    struct tar tar = {.out = out, .hash = hash_create()};
    bool good = true;
    for (size_t i = 0; good && i < tree->count; i++) {
        good = put_entry(&tar, root, &tree->entries[i], err);
    }
    good = good && put(&tar, end, sizeof end, err) &&
           (fflush(out) == 0 || err_errno(err, "cannot write the archive"));
    hash_finish(tar.hash, digest);
    text_to_hex(digest, HASH_BYTES, ret_hex);
    *ret_length = tar.length;
    return good;
}
