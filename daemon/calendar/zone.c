/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files of the tz database as the C library does: a list of changes, and behind it a rule for all
 * later years. The library itself has one zone a process, so its functions cannot be used by threads. It
 * promises that any bytes are read or refused. cron.c has the schedules. */
#include "daemon/calendar/zone.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

#define FOLDER       "/usr/share/zoneinfo"
#define HEADER_BYTES 44
#define DAY_S        86400

/* The day of a year on which clocks change, and the time of that day. */
struct change_day {
    char kind; /* 'M': day `day` (0: Sunday) of week `week` (5: the last) of a month; 'J': day 1 to 365, never
                  February 29; 'N': day 0 to 365 */
    int month, week, day;
    int64_t time_s;
};

struct zone {
    size_t count; /* of changes */
    int64_t *times, *offsets;
    int64_t first_offset; /* before the first change */
    int64_t offset, summer_offset;
    bool changes;                 /* behind the last change the clocks are changed each year: */
    struct change_day begin, end; /* of summer_offset */
};

/* --- the rule: "CET-1CEST,M3.5.0,M10.5.0/3" ------------------------------------------------------------- */

static bool skip_name(const char **at)
{
    const char *from = *at;
    if (*from == '<') {
        *at = strchr(from, '>');
        return *at != NULL && *(*at)++ == '>';
    }
    while (isalpha((unsigned char)**at)) {
        ++*at;
    }
    return *at > from;
}

static bool read_number(const char **at, int most, int *ret_value)
{
    int value = 0;
    if (!isdigit((unsigned char)**at)) {
        return false;
    }
    while (isdigit((unsigned char)**at)) {
        value = value * 10 + (*(*at)++ - '0');
        if (value > most) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

/* "2", "-1:30" or "+03:00:00"; a week of hours at most. */
static bool read_time(const char **at, int64_t *ret_seconds)
{
    int parts[3] = {0};
    bool negative = **at == '-';
    *at += **at == '-' || **at == '+';
    for (int i = 0; i < 3; i++) {
        if (!read_number(at, i == 0 ? 167 : 59, &parts[i])) {
            return false;
        }
        if (**at != ':') {
            break;
        }
        ++*at;
    }
    int64_t seconds = parts[0] * 3600LL + parts[1] * 60 + parts[2];
    *ret_seconds = negative ? -seconds : seconds;
    return true;
}

static bool read_day(const char **at, struct change_day *ret_day)
{
    *ret_day = (struct change_day){.kind = 'N', .time_s = 2 * 3600};
    if (*(*at)++ != ',') {
        return false;
    }
    if (**at == 'M' || **at == 'J') {
        ret_day->kind = *(*at)++;
    }
    bool read = ret_day->kind != 'M'
                    ? read_number(at, 365, &ret_day->day)
                    : read_number(at, 12, &ret_day->month) && *(*at)++ == '.' &&
                          read_number(at, 5, &ret_day->week) && *(*at)++ == '.' &&
                          read_number(at, 6, &ret_day->day) && ret_day->month > 0 && ret_day->week > 0;
    if (!read || **at != '/') {
        return read;
    }
    ++*at;
    return read_time(at, &ret_day->time_s);
}

/* The rule counts to the west. */
static bool read_rule(const char *at, struct zone *zone)
{
    int64_t west;
    if (!skip_name(&at) || !read_time(&at, &west)) {
        return false;
    }
    zone->offset = -west;
    if (*at == '\0') {
        return true;
    }
    zone->changes = true;
    zone->summer_offset = zone->offset + 3600;
    if (!skip_name(&at)) {
        return false;
    }
    if (*at != ',') {
        if (!read_time(&at, &west)) {
            return false;
        }
        zone->summer_offset = -west;
    }
    return read_day(&at, &zone->begin) && read_day(&at, &zone->end) && *at == '\0';
}

static int64_t day_of(int year, int month, int day)
{
    struct tm date = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    return timegm(&date) / DAY_S;
}

/* When the clocks are changed that were `offset` ahead. */
static int64_t change_at(const struct change_day *change, int year, int64_t offset)
{
    bool leap = day_of(year, 3, 1) - day_of(year, 2, 28) == 2;
    int64_t day = day_of(year, 1, 1) + change->day;
    if (change->kind == 'J') {
        day -= change->day < 60 || !leap;
    } else if (change->kind == 'M') {
        int64_t first = day_of(year, change->month, 1);
        int64_t weekday = (first + 4) % 7; /* 1970 began on a Thursday */
        day = first + (change->day - weekday + 7) % 7 + 7 * (change->week - 1);
        day -= change->week == 5 && day >= day_of(year, change->month + 1, 1) ? 7 : 0;
    }
    return day * DAY_S + change->time_s - offset;
}

/* --- the file ------------------------------------------------------------------------------------------- */

static int64_t number_at(const uint8_t *bytes, int size)
{
    uint64_t value = bytes[0] >= 0x80 ? UINT64_MAX : 0;
    for (int i = 0; i < size; i++) {
        value = value << 8 | bytes[i];
    }
    return (int64_t)value;
}

/* The header of a block, whose times have `size` bytes. */
struct block {
    const uint8_t *bytes; /* behind the header */
    int64_t changes, types;
    size_t length;
};

static bool read_block(const uint8_t *bytes, size_t length, int size, struct block *ret_block)
{
    int64_t counts[6]; /* of marks, marks, leap seconds, changes, types, characters */
    if (length < HEADER_BYTES || memcmp(bytes, "TZif", 4) != 0) {
        return false;
    }
    for (int i = 0; i < 6; i++) {
        counts[i] = number_at(bytes + 20 + 4 * i, 4);
        if (counts[i] < 0 || counts[i] > LIMIT_ZONE_BYTES) {
            return false;
        }
    }
    int64_t needed =
        counts[0] + counts[1] + counts[2] * (size + 4) + counts[3] * (size + 1) + counts[4] * 6 + counts[5];
    *ret_block = (struct block){bytes + HEADER_BYTES, counts[3], counts[4], (size_t)needed};
    return counts[2] == 0 && counts[4] > 0 && length - HEADER_BYTES >= (size_t)needed;
}

static bool take_changes(const struct block *block, struct zone *zone)
{
    const uint8_t *kinds = block->bytes + 8 * block->changes, *types = kinds + block->changes;
    zone->count = (size_t)block->changes;
    zone->times = xzalloc((zone->count + 1) * sizeof *zone->times);
    zone->offsets = xzalloc((zone->count + 1) * sizeof *zone->offsets);
    zone->first_offset = number_at(types, 4);
    for (size_t i = 0; i < zone->count; i++) {
        zone->times[i] = number_at(block->bytes + 8 * i, 8);
        if (kinds[i] >= block->types || (i > 0 && zone->times[i] <= zone->times[i - 1])) {
            return false;
        }
        zone->offsets[i] = number_at(types + 6 * (size_t)kinds[i], 4);
    }
    return true;
}

static bool offsets_are_sound(const struct zone *zone)
{
    bool sound = llabs(zone->first_offset) <= DAY_S && llabs(zone->offset) <= DAY_S &&
                 llabs(zone->summer_offset) <= DAY_S;
    for (size_t i = 0; i < zone->count; i++) {
        sound = sound && llabs(zone->offsets[i]) <= DAY_S && llabs(zone->times[i]) < INT64_MAX / 4;
    }
    return sound;
}

/* A file has two blocks; the first, with short times, is for old programs. Behind the second is the rule. */
static bool decode(const uint8_t *bytes, size_t length, struct zone *zone)
{
    struct block block;
    if (!read_block(bytes, length, 4, &block) || bytes[4] < '2') {
        return false;
    }
    size_t skipped = HEADER_BYTES + block.length;
    if (!read_block(bytes + skipped, length - skipped, 8, &block) || !take_changes(&block, zone)) {
        return false;
    }
    const uint8_t *rule = block.bytes + block.length, *end = bytes + length;
    if (end - rule < 2 || *rule != '\n' || end[-1] != '\n') {
        return false;
    }
    autofree char *text = xstrndup((const char *)rule + 1, (size_t)(end - rule) - 2);
    return read_rule(text, zone) && offsets_are_sound(zone);
}

struct zone *zone_decode(const void *bytes, size_t length)
{
    struct zone *zone = xzalloc(sizeof *zone);
    if (decode(bytes, length, zone)) {
        return zone;
    }
    zone_close(zone);
    return NULL;
}

void zone_close(struct zone *zone)
{
    if (zone != NULL) {
        free(zone->times);
        free(zone->offsets);
        free(zone);
    }
}

/* "Europe/Berlin": nothing that leads out of the folder. */
static bool is_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
    size_t length = strlen(name);
    return length > 0 && length <= LIMIT_ZONE_NAME_BYTES && strspn(name, allowed) == length && name[0] != '/';
}

static struct zone *read_file(const char *name)
{
    if (!is_name(name)) {
        return NULL;
    }
    autofree char *path = xprintf(FOLDER "/%s", name);
    autofree char *bytes = NULL;
    size_t length = 0;
    struct err unread;
    return file_read(path, LIMIT_ZONE_BYTES, &bytes, &length, &unread) ? zone_decode(bytes, length) : NULL;
}

struct zone *zone_open(const char *name, struct err *err)
{
    struct zone *zone = strcmp(name, "UTC") == 0 ? xzalloc(sizeof *zone) : read_file(name);
    if (zone == NULL) {
        err_field(err, ERR_FIELD, "time_zone",
                  "write a name of the tz database, such as Europe/Berlin; it has to be in " FOLDER
                  " of the controller (package tzdata)",
                  "there is no time zone \"%.64s\"", name);
    }
    return zone;
}

/* --- spans ---------------------------------------------------------------------------------------------- */

/* Behind the last change: between two changes of the rule, of this year or one beside it. */
static struct zone_span span_of_rule(const struct zone *zone, int64_t at_s)
{
    struct zone_span span = {INT64_MIN, INT64_MAX, zone->offset};
    struct tm date;
    time_t at = at_s;
    if (!zone->changes || gmtime_r(&at, &date) == NULL) {
        return span;
    }
    for (int year = date.tm_year + 1899; year <= date.tm_year + 1901; year++) {
        const int64_t changes[] = {change_at(&zone->begin, year, zone->offset),
                                   change_at(&zone->end, year, zone->summer_offset)};
        for (int i = 0; i < 2; i++) {
            if (changes[i] > at_s) {
                span.end = changes[i] < span.end ? changes[i] : span.end;
            } else if (changes[i] > span.begin) {
                span.begin = changes[i];
                span.offset_s = i == 0 ? zone->summer_offset : zone->offset;
            }
        }
    }
    return span;
}

struct zone_span zone_span_at(const struct zone *zone, int64_t at_s)
{
    if (zone->count == 0 || at_s >= zone->times[zone->count - 1]) {
        struct zone_span span = span_of_rule(zone, at_s);
        if (zone->count > 0 && span.begin < zone->times[zone->count - 1]) {
            span.begin = zone->times[zone->count - 1];
        }
        return span;
    }
    size_t low = 0, high = zone->count - 1; /* the first change behind the moment is among these */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (zone->times[middle] > at_s) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return (struct zone_span){low > 0 ? zone->times[low - 1] : INT64_MIN, zone->times[low],
                              low > 0 ? zone->offsets[low - 1] : zone->first_offset};
}
