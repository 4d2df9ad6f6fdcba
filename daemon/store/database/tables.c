/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the tables of the store: their columns, and the statements that are alike for all of them. All
 * of it follows from the lists of rows.h. query.c moves the values. */
#include "daemon/store/database/tables.h"

#include <assert.h>
#include <string.h>

#include "proto/limits_controller.h"

#define COLUMN_WORD(type)    COLUMN_##type
#define COLUMN_MOMENTS(type) COLUMN_MOMENTS
#define COLUMN_AT(S, type, name, role, field)                                                                \
    {#name, COLUMN_##type, ROLE_##role, offsetof(struct S, field), sizeof(((struct S *)0)->field)},
#define AS_COLUMN(S, type, name, role)       COLUMN_AT(S, type, name, role, name)
#define AS_BIRTH_COLUMN(S, type, name, role) COLUMN_AT(S, type, name, role, birth.name)
#define AS_LIFE_COLUMN(S, type, name, role)  COLUMN_AT(S, type, name, role, life.name)

static const struct column jobs_columns[] = {JOB_BIRTH_ROW(AS_BIRTH_COLUMN, job_row)
                                                 JOB_LIFE_ROW(AS_LIFE_COLUMN, job_row)};
#define AS_COLUMNS(table, row, COLUMNS)                                                                      \
    static const struct column table##_columns[] = {COLUMNS(AS_COLUMN, row##_row)};
ROW_TABLES(AS_COLUMNS)

#define AS_TABLE(table, ...)                                                                                 \
    [TABLE_##table] = {#table, table##_columns, sizeof table##_columns / sizeof table##_columns[0]},
const struct table tables[TABLE_COUNT] = {AS_TABLE(jobs) ROW_TABLES(AS_TABLE)};

/* --- words ---------------------------------------------------------------------------------------------- */

#define DEFINE_WORD(type)                                                                                    \
    static_assert(sizeof(enum type) == sizeof(unsigned), "fields of words are read as numbers");             \
    static const char *type##_word(unsigned value)                                                           \
    {                                                                                                        \
        return type##_text((enum type)value);                                                                \
    }                                                                                                        \
    static bool type##_value(const char *word, unsigned *ret_value)                                          \
    {                                                                                                        \
        enum type value;                                                                                     \
        bool known = type##_from_text(word, &value);                                                         \
        *ret_value = known ? (unsigned)value : 0;                                                            \
        return known;                                                                                        \
    }
TABLE_WORDS(DEFINE_WORD)

static const struct {
    const char *(*word)(unsigned value);
    bool (*value)(const char *word, unsigned *ret_value);
} words[] = {
#define AS_WORD(type) [COLUMN_##type] = {type##_word, type##_value},
    TABLE_WORDS(AS_WORD)
#undef AS_WORD
};

const char *table_word(enum column_type type, unsigned value)
{
    return words[type].word(value);
}

bool table_word_value(enum column_type type, const char *word, unsigned *ret_value)
{
    return words[type].value(word, ret_value);
}

/* --- statements ----------------------------------------------------------------------------------------- */

#define ROLE_OWN (ROLE_ALL & ~ROLE_SHARED)

/* A column is called as its field in the code, but for those that databases of earlier versions call
 * otherwise. */
static const char *spelling(const char *name)
{
    return strcmp(name, "attempt_id") == 0 ? "epoch" : name;
}

/* Each part lists columns of some roles, each in a form in which @ is its name, # its place, % the table. */
static const struct part {
    const char *name;
    unsigned roles;
    const char *separator, *form;
    int rows; /* that it is for; 0: one, without parentheses */
} parts[] = {
    {"", ROLE_ALL, ", ", "%.@", 0},
    {"columns ", ROLE_ALL, ", ", "@", 0},
    {"values ", ROLE_ALL, ", ", "?#", 0},
    {"rows ", ROLE_ALL, ", ", "?#", STORE_INSERT_ROWS},
    {"keys ", ROLE_KEY, ", ", "@", 0},
    {"where ", ROLE_KEY, " AND ", "@ = ?#", 0},
    {"set ", ROLE_LIFE, ", ", "@ = ?#", 0},
    {"replace ", ROLE_LIFE, ", ", "@ = excluded.@", 0},
    {"own columns ", ROLE_OWN, ", ", "@", 0},
    {"own values ", ROLE_OWN, ", ", "?#", 0},
    {"shared columns ", ROLE_SHARED, ", ", "@", 0},
};

static void add_column(struct text *out, const char *form, const struct table *table, int row, int place)
{
    for (; *form != '\0'; form++) {
        if (*form == '@') {
            text_append(out, spelling(table->columns[place].name));
        } else if (*form == '#') {
            text_printf(out, "%d", row * table->count + place + 1);
        } else if (*form == '%') {
            text_append(out, table->name);
        } else {
            text_append_bytes(out, form, 1);
        }
    }
}

static void add_columns(struct text *out, const struct part *part, const struct table *table, int row)
{
    const char *separator = "";
    for (int i = 0; i < table->count; i++) {
        if ((table->columns[i].role & part->roles) != 0) {
            text_append(out, separator);
            add_column(out, part->form, table, row, i);
            separator = part->separator;
        }
    }
}

static void add_rows(struct text *out, const struct part *part, const struct table *table)
{
    for (int row = 0; row < part->rows; row++) {
        text_append(out, row > 0 ? ", (" : "(");
        add_columns(out, part, table, row);
        text_append(out, ")");
    }
}

static const struct table *find_table(const char *name, size_t length)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (strlen(tables[i].name) == length && memcmp(name, tables[i].name, length) == 0) {
            return &tables[i];
        }
    }
    return NULL;
}

/* Appends the part of a table that stands between braces, if it is one. */
static bool add_part(struct text *out, const char *words_of_part, size_t length)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t before = strlen(parts[i].name);
        if (before < length && memcmp(words_of_part, parts[i].name, before) == 0) {
            const struct table *table = find_table(words_of_part + before, length - before);
            if (table != NULL) {
                if (parts[i].rows > 0) {
                    add_rows(out, &parts[i], table);
                } else {
                    add_columns(out, &parts[i], table, 0);
                }
                return true;
            }
        }
    }
    return false;
}

void table_sql(const char *text, struct text *out)
{
    for (size_t length; *text != '\0'; text += length) {
        length = strcspn(text, "}");
        if (*text == '{' && add_part(out, text + 1, length - 1)) {
            length++;
        } else {
            length = 1 + strcspn(text + 1, "{");
            text_append_bytes(out, text, length);
        }
    }
}
