/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes numbers, durations, hex, ids, base64 and names. Readers are strict: they read a text whole
 * or refuse it, and then leave the outputs as they were. No locale matters. Callers check which values make
 * sense. */
#include "proto/base/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/clock.h"

#define DISTANCE_WORD 64 /* longer words are no option or field names and match nothing */

/* --- numbers and durations ------------------------------------------------------------------------------ */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Reads digits at *at and moves *at past them. Negative numbers are built downwards, so that INT64_MIN
 * fits. */
static bool read_digits(const char **at, bool negative, int64_t *ret_value)
{
    int64_t value = 0;
    if (!is_digit(**at)) {
        return false;
    }
    for (; is_digit(**at); (*at)++) {
        int64_t digit = **at - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

bool text_to_int(const char *string, int64_t min, int64_t max, int64_t *ret_value)
{
    bool negative = string[0] == '-';
    const char *at = string + negative;
    int64_t value;
    if (!read_digits(&at, negative, &value) || *at != '\0' || value < min || value > max) {
        return false;
    }
    *ret_value = value;
    return true;
}

struct unit {
    const char *name;
    int64_t ms;
};

/* The longest first: the parts of a duration come in this order. */
static const struct unit units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
#define UNITS (sizeof units / sizeof units[0])

/* The index of the unit at *at, and moves *at past it; UNITS when there is no unit. */
static size_t read_unit(const char **at)
{
    size_t length = 0;
    while (is_letter((*at)[length])) {
        length++;
    }
    for (size_t i = 0; i < UNITS; i++) {
        if (strlen(units[i].name) == length && memcmp(units[i].name, *at, length) == 0) {
            *at += length;
            return i;
        }
    }
    return UNITS;
}

/* Adds up parts such as "1d12h"; each unit comes at most once, longer ones first. */
static bool read_duration_parts(const char *at, int64_t *ret_ms)
{
    int64_t total = 0;
    size_t next = 0;
    do {
        int64_t value;
        if (!read_digits(&at, false, &value)) {
            return false;
        }
        size_t unit = read_unit(&at);
        if (unit == UNITS || unit < next || __builtin_mul_overflow(value, units[unit].ms, &value) ||
            __builtin_add_overflow(total, value, &total)) {
            return false;
        }
        next = unit + 1;
    } while (*at != '\0');
    *ret_ms = total;
    return true;
}

bool text_to_duration_ms(const char *string, int64_t *ret_ms)
{
    int64_t seconds;
    if (text_to_int(string, 0, INT64_MAX / 1000, &seconds)) {
        *ret_ms = seconds * 1000;
        return true;
    }
    return read_duration_parts(string, ret_ms);
}

bool text_to_size(const char *string, int64_t *ret_bytes)
{
    static const char letters[] = "KMGT";
    int64_t count, factor = 1;
    const char *at = string;
    if (!read_digits(&at, false, &count)) {
        return false;
    }
    const char *letter = is_letter((char)(*at | 0x20)) ? strchr(letters, *at & ~0x20) : NULL;
    if (letter != NULL) {
        factor <<= 10 * (letter - letters + 1);
        at++;
        bool spelled =
            *at == '\0' || strcasecmp(at, "B") == 0 || strcasecmp(at, "i") == 0 || strcasecmp(at, "iB") == 0;
        at = spelled ? "" : at;
    }
    return *at == '\0' && !__builtin_mul_overflow(count, factor, ret_bytes);
}

/* Prints "3 min", or "3 min 05 s" if there is a rest. */
static void print_two_units(char *buffer, size_t size, int64_t amount, int64_t ratio, const char *large,
                            const char *small)
{
    long long whole = amount / ratio;
    long long rest = amount % ratio;
    if (rest == 0) {
        snprintf(buffer, size, "%lld %s", whole, large);
    } else {
        snprintf(buffer, size, "%lld %s %02lld %s", whole, large, rest, small);
    }
}

void text_from_duration_ms(int64_t ms, char *buffer, size_t size)
{
    ms = ms > 0 ? ms : 0;
    int64_t seconds = ms / 1000;
    if (seconds < 1) {
        snprintf(buffer, size, "%lld ms", (long long)ms);
    } else if (seconds < 10) {
        snprintf(buffer, size, "%lld.%lld s", (long long)seconds, (long long)(ms % 1000 / 100));
    } else if (seconds < 60) {
        snprintf(buffer, size, "%lld s", (long long)seconds);
    } else if (seconds < 3600) {
        print_two_units(buffer, size, seconds, 60, "min", "s");
    } else if (seconds < 86400) {
        print_two_units(buffer, size, seconds / 60, 60, "h", "min");
    } else {
        print_two_units(buffer, size, seconds / 3600, 24, "d", "h");
    }
}

/* --- hex, ids, base64 ----------------------------------------------------------------------------------- */

void text_to_hex(const uint8_t *bytes, size_t length, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < length; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * length] = '\0';
}

/* The value of one hex digit, -1 for anything else. */
static int hex_value(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool text_from_hex(const char *hex, uint8_t *out, size_t length)
{
    if (strnlen(hex, 2 * length + 1) != 2 * length || strspn(hex, "0123456789abcdefABCDEF") != 2 * length) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        out[i] = (uint8_t)(hex_value(hex[2 * i]) << 4 | hex_value(hex[2 * i + 1]));
    }
    return true;
}

void text_id_from_bytes(const uint8_t bytes[10], char out[ID_LENGTH + 1])
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    for (size_t i = 0; i < ID_LENGTH; i++) {
        size_t bit = i * 5;
        unsigned pair = (unsigned)bytes[bit / 8] << 8 | (bit / 8 + 1 < 10 ? bytes[bit / 8 + 1] : 0U);
        out[i] = alphabet[pair >> (11 - bit % 8) & 31];
    }
    out[ID_LENGTH] = '\0';
}

void random_id(char out[ID_LENGTH + 1])
{
    uint8_t bytes[10];
    random_fill(bytes, sizeof bytes);
    text_id_from_bytes(bytes, out);
}

bool text_is_id(const char *string)
{
    return strspn(string, "abcdefghijklmnopqrstuvwxyz234567") == ID_LENGTH && string[ID_LENGTH] == '\0';
}

static const char base64_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *text_to_base64(const uint8_t *bytes, size_t length)
{
    if (length > SIZE_MAX / 4) {
        abort();
    }
    char *out = xalloc((length + 2) / 3 * 4 + 1);
    char *end = out;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t three = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? bytes[i + 2] : 0);
        *end++ = base64_alphabet[three >> 18];
        *end++ = base64_alphabet[three >> 12 & 63];
        *end++ = left > 1 ? base64_alphabet[three >> 6 & 63] : '=';
        *end++ = left > 2 ? base64_alphabet[three & 63] : '=';
    }
    *end = '\0';
    return out;
}

/* The value of every byte in the alphabet, 0xff for the others. */
static void fill_base64_values(uint8_t values[256])
{
    memset(values, 0xff, 256);
    for (uint8_t i = 0; i < 64; i++) {
        values[(unsigned char)base64_alphabet[i]] = i;
    }
}

/* Decodes digits (no padding) to out. The unused bits must be zero, so that each value has one spelling. */
static bool decode_base64(const char *string, size_t digits, uint8_t *out)
{
    uint8_t values[256];
    fill_base64_values(values);
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < digits; i++) {
        uint8_t value = values[(unsigned char)string[i]];
        if (value == 0xff) {
            return false;
        }
        bits = bits << 6 | value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            *out++ = (uint8_t)(bits >> held);
        }
    }
    return (bits & ((1U << held) - 1)) == 0;
}

bool text_from_base64(const char *string, size_t string_length, uint8_t **ret_bytes, size_t *ret_length)
{
    size_t digits = string_length;
    for (int padding = 0; padding < 2 && digits > 0 && string[digits - 1] == '='; padding++) {
        digits--;
    }
    if (string_length % 4 != 0 || digits % 4 == 1) {
        return false;
    }
    uint8_t *bytes = xalloc(digits / 4 * 3 + 3);
    if (!decode_base64(string, digits, bytes)) {
        free(bytes);
        return false;
    }
    *ret_bytes = bytes;
    *ret_length = digits * 6 / 8;
    return true;
}

/* --- names ---------------------------------------------------------------------------------------------- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool text_is_name(const char *string, size_t max)
{
    size_t length = 0;
    for (; string[length] != '\0'; length++) {
        char c = string[length];
        bool inside = length > 0 && (c == '.' || c == '_' || c == '-');
        if (length == max || !(is_digit(c) || is_letter(c) || inside)) {
            return false;
        }
    }
    return length > 0;
}

bool text_is_service(const char *owner)
{
    return strncmp(owner, TEXT_SERVICE, strlen(TEXT_SERVICE)) == 0;
}

bool text_is_owner(const char *string, size_t max)
{
    size_t prefix = text_is_service(string) ? strlen(TEXT_SERVICE) : 0;
    return text_is_name(string + prefix, max - prefix);
}

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Levenshtein distance, one row at a time. */
unsigned text_distance(const char *a, const char *b)
{
    size_t a_length = strnlen(a, DISTANCE_WORD + 1);
    size_t b_length = strnlen(b, DISTANCE_WORD + 1);
    if (a_length > DISTANCE_WORD || b_length > DISTANCE_WORD) {
        return DISTANCE_WORD + 1;
    }
    unsigned row[DISTANCE_WORD + 1];
    for (unsigned j = 0; j <= b_length; j++) {
        row[j] = j;
    }
    for (unsigned i = 1; i <= a_length; i++) {
        unsigned corner = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b_length; j++) {
            unsigned swapped = corner + (lower(a[i - 1]) != lower(b[j - 1]));
            corner = row[j];
            row[j] = least(row[j] + 1, row[j - 1] + 1, swapped);
        }
    }
    return row[b_length];
}
