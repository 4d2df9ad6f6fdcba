/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of wall-clock times as the API writes them. It promises RFC 3339 and nothing else: a date
 * that exists, a time of day, an offset; and for what people write, how long after a time that is given. It
 * reads neither clock nor time zone; writing is in clock.c. */
#include "proto/base/text.h"

/* What is left of a text while it is read; at is NULL after the first fault. */
struct scan {
    const char *at;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Exactly count digits whose value lies in min..max. */
static int scan_number(struct scan *scan, int count, int min, int max)
{
    int value = 0;
    for (int i = 0; i < count && scan->at != NULL; i++) {
        bool digit = is_digit(*scan->at);
        value = digit ? value * 10 + (*scan->at - '0') : value;
        scan->at = digit ? scan->at + 1 : NULL;
    }
    if (value < min || value > max) {
        scan->at = NULL;
    }
    return value;
}

/* One character out of those in allowed; NUL at a fault. */
static char scan_character(struct scan *scan, const char *allowed)
{
    for (; scan->at != NULL && *allowed != '\0'; allowed++) {
        if (*scan->at == *allowed) {
            scan->at++;
            return *allowed;
        }
    }
    scan->at = NULL;
    return '\0';
}

/* Days from 1970-01-01 to a date of the Gregorian calendar. Years start in March here, so that the leap day
 * is their last, and an era is the 400 years after which the calendar repeats. */
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

static int64_t scan_days(struct scan *scan)
{
    int year = scan_number(scan, 4, 0, 9999);
    scan_character(scan, "-");
    int month = scan_number(scan, 2, 1, 12);
    scan_character(scan, "-");
    int day = scan_number(scan, 2, 1, scan->at != NULL ? days_in(year, month) : 31);
    return scan->at != NULL ? days_of(year, month, day) : 0;
}

/* The digits behind a point, at least one; what is finer than a millisecond is cut off. */
static int scan_fraction_ms(struct scan *scan)
{
    int ms = scan_number(scan, 1, 0, 9) * 100;
    for (int weight = 10; scan->at != NULL && is_digit(*scan->at); weight /= 10) {
        ms += weight * (*scan->at++ - '0');
    }
    return ms;
}

static int64_t scan_time_ms(struct scan *scan)
{
    int hour = scan_number(scan, 2, 0, 23);
    scan_character(scan, ":");
    int minute = scan_number(scan, 2, 0, 59);
    scan_character(scan, ":");
    int second = scan_number(scan, 2, 0, 59);
    int ms = 0;
    if (scan->at != NULL && *scan->at == '.') {
        scan->at++;
        ms = scan_fraction_ms(scan);
    }
    return ((hour * 60 + minute) * 60 + second) * 1000 + ms;
}

static int64_t scan_offset_ms(struct scan *scan)
{
    char sign = scan_character(scan, "Zz+-");
    if (sign != '+' && sign != '-') {
        return 0;
    }
    int hour = scan_number(scan, 2, 0, 23);
    scan_character(scan, ":");
    int minutes = hour * 60 + scan_number(scan, 2, 0, 59);
    return (sign == '-' ? -1 : 1) * (int64_t)minutes * 60000;
}

bool text_to_wall_ms(const char *string, int64_t *ret_wall_ms)
{
    struct scan scan = {.at = string};
    int64_t days = scan_days(&scan);
    scan_character(&scan, "Tt");
    int64_t time_ms = scan_time_ms(&scan);
    int64_t offset_ms = scan_offset_ms(&scan);
    if (scan.at == NULL || *scan.at != '\0') {
        return false;
    }
    *ret_wall_ms = days * 86400000 + time_ms - offset_ms;
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
