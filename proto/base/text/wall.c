/* SPDX-License-Identifier: Apache-2.0 */
/* Reads wall-clock times as the API writes them: RFC 3339 and nothing else, with a date that exists, a time
 * of day and an offset. For text written by people it also reads a duration from a given time on. It reads
 * neither clock nor time zone; clock.c writes times. */
#include "proto/base/text/text.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Does the text begin as the form does? In it `0` stands for a digit, `T` for either case, `+` for a sign. */
static bool fits(const char *text, const char *form)
{
    for (; *form != '\0'; text++, form++) {
        bool good = *form == '0'   ? is_digit(*text)
                    : *form == 'T' ? *text == 'T' || *text == 't'
                    : *form == '+' ? *text == '+' || *text == '-'
                                   : *text == *form;
        if (!good) {
            return false;
        }
    }
    return true;
}

/* Of so many digits. */
static int number(const char *text, int digits)
{
    int value = 0;
    while (digits-- > 0) {
        value = value * 10 + (*text++ - '0');
    }
    return value;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar. Years start in March here, so that the leap day
 * is the last day of the year. An era is the 400 years after which the calendar repeats. */
static int64_t days_of(int year, int month, int day)
{
    int64_t march_year = month > 2 ? year : year - 1;
    int64_t era = (march_year >= 0 ? march_year : march_year - 399) / 400;
    int64_t year_of_era = march_year - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

/* Reads the digits after a point, at least one; digits finer than a millisecond are cut off. */
static int take_fraction_ms(const char **at)
{
    int ms = 0;
    if (fits(*at, ".0")) {
        (*at)++;
        for (int weight = 100; is_digit(**at); weight /= 10) {
            ms += weight * (*(*at)++ - '0');
        }
    }
    return ms;
}

/* false: no offset, or something behind it. */
static bool read_offset_ms(const char *at, int64_t *ret_ms)
{
    if (fits(at, "+00:00") && at[6] == '\0' && number(at + 1, 2) <= 23 && number(at + 4, 2) <= 59) {
        *ret_ms = (at[0] == '-' ? -60000 : 60000) * (int64_t)(number(at + 1, 2) * 60 + number(at + 4, 2));
        return true;
    }
    *ret_ms = 0;
    return (at[0] == 'Z' || at[0] == 'z') && at[1] == '\0';
}

bool text_to_wall_ms(const char *string, int64_t *ret_wall_ms)
{
    static const char form[] = "0000-00-00T00:00:00";
    if (!fits(string, form)) {
        return false;
    }
    int year = number(string, 4), month = number(string + 5, 2), day = number(string + 8, 2);
    int hour = number(string + 11, 2), minute = number(string + 14, 2), second = number(string + 17, 2);
    const char *at = string + sizeof form - 1;
    int ms = take_fraction_ms(&at);
    int64_t offset_ms;
    if (month < 1 || month > 12 || day < 1 || day > days_in(year, month) || hour > 23 || minute > 59 ||
        second > 59 || !read_offset_ms(at, &offset_ms)) {
        return false;
    }
    *ret_wall_ms = days_of(year, month, day) * 86400000 +
                   ((int64_t)(hour * 60 + minute) * 60 + second) * 1000 + ms - offset_ms;
    return true;
}

bool text_to_moment_ms(const char *string, int64_t now_wall_ms, int64_t *ret_wall_ms)
{
    int64_t ms;
    if (string[0] != '+') {
        return text_to_wall_ms(string, ret_wall_ms);
    }
    if (!text_to_duration_ms(string + 1, &ms) || ms > INT64_MAX - now_wall_ms) {
        return false;
    }
    *ret_wall_ms = now_wall_ms + ms;
    return true;
}
