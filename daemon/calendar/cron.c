/* SPDX-License-Identifier: Apache-2.0 */
/* Reads cron expressions as crontab(5) has them, and finds their next moment. It promises that a moment is
 * strictly later than the one before, that a time which the clocks leave out is due when they have been put
 * forward, and that a time which they show twice is due the first time. Expressions for every hour go by
 * elapsed time instead: they neither pause nor repeat. zone.c knows when clocks are changed. */
#include "daemon/calendar/cron.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"

#define DAY_S       86400
#define DAYS        (12 * 366) /* February 29 comes after 8 years at the latest */
#define EVERY_HOUR  0xffffff
#define FIELD_WORDS 12

/* --- reading -------------------------------------------------------------------------------------------- */

struct field {
    const char *name;
    int least, most;
    const char *words[FIELD_WORDS + 1]; /* of the values from least on; NULL behind the last */
};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

static const struct field fields[FIELDS] = {
    {"minute", 0, 59, {NULL}},
    {"hour", 0, 23, {NULL}},
    {"day of the month", 1, 31, {NULL}},
    {"month",
     1,
     12,
     {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", NULL}},
    {"day of the week", 0, 7, {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL}},
};

static const struct {
    const char *name, *text;
} short_forms[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
    {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"},
};

static bool refuse(const struct field *field, struct err *err)
{
    if (field == NULL) {
        return err_field(err, ERR_FIELD, "cron",
                         "minute, hour, day of the month, month, day of the week: \"0 3 * * mon-fri\", or "
                         "@hourly, @daily, @weekly, @monthly, @yearly",
                         "cron is no expression of five fields");
    }
    return err_field(err, ERR_FIELD, "cron", "write *, 5, 1-5, */10, 8-18/2 or a list of these: 1,15",
                     "cron has no %s from %d to %d where one belongs", field->name, field->least,
                     field->most);
}

/* A number or a word. */
static bool read_value(const char **at, const struct field *field, int *ret_value)
{
    int value = 0;
    for (int i = 0; field->words[i] != NULL; i++) {
        size_t length = strlen(field->words[i]);
        if (strncasecmp(*at, field->words[i], length) == 0) {
            *at += length;
            *ret_value = field->least + i;
            return true;
        }
    }
    if (!isdigit((unsigned char)**at)) {
        return false;
    }
    while (isdigit((unsigned char)**at) && value <= 99) {
        value = value * 10 + (*(*at)++ - '0');
    }
    *ret_value = value;
    return true;
}

/* "*", "5", "1-5", each but the second with a step: "/2". */
static bool read_part(const char **at, const struct field *field, uint64_t *bits)
{
    int low = field->least, high = field->most, step = 1;
    bool range = true;
    if (**at == '*') {
        ++*at;
    } else {
        if (!read_value(at, field, &low)) {
            return false;
        }
        range = **at == '-';
        high = low;
        if (range && (++*at, !read_value(at, field, &high))) {
            return false;
        }
        if (field == &fields[WEEKDAY] && range && high == 0 && low > 0) {
            high = 7; /* fri-sun */
        }
    }
    if (**at == '/' && range) {
        ++*at;
        if (!isdigit((unsigned char)**at) || !read_value(at, &fields[MINUTE], &step) || step == 0) {
            return false;
        }
    }
    if (low < field->least || high > field->most || low > high) {
        return false;
    }
    for (int value = low; value <= high; value += step) {
        *bits |= (uint64_t)1 << value;
    }
    return true;
}

static bool read_field(const char **at, const struct field *field, uint64_t *ret_bits, struct err *err)
{
    *ret_bits = 0;
    for (bool more = true; more;) {
        if (!read_part(at, field, ret_bits)) {
            return refuse(field, err);
        }
        more = **at == ',';
        *at += more;
    }
    if (**at != '\0' && **at != ' ' && **at != '\t') {
        return refuse(field, err);
    }
    *at += strspn(*at, " \t");
    return true;
}

bool cron_read(const char *text, struct cron *ret_cron, struct err *err)
{
    uint64_t bits[FIELDS];
    bool any[FIELDS];
    const char *at = text + strspn(text, " \t");
    for (size_t i = 0; i < sizeof short_forms / sizeof short_forms[0]; i++) {
        at = strcasecmp(at, short_forms[i].name) == 0 ? short_forms[i].text : at;
    }
    for (int i = 0; i < FIELDS; i++) {
        any[i] = *at == '*';
        if (*at == '\0' || *at == '@') {
            return refuse(NULL, err);
        }
        if (!read_field(&at, &fields[i], &bits[i], err)) {
            return false;
        }
    }
    if (*at != '\0') {
        return refuse(NULL, err);
    }
    *ret_cron = (struct cron){.minutes = bits[MINUTE],
                              .hours = bits[HOUR],
                              .days = bits[DAY],
                              .months = bits[MONTH],
                              .weekdays = (bits[WEEKDAY] | bits[WEEKDAY] >> 7) & 0x7f, /* 7 is Sunday, too */
                              .any_day = any[DAY],
                              .any_weekday = any[WEEKDAY]};
    return true;
}

/* --- the next moment ------------------------------------------------------------------------------------ */

/* Times of a clock are counted like seconds since 1970, as if it showed UTC. */

static bool has(uint64_t bits, int value)
{
    return (bits >> value & 1) != 0;
}

/* Where both fields of days are restricted, one of them is enough. */
static bool is_day(const struct cron *cron, const struct tm *date)
{
    bool day = has(cron->days, date->tm_mday), weekday = has(cron->weekdays, date->tm_wday);
    return has(cron->months, date->tm_mon + 1) &&
           (cron->any_day || cron->any_weekday ? day && weekday : day || weekday);
}

/* The first fitting minute of a day from this one on; DAY_S: none. */
static int64_t minute_from(const struct cron *cron, int64_t second)
{
    for (int64_t minute = (second + 59) / 60; minute < DAY_S / 60; minute++) {
        if (has(cron->hours, (int)(minute / 60)) && has(cron->minutes, (int)(minute % 60))) {
            return minute * 60;
        }
    }
    return DAY_S;
}

/* The first fitting time of a clock from this one on; INT64_MAX: none. */
static int64_t clock_from(const struct cron *cron, int64_t clock_s)
{
    int64_t second = (clock_s % DAY_S + DAY_S) % DAY_S, day_s = clock_s - second;
    for (int i = 0; i < DAYS; i++, day_s += DAY_S, second = 0) {
        struct tm date;
        time_t noon = day_s + DAY_S / 2;
        int64_t found =
            gmtime_r(&noon, &date) != NULL && is_day(cron, &date) ? minute_from(cron, second) : DAY_S;
        if (found < DAY_S) {
            return day_s + found;
        }
    }
    return INT64_MAX;
}

/* Walks the spans of the zone. passed_s is the time of the clock at the end of the span before: what is
 * between it and the time at which the span begins was left out, or is shown again. */
static int64_t next_s(const struct cron *cron, const struct zone *zone, int64_t after_s)
{
    bool every_hour = cron->hours == EVERY_HOUR;
    struct zone_span span = zone_span_at(zone, after_s);
    int64_t passed_s =
        span.begin == INT64_MIN ? INT64_MIN : span.begin + zone_span_at(zone, span.begin - 1).offset_s;
    for (int i = 0; i < DAYS; i++) {
        bool entered = span.begin > after_s;
        int64_t clock_s = (entered ? span.begin : after_s + 1) + span.offset_s;
        if (!every_hour && entered && passed_s < clock_s && clock_from(cron, passed_s) < clock_s) {
            return span.begin;
        }
        int64_t found_s = clock_from(cron, !every_hour && passed_s > clock_s ? passed_s : clock_s);
        if (found_s == INT64_MAX || found_s - span.offset_s < span.end) {
            return found_s == INT64_MAX ? INT64_MAX : found_s - span.offset_s;
        }
        passed_s = span.end + span.offset_s;
        span = zone_span_at(zone, span.end);
    }
    return INT64_MAX;
}

int64_t cron_next_ms(const struct cron *cron, const struct zone *zone, int64_t after_ms)
{
    int64_t found_s = next_s(cron, zone, after_ms / 1000);
    return found_s == INT64_MAX ? INT64_MAX : found_s * 1000;
}
