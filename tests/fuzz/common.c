/* SPDX-License-Identifier: Apache-2.0 */
/* What targets share, and the one that fails. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/fuzz/fuzz.h"

char *fuzz_text(const uint8_t *bytes, size_t size)
{
    char *text = xalloc(size + 1);
    memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

char *fuzz_line(const uint8_t **bytes, size_t *size)
{
    const uint8_t *end = *size > 0 ? memchr(*bytes, '\n', *size) : NULL;
    if (end == NULL) {
        return NULL;
    }
    char *line = fuzz_text(*bytes, (size_t)(end - *bytes));
    *size -= (size_t)(end - *bytes) + 1;
    *bytes = end + 1;
    return line;
}

static char folder[64];

static void remove_folder(void)
{
    struct err err;
    file_remove_tree(folder, &err);
}

const char *fuzz_folder(void)
{
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s/gpuctl-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        FUZZ_MUST(mkdtemp(folder) != NULL);
        atexit(remove_folder);
    }
    return folder;
}

const char *fuzz_file(const char *name, const uint8_t *bytes, size_t size)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    autoclose int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_MUST(file >= 0 && file_write_all(file, bytes, size));
    return path;
}

bool fuzz_planted(const uint8_t *bytes, size_t size)
{
    FUZZ_MUST(size < 4 || memcmp(bytes, "bug!", 4) != 0);
    return true;
}
