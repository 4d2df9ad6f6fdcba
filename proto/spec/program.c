/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the program that a command is about: the script or the module behind an interpreter or a launcher,
 * else the first word. It knows Python and the launchers of ranks; another command is called by its first
 * word, and so is one whose script it does not find. */
#include "proto/spec/program.h"

#include <stdbool.h>
#include <string.h>

static const char *word_at(const json_t *command, size_t index)
{
    const char *word = json_string_value(json_array_get(command, index));
    return word != NULL ? word : "";
}

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words != NULL && strcmp(word, *words) != 0) {
        words++;
    }
    return *words != NULL;
}

static bool is_script(const char *word)
{
    size_t length = strlen(word);
    return length > 3 && word[0] != '-' && strcmp(word + length - 3, ".py") == 0;
}

/* Which options of a launcher take a value is not known here, so only a name that ends in ".py" is a script.
 */
static const char *launched_by(const json_t *command, size_t index)
{
    for (; index < json_array_size(command); index++) {
        const char *word = word_at(command, index);
        if (is_script(word)) {
            return word;
        }
        if (strcmp(word, "-m") == 0 || strcmp(word, "--module") == 0) {
            return word_at(command, index + 1);
        }
    }
    return "";
}

/* The script or the module; "" for a program that stands in the command, or on stdin. */
static const char *run_by_python(const json_t *command)
{
    static const char *const with_value[] = {"-X", "-W", NULL};
    static const char *const launchers[] = {"torch.distributed.run", "torch.distributed.launch",
                                            "accelerate.commands.launch", NULL};
    for (size_t i = 1; i < json_array_size(command); i++) {
        const char *word = word_at(command, i);
        if (strcmp(word, "-m") == 0) {
            const char *module = word_at(command, i + 1);
            const char *script = is_one_of(module, launchers) ? launched_by(command, i + 2) : "";
            return script[0] != '\0' ? script : module;
        }
        if (strcmp(word, "-c") == 0) {
            return "";
        }
        if (word[0] != '-') {
            return word;
        }
        i += is_one_of(word, with_value);
    }
    return "";
}

/* Cuts no character of UTF-8 in two. */
static void copy_cut(const char *text, char ret_program[PROGRAM_BYTES])
{
    size_t length = strlen(text);
    if (length >= PROGRAM_BYTES) {
        length = PROGRAM_BYTES - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    memcpy(ret_program, text, length);
    ret_program[length] = '\0';
}

void program_of(const json_t *command, char ret_program[PROGRAM_BYTES])
{
    static const char *const launchers[] = {"torchrun", "accelerate", "deepspeed", NULL};
    const char *first = basename(word_at(command, 0));
    const char *found = "";
    if (strncmp(first, "python", strlen("python")) == 0) {
        found = basename(run_by_python(command));
    } else if (is_one_of(first, launchers)) {
        found = basename(launched_by(command, 1));
    }
    copy_cut(found[0] != '\0' ? found : first, ret_program);
}
