/* SPDX-License-Identifier: Apache-2.0 */
/* What a controller reads of its database when it starts. A database of a few rows of each kind is written
 * once, as a controller leaves it that was killed: a file and a log with the last transactions. An input is a
 * list of edits of these files. Then the store opens them and reads all rows.
 *
 * Pages and frames have sums, so damage is refused long before any row is read. Inputs that ask for it get
 * right sums behind the edits: these files are what no disk would leave, and reach all code that reads
 * rows. */
#include <endian.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/check.h"
#include "daemon/store/database/pages.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/store_rows.h"

/* Of SQLite's format of logs. */
enum { LOG_HEADER_BYTES = 32, FRAME_HEADER_BYTES = 24, FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES };

enum { MOST_EDITS = 16, MOST_BYTES = 16, ZEROS = 32, NEAR_BYTES = 4 };

/* One file as it was written. Places are the offsets of its bytes that are not zero, or near to such. */
struct image {
    const char *suffix;
    uint8_t *bytes;
    size_t length; /* of bytes; the file is longer by zeros */
    size_t size;
    uint32_t *places;
    size_t place_count;
};

static struct image database = {.suffix = ""}, wal = {.suffix = "-wal"}, shm = {.suffix = "-shm"};
static char *path;
static struct text expected; /* all rows */

static char *file_of(const char *suffix)
{
    return xprintf("%s%s", path, suffix);
}

/* --- reading all of it ---------------------------------------------------------------------------------- */

/* The store alone: it says what is wrong, or gives rows. */
static bool read_store(struct text *out)
{
    struct err err = {0};
    struct store *store = store_open(path, &err);
    struct reader *reader = store != NULL ? reader_open(path, &err) : NULL;
    bool ok = reader != NULL && store_rows_read(store, reader, out, &err);
    FUZZ_MUST(ok || err.text[0] != '\0');
    reader_close(reader);
    if (store != NULL) {
        store_distrust(store); /* moves no log: the files are written anew anyway */
    }
    store_close(store);
    return ok;
}

static void counted(const struct check_counts *counts, void *closure)
{
}

static void found(const char *finding, void *closure)
{
    FUZZ_MUST(finding[0] != '\0');
}

static void looked(const char *promise, int64_t broken, void *closure)
{
}

static void blob(const struct blob_row *row, void *closure)
{
}

/* As `gpuctld --check`, which looks at copies that nobody else uses. */
static void check(void)
{
    struct err err = {0};
    const struct check_visitor visitor = {.counted = counted, .found = found, .looked = looked, .blob = blob};
    FUZZ_MUST(check_database(path, &visitor, &err) || err.text[0] != '\0');
}

/* --- images --------------------------------------------------------------------------------------------- */

static bool is_used(const struct image *image, size_t at)
{
    size_t from = at > NEAR_BYTES ? at - NEAR_BYTES : 0;
    for (size_t i = from; i < at + NEAR_BYTES && i < image->length; i++) {
        if (image->bytes[i] != 0) {
            return true;
        }
    }
    return false;
}

static void take(struct image *image)
{
    struct err err;
    autofree char *name = file_of(image->suffix);
    char *bytes = NULL;
    FUZZ_MUST(file_read(name, 64 * MIB, &bytes, &image->size, &err));
    image->bytes = (uint8_t *)bytes;
    for (image->length = image->size; image->length > 0 && bytes[image->length - 1] == 0; image->length--) {
    }
    image->places = xalloc(image->length * sizeof *image->places);
    for (size_t i = 0; i < image->length; i++) {
        if (is_used(image, i)) {
            image->places[image->place_count++] = (uint32_t)i;
        }
    }
}

static void lay(const struct image *image, const uint8_t *bytes, size_t length, size_t size)
{
    autofree char *name = file_of(image->suffix);
    autoclose int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_MUST(file >= 0 && file_write_all(file, bytes, length) && ftruncate(file, (off_t)size) == 0);
}

static void write_rows(bool first)
{
    struct err err;
    struct store *store = store_open(path, &err);
    FUZZ_MUST(store != NULL && store_rows_write(store, first, &err));
    if (!first) {
        take(&database);
        take(&wal);
        take(&shm);
    }
    store_close(store);
}

/* The first half of the rows is in the database, the second in the log. */
static void begin(void)
{
    if (path != NULL) {
        return;
    }
    path = xprintf("%s/db", fuzz_folder());
    write_rows(true);
    write_rows(false);
    FUZZ_MUST(read_store(&expected));
}

/* --- edits ---------------------------------------------------------------------------------------------- */

/* A file that is being edited. */
struct edited {
    const struct image *image;
    uint8_t *bytes;
    size_t length, size;
};

struct input {
    const uint8_t *bytes;
    size_t size;
};

static uint8_t next(struct input *input)
{
    return input->size > 0 ? (input->size--, *input->bytes++) : 0;
}

static uint32_t next_number(struct input *input)
{
    uint32_t low = next(input), middle = next(input);
    return low | middle << 8 | (uint32_t)next(input) << 16;
}

static size_t next_place(struct input *input, const struct image *image)
{
    return image->places[next_number(input) % image->place_count];
}

static void put(struct edited *file, size_t at, uint8_t byte)
{
    if (at < file->length) {
        file->bytes[at] = byte;
    }
}

/* Pages or frames. */
static uint8_t *piece(struct edited *file, size_t number, size_t *ret_bytes)
{
    bool log = file->image == &wal;
    size_t first = log ? LOG_HEADER_BYTES : 0;
    *ret_bytes = log ? FRAME_BYTES : PAGE_BYTES;
    size_t count = file->length > first ? (file->length - first) / *ret_bytes : 0;
    return count > 0 ? file->bytes + first + number % count * *ret_bytes : NULL;
}

static void copy_piece(struct edited *file, struct input *input)
{
    size_t bytes;
    uint8_t *from = piece(file, next(input), &bytes), *to = piece(file, next(input), &bytes);
    if (from != NULL && from != to) {
        memcpy(to, from, bytes);
    }
}

static void cut(struct edited *file, struct input *input)
{
    size_t size = next_number(input) % (file->image->length + 1);
    size_t least = file->image == &wal ? LOG_HEADER_BYTES : 0;
    size = size < least ? least : size;
    file->length = size < file->length ? size : file->length;
    file->size = size;
}

static void edit(struct edited files[2], struct input *input)
{
    uint8_t kind = next(input);
    struct edited *file = &files[kind >> 7];
    switch (kind & 3) {
    case 0: { /* other bytes */
        size_t at = next_place(input, file->image);
        for (int left = next(input) % MOST_BYTES; left >= 0; left--) {
            put(file, at++, next(input));
        }
        break;
    }
    case 1: {
        size_t at = next_place(input, file->image);
        for (int i = 0; i < ZEROS; i++) {
            put(file, at + (size_t)i, 0);
        }
        break;
    }
    case 2:
        copy_piece(file, input);
        break;
    default:
        cut(file, input);
    }
}

/* --- sums ----------------------------------------------------------------------------------------------- */

static void seal_database(struct edited *file)
{
    for (size_t at = 0; at + PAGE_BYTES <= file->length; at += PAGE_BYTES) {
        uint64_t sum = htole64(page_sum(file->bytes + at, (uint32_t)(at / PAGE_BYTES) + 1));
        memcpy(file->bytes + at + PAGE_BYTES - PAGE_SUM_BYTES, &sum, sizeof sum);
    }
}

static uint32_t word_at(const uint8_t *bytes, bool big)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return big ? be32toh(word) : le32toh(word);
}

/* Adds the bytes to the sums, which are a chain. */
static void add(uint32_t sums[2], const uint8_t *bytes, size_t length, bool big)
{
    for (size_t i = 0; i < length; i += 8) {
        sums[0] += word_at(bytes + i, big) + sums[1];
        sums[1] += word_at(bytes + i + 4, big) + sums[0];
    }
}

static void put_sums(const uint32_t sums[2], uint8_t *out)
{
    const uint32_t words[2] = {htobe32(sums[0]), htobe32(sums[1])};
    memcpy(out, words, sizeof words);
}

static void seal_log(struct edited *file)
{
    uint32_t sums[2] = {0};
    if (file->length < LOG_HEADER_BYTES) {
        return;
    }
    bool big = (file->bytes[3] & 1) != 0;
    add(sums, file->bytes, 24, big);
    put_sums(sums, file->bytes + 24);
    for (size_t at = LOG_HEADER_BYTES; at + FRAME_BYTES <= file->length; at += FRAME_BYTES) {
        memcpy(file->bytes + at + 8, file->bytes + 16, 8); /* the salts */
        add(sums, file->bytes + at, 8, big);
        add(sums, file->bytes + at + FRAME_HEADER_BYTES, PAGE_BYTES, big);
        put_sums(sums, file->bytes + at + 16);
    }
}

/* --- the target ----------------------------------------------------------------------------------------- */

/* Of the first byte. */
enum {
    WITH_SUMS = 1,  /* right ones, behind the edits */
    REBOOTED = 2,   /* the log has no index */
    DOUBTED = 4,    /* the last controller has failed with the database: all pages are looked at */
    WITH_CHECK = 8, /* and then gpuctld --check */
};

static void lay_all(uint8_t how, const struct edited files[2])
{
    autofree char *mark = file_of(".incarnation"), *lock = file_of(".lock"), *index = file_of("-shm");
    unlink(mark);
    autoclose int file = open(lock, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_MUST(file >= 0 && file_write_all(file, how & DOUBTED ? "failed\n" : "in use\n", 7));
    for (size_t i = 0; i < 2; i++) {
        lay(files[i].image, files[i].bytes, files[i].length, files[i].size);
    }
    if (how & REBOOTED) {
        unlink(index);
    } else {
        lay(&shm, shm.bytes, shm.length, shm.size);
    }
}

/* Whether the log is gone as a whole: it has no frame, and its header is another one. That is as one that was
 * never there. */
static bool is_gone(const struct edited *file)
{
    return file->length < LOG_HEADER_BYTES + FRAME_HEADER_BYTES &&
           memcmp(file->bytes, file->image->bytes, LOG_HEADER_BYTES) != 0;
}

bool fuzz_database(const uint8_t *bytes, size_t size)
{
    begin();
    struct input input = {bytes, size};
    struct edited files[2] = {{&database, NULL, database.length, database.size},
                              {&wal, NULL, wal.length, wal.size}};
    for (size_t i = 0; i < 2; i++) {
        files[i].bytes = xalloc(files[i].length);
        memcpy(files[i].bytes, files[i].image->bytes, files[i].length);
    }
    uint8_t how = next(&input);
    for (int i = 0; i < MOST_EDITS && input.size > 0; i++) {
        edit(files, &input);
    }
    if (how & WITH_SUMS) {
        seal_database(&files[0]);
        seal_log(&files[1]);
    }
    lay_all(how, files);
    autotext struct text rows = {0};
    bool read = read_store(&rows);
    /* Damage is seen, or no row is other than it was. Without its index the end of a log may be missing. */
    if (read && (how & (WITH_SUMS | REBOOTED)) == 0 && !is_gone(&files[1])) {
        FUZZ_MUST(rows.length == expected.length && memcmp(rows.bytes, expected.bytes, rows.length) == 0);
    }
    if (how & WITH_CHECK) {
        check();
    }
    free(files[0].bytes);
    free(files[1].bytes);
    return read;
}
