/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a target on the files of its corpus and on what a generator of chance makes of them: the same for the
 * same seed, with any compiler. Under a sanitizer a wrong access ends the process. The input at hand is in
 * the file that is named then: `fuzz TARGET FILE` runs it again. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/trace/harness/chance.h"

#define INPUT_BYTES 65536
#define INPUTS      64
#define MOST_STEPS  3

static const struct target {
    const char *name;
    bool (*run)(const uint8_t *bytes, size_t size);
} targets[] = {
#define TARGET_ROW(name) {#name, fuzz_##name},
    FUZZ_TARGETS(TARGET_ROW){"planted", fuzz_planted},
#undef TARGET_ROW
};
#define TARGETS (sizeof targets / sizeof targets[0])

static struct text inputs[INPUTS];
static size_t input_count;
static struct text current;
static char crash[64];

static void on_crash(int number)
{
    int fd = open(crash, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t written = fd >= 0 ? write(fd, current.bytes, current.length) : -1;
    written = write(STDERR_FILENO, crash, strlen(crash));
    written = write(STDERR_FILENO, " has the input\n", 15);
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

static void load(const char *folder)
{
    struct err err;
    autonames struct file_names names = {0};
    if (!file_list(folder, &names, &err)) {
        fprintf(stderr, "fuzz: %s\n", err.text);
        exit(2);
    }
    for (size_t i = 0; i < names.count && input_count < INPUTS; i++) {
        autofree char *path = xprintf("%s/%s", folder, names.items[i]);
        char *bytes;
        size_t length;
        if (!file_read(path, INPUT_BYTES, &bytes, &length, &err)) {
            fprintf(stderr, "fuzz: %s\n", err.text);
            exit(2);
        }
        text_append_bytes(&inputs[input_count++], bytes, length);
        free(bytes);
    }
}

/* --- changes -------------------------------------------------------------------------------------------- */

static void put_input(const struct text *from)
{
    text_clear(&current);
    text_append_bytes(&current, from->bytes, from->length);
}

static void replace(size_t at, size_t removed, const char *bytes, size_t length)
{
    struct text made = {0};
    text_append_bytes(&made, current.bytes, at);
    text_append_bytes(&made, bytes, length);
    text_append_bytes(&made, current.bytes + at + removed, current.length - at - removed);
    text_finish(&current);
    current = made;
}

static void change(struct chance *chance)
{
    static const char *const words[] = {
        "\"", "{",       "}",        "[",    "]",  ":",     ",",
        "\\", "\\u0000", "null",     "true", "-1", "1e999", "9223372036854775808",
        "\n", "\r\n",    " ",        "'",    "`",  "%00",   "..",
        "/",  "\xff",    "\xc3\xa9", "=",    "#"};
    size_t at = chance_below(chance, current.length + 1), left = current.length - at;
    size_t part = left > 0 ? chance_below(chance, left < 16 ? left : 16) + 1 : 0;
    char byte = (char)chance_below(chance, 256);
    switch (chance_below(chance, 7)) {
    case 0:
        replace(at, left > 0 ? 1 : 0, &byte, 1);
        break;
    case 1:
        replace(at, 0, &byte, 1);
        break;
    case 2:
        replace(at, part, NULL, 0);
        break;
    case 3: {
        const char *word = words[chance_below(chance, sizeof words / sizeof words[0])];
        replace(at, chance_of(chance, 50) ? part : 0, word, strlen(word));
        break;
    }
    case 4: {
        autofree char *copy = xstrndup(part > 0 ? current.bytes + at : "", part);
        replace(chance_below(chance, current.length + 1), 0, copy, strlen(copy));
        break;
    }
    case 5: { /* the rest of another input */
        const struct text *other = &inputs[chance_below(chance, input_count)];
        size_t from = chance_below(chance, other->length + 1);
        replace(at, left, other->bytes + from, other->length - from);
        break;
    }
    case 6:
        if (left > 0) {
            byte = (char)(current.bytes[at] ^ (1 << chance_below(chance, 8)));
            replace(at, 1, &byte, 1);
        }
        break;
    }
}

/* --- runs ----------------------------------------------------------------------------------------------- */

/* In memory of its own size, so that a sanitizer sees an access behind its end. */
static bool run(const struct target *target)
{
    autofree uint8_t *bytes = xalloc(current.length > 0 ? current.length : 1);
    memcpy(bytes, current.bytes != NULL ? current.bytes : "", current.length);
    return target->run(bytes, current.length);
}

static int run_corpus(const struct target *target)
{
    size_t taken = 0;
    for (size_t i = 0; i < input_count; i++) {
        put_input(&inputs[i]);
        taken += run(target);
    }
    if (taken == 0) {
        fprintf(stderr, "fuzz: no file of the corpus is what %s reads\n", target->name);
        return 1;
    }
    return 0;
}

static int run_chance(const struct target *target, uint64_t seed, long executions)
{
    struct chance chance = {seed * 2 + 1};
    long taken = 0;
    for (long i = 0; i < executions; i++) {
        put_input(&inputs[chance_below(&chance, input_count)]);
        for (uint64_t steps = chance_below(&chance, MOST_STEPS) + 1; steps > 0; steps--) {
            change(&chance);
        }
        taken += current.length <= INPUT_BYTES && run(target);
    }
    printf("%s: %ld executions, %ld taken\n", target->name, executions, taken);
    return 0;
}

static const struct target *target_named(const char *name)
{
    for (size_t i = 0; i < TARGETS; i++) {
        if (strcmp(targets[i].name, name) == 0) {
            return &targets[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct target *target = argc > 2 ? target_named(argv[1]) : NULL;
    struct err err;
    if (target == NULL || (argc != 3 && argc != 5)) {
        fprintf(stderr, "usage: fuzz TARGET CORPUS SEED EXECUTIONS\n       fuzz TARGET FILE\n");
        return 2;
    }
    if (argc == 3) {
        char *bytes;
        size_t length;
        if (!file_read(argv[2], INPUT_BYTES, &bytes, &length, &err)) {
            fprintf(stderr, "fuzz: %s\n", err.text);
            return 2;
        }
        text_append_bytes(&current, bytes, length);
        free(bytes);
        printf("%s\n", run(target) ? "taken" : "refused");
        text_finish(&current);
        return 0;
    }
    snprintf(crash, sizeof crash, "/tmp/gpuctl-fuzz-%s-%d", target->name, (int)getpid());
    signal(SIGABRT, on_crash);
    autofree char *folder = xprintf("%s/%s", argv[2], target->name);
    load(folder);
    int code = run_corpus(target) || run_chance(target, strtoull(argv[3], NULL, 10), atol(argv[4]));
    for (size_t i = 0; i < input_count; i++) {
        text_finish(&inputs[i]);
    }
    text_finish(&current);
    return code;
}
