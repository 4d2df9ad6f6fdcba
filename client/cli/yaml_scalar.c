/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the core schema: which unquoted words are no text. It promises that a number is carried over or
 * refused, never rounded to another whole number. */
#include "client/cli/yaml_scalar.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static const char *past_sign(const char *word)
{
    return word + (*word == '-' || *word == '+');
}

static bool only(const char *word, const char *allowed)
{
    return *word != '\0' && word[strspn(word, allowed)] == '\0';
}

/* The base of a whole number, 0 for what is none. */
static int base_of(const char *word)
{
    if (strncmp(word, "0x", 2) == 0) {
        return only(word + 2, "0123456789abcdefABCDEF") ? 16 : 0;
    }
    if (strncmp(word, "0o", 2) == 0) {
        return only(word + 2, "01234567") ? 8 : 0;
    }
    return only(past_sign(word), "0123456789") ? 10 : 0;
}

/* [-+] ( . digits | digits [ . digits ] ) [ e [-+] digits ] */
static bool is_real(const char *word)
{
    static const char *const digits = "0123456789";
    const char *at = past_sign(word);
    size_t whole = strspn(at, digits);
    at += whole;
    size_t fraction = 0;
    if (*at == '.') {
        fraction = strspn(++at, digits);
        at += fraction;
    }
    if (whole + fraction == 0) {
        return false;
    }
    if (*at == 'e' || *at == 'E') {
        return only(past_sign(at + 1), digits);
    }
    return *at == '\0';
}

static bool is_no_number(const char *word)
{
    const char *unsigned_word = past_sign(word);
    return is_one_of(word, ".nan", ".NaN", ".NAN") || is_one_of(unsigned_word, ".inf", ".Inf", ".INF");
}

static const char *read_number(const char *word, int base, json_t **ret_value)
{
    errno = 0;
    long long whole = base != 0 ? strtoll(base == 10 ? word : word + 2, NULL, base) : 0;
    double real = base == 0 ? strtod(word, NULL) : 0;
    if ((base != 0 && errno != 0) || !isfinite(real)) {
        return "the number does not fit into 64 bits";
    }
    *ret_value = base != 0 ? json_integer(whole) : json_real(real);
    return NULL;
}

const char *yaml_plain(const char *word, json_t **ret_value)
{
    int base = base_of(word);
    if (is_no_number(word)) {
        return "NaN and infinity cannot be values here";
    }
    if (base != 0 || is_real(word)) {
        return read_number(word, base, ret_value);
    }
    if (*word == '\0' || strcmp(word, "~") == 0 || is_one_of(word, "null", "Null", "NULL")) {
        *ret_value = json_null();
    } else if (is_one_of(word, "true", "True", "TRUE")) {
        *ret_value = json_true();
    } else if (is_one_of(word, "false", "False", "FALSE")) {
        *ret_value = json_false();
    } else {
        *ret_value = json_string(word);
    }
    return NULL;
}
