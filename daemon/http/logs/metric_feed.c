/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses lines of metrics and makes pages and events of them. Each line of the pieces comes once and in
 * order, also behind an id inside a piece. No call looks at more than its budget, whatever the lines hold. */
#include "daemon/http/logs/metric_feed.h"

#include <string.h>

#include "daemon/blob/metric_line.h"
#include "daemon/http/request/sse.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

/* --- lines ---------------------------------------------------------------------------------------------- */

static bool is_chosen(const struct metric_line *line, const struct metric_filter *filter, bool progress)
{
    bool point = line->kind == METRIC_POINT;
    return line->rank < filter->ranks && (filter->rank < 0 || line->rank == filter->rank) &&
           (point || progress) && (filter->name == NULL || (point && strcmp(line->name, filter->name) == 0));
}

/* The next line that the filter chooses; the caller finishes it. Sets at behind the line, *ret_before to
 * where the line starts. false: there is none in the piece, or the budget is used up. */
static bool next_line(struct metric_lines *lines, const struct metric_filter *filter, bool progress,
                      struct metric_line *ret_line, size_t *ret_before)
{
    while (lines->at < lines->piece.length && lines->budget > 0) {
        const char *bytes = lines->piece.bytes + lines->at;
        const char *end = memchr(bytes, '\n', lines->piece.length - lines->at);
        size_t length = (size_t)(end - bytes); /* pieces of metrics are whole lines */
        *ret_before = lines->at;
        lines->at += length + 1;
        lines->budget -= (int64_t)length + METRIC_LINE_COST;
        if (metric_line_read(bytes, length, ret_line)) {
            if (is_chosen(ret_line, filter, progress)) {
                return true;
            }
            metric_line_finish(ret_line);
        }
    }
    return false;
}

/* A piece without lines says that the reader looked at as much as it gives at once. */
static void charge_piece(struct metric_lines *lines)
{
    lines->budget -= lines->piece.length == 0 ? LIMIT_LOG_PIECE_BYTES : 0;
}

/* --- pages ---------------------------------------------------------------------------------------------- */

struct page {
    const struct metric_filter *filter;
    int64_t limit, rows;
    struct metric_lines lines;
    struct text *out;
};

/* Adds the points of the piece; false: there is one more, or more to look at, than the page takes. */
static bool page_add(struct page *page)
{
    struct metric_line line;
    size_t before;
    while (next_line(&page->lines, page->filter, false, &line, &before)) {
        bool room = page->rows < page->limit;
        if (room) {
            member_separate(page->out);
            metric_line_encode(&line, page->out);
            page->rows++;
        }
        metric_line_finish(&line);
        if (!room) {
            page->lines.at = before;
            return false;
        }
    }
    return page->lines.budget > 0;
}

bool metric_page(struct log_reader *reader, const struct metric_filter *filter, int64_t *limit,
                 struct text *out, char ret_next[LOG_ID_BYTES], struct err *err)
{
    struct page page = {
        .filter = filter, .limit = *limit, .lines = {.budget = LIMIT_METRIC_PAGE_BYTES}, .out = out};
    bool found = true;
    do {
        page.lines.at = 0;
        if (!log_reader_next(reader, &found, &page.lines.piece, err)) {
            return false;
        }
        charge_piece(&page.lines);
    } while (found && page_add(&page));
    ret_next[0] = '\0';
    if (found) {
        log_piece_id(&page.lines.piece, page.lines.at, ret_next);
    }
    *limit -= page.rows;
    return true;
}

/* --- events --------------------------------------------------------------------------------------------- */

static void append_event(const struct metric_lines *lines, const struct metric_line *line, const char *prefix,
                         struct text *out)
{
    autotext struct text data = {0};
    autotext struct text whole = {0};
    char id[LOG_ID_BYTES];
    log_piece_id(&lines->piece, lines->at, id);
    text_printf(&whole, "%s%s", prefix, id);
    metric_line_encode(line, &data);
    sse_append(out, whole.bytes, line->kind == METRIC_POINT ? "metric" : "progress", data.bytes, data.length);
}

bool metric_events(struct metric_lines *lines, const struct metric_filter *filter, const char *prefix,
                   struct text *out)
{
    struct metric_line line;
    size_t before;
    charge_piece(lines);
    while (out->length < LIMIT_SSE_FILL_BYTES && next_line(lines, filter, true, &line, &before)) {
        append_event(lines, &line, prefix, out);
        metric_line_finish(&line);
    }
    return lines->at >= lines->piece.length && lines->budget > 0;
}
