/* SPDX-License-Identifier: Apache-2.0 */
/* Derives each task of an array from the array's spec. The same spec and number give the same id and the same
 * words everywhere, so tasks need not be stored. jobspec_tasks.c checks that a sweep is valid. */
#include "proto/spec/tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/members.h"

/* --- ids --- */

#define HALF_BITS 40
#define HALF_MASK ((UINT64_C(1) << HALF_BITS) - 1)
#define ROUNDS    6

/* The five bits of one character of an id. */
static uint64_t digit_of(char character)
{
    return (uint64_t)(character >= 'a' ? character - 'a' : character - '2' + 26) & 31;
}

static uint64_t half_of(const char *digits)
{
    uint64_t half = 0;
    for (size_t i = 0; i < ID_LENGTH / 2; i++) {
        half = half << 5 | digit_of(digits[i]);
    }
    return half;
}

/* The finalizer of splitmix64 (Steele, Lea and Flood 2014): each bit of the result depends on all of x. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A Feistel network: a permutation of all 80 bits, so that different sums give different ids. */
static void permute(uint64_t *left, uint64_t *right)
{
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t swapped = *left ^ (mix(*right + round * UINT64_C(0x9e3779b97f4a7c15)) & HALF_MASK);
        *left = *right;
        *right = swapped;
    }
}

void task_id(const char *array_id, int64_t task, char ret_id[ID_LENGTH + 1])
{
    char whole[ID_LENGTH + 1] = "mmmmmmmmmmmmmmmm";
    size_t length = strnlen(array_id, ID_LENGTH);
    memcpy(whole, array_id, length); /* shorter ids occur in tests only */
    uint64_t left = half_of(whole), right = half_of(whole + ID_LENGTH / 2);
    right += (uint64_t)task + 1; /* so that task 0 has another id than the array */
    left = (left + (right >> HALF_BITS)) & HALF_MASK;
    right &= HALF_MASK;
    permute(&left, &right);
    uint8_t bytes[10];
    for (int i = 0; i < 5; i++) {
        bytes[i] = (uint8_t)(left >> (32 - 8 * i));
        bytes[5 + i] = (uint8_t)(right >> (32 - 8 * i));
    }
    text_id_from_bytes(bytes, ret_id);
}

bool task_reference(const char *text, size_t *ret_id_length, int64_t *ret_task)
{
    const char *dot = strchr(text, '.');
    if (dot == NULL || !text_to_int(dot + 1, 0, LIMIT_ARRAY_TASKS - 1, ret_task)) {
        return false;
    }
    *ret_id_length = (size_t)(dot - text);
    return true;
}

/* --- values --- */

/* The shortest text that reads back as the number. */
static char *spell_real(double number)
{
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number) {
            break;
        }
    }
    return xstrdup(text);
}

static char *spell(const json_t *value)
{
    if (json_is_real(value)) {
        return spell_real(json_real_value(value));
    }
    return json_is_integer(value) ? xprintf("%lld", (long long)json_integer_value(value))
                                  : xstrdup(json_string_value(value));
}

static char *longest(const json_t *list)
{
    char *best = xstrdup("");
    size_t index;
    const json_t *value;
    json_array_foreach (list, index, value) {
        char *text = spell(value);
        bool longer = strlen(text) > strlen(best);
        free(longer ? best : text);
        best = longer ? text : best;
    }
    return best;
}

int64_t task_values_count(const json_t *sweep)
{
    int64_t count = 1;
    const char *name;
    const json_t *list;
    json_object_foreach ((json_t *)(uintptr_t)sweep, name, list) {
        bool good = json_array_size(list) <= LIMIT_ARRAY_TASKS && count <= LIMIT_ARRAY_TASKS;
        count = good ? count * (int64_t)json_array_size(list) : LIMIT_ARRAY_TASKS + 1;
    }
    return count < LIMIT_ARRAY_TASKS + 1 ? count : LIMIT_ARRAY_TASKS + 1;
}

/* The tasks count like the digits of a number: the last name of the sweep changes fastest. */
void task_values_make(const json_t *sweep, int64_t tasks, int64_t task, struct task_values *ret_values)
{
    int64_t number = task == TASK_NONE ? tasks - 1 : task, span = tasks;
    ret_values->items[0] = (struct task_value){.name = "task", .text = xprintf("%lld", (long long)number)};
    ret_values->count = 1;
    const char *name;
    const json_t *list;
    json_object_foreach ((json_t *)(uintptr_t)sweep, name, list) {
        int64_t size = (int64_t)json_array_size(list);
        if (size == 0 || ret_values->count > LIMIT_SWEEP_NAMES) {
            break; /* not a valid sweep */
        }
        span = span > size ? span / size : 1;
        const json_t *value = json_array_get(list, (size_t)(number / span % size));
        ret_values->items[ret_values->count++] =
            (struct task_value){.name = name, .text = task == TASK_NONE ? longest(list) : spell(value)};
    }
}

void task_values_finish(struct task_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        free(values->items[i].text);
    }
    values->count = 0;
}

/* --- placeholders --- */

/* The value whose name is between this brace and the next; NULL: none. */
static const struct task_value *value_at(const struct task_values *values, const char *brace)
{
    for (size_t i = 0; i < values->count; i++) {
        size_t length = strlen(values->items[i].name);
        if (strncmp(brace + 1, values->items[i].name, length) == 0 && brace[1 + length] == '}') {
            return &values->items[i];
        }
    }
    return NULL;
}

void task_values_fill(const struct task_values *values, const char *text, struct text *out)
{
    text_append(out, "");
    while (*text != '\0') {
        size_t plain = strcspn(text, "{");
        text_append_bytes(out, text, plain);
        text += plain;
        const struct task_value *value = *text == '{' ? value_at(values, text) : NULL;
        if (value != NULL) {
            text_append(out, value->text);
            text += strlen(value->name) + 2;
        } else if (*text == '{') {
            text_append(out, "{");
            text++;
        }
    }
}

/* null stays null. */
static json_t *filled(const struct task_values *values, const json_t *string)
{
    if (!json_is_string(string)) {
        return json_null();
    }
    autotext struct text text = {0};
    task_values_fill(values, json_string_value(string), &text);
    return json_string(text.bytes);
}

static void fill_command(struct job_spec *spec, const struct task_values *values)
{
    json_t *command = json_array();
    size_t index;
    const json_t *word;
    json_array_foreach (spec->command, index, word) {
        json_array_append_new(command, filled(values, word));
    }
    member_put(spec->json, "command", command);
    spec->command = command;
}

static void fill_env(struct job_spec *spec, const struct task_values *values)
{
    json_t *env = json_object();
    const char *name;
    const json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)spec->env, name, value) {
        member_put(env, name, filled(values, value));
    }
    member_put(spec->json, "env", env);
    spec->env = env;
}

void task_fill_spec(struct job_spec *spec, int64_t task)
{
    struct task_values values;
    json_t *copy = json_copy(spec->json); /* others may hold the old one; both keep the lent strings */
    json_decref(spec->json);
    spec->json = copy;
    task_values_make(spec->sweep, spec->tasks, task, &values);
    if (spec->command != NULL) {
        fill_command(spec, &values);
    }
    if (spec->env != NULL) {
        fill_env(spec, &values);
    }
    task_values_finish(&values);
}
