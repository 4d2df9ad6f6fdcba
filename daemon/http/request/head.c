/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the library read the head of a request as it was sent. MHD 0.9 takes a lone LF for the end
 * of a line, ends texts at a NUL that was sent, and joins a folded line to the name of the header before
 * it, so that "Content-Leng: 5", folded with "th", becomes a Content-Length. The texts do not show that,
 * but their addresses do: the library cuts the head in place, by writing NULs over separators. In a head
 * that has one meaning each text begins exactly one separator behind the end of the one before it. Any
 * other head is refused. gate.c checks the texts themselves. Also reads Range headers. */
#include "daemon/http/request/head.h"

#include <stdlib.h>
#include <string.h>

#define SPACE_BYTES 1 /* between the parts of the first line */
#define COLON_BYTES 1
#define CRLF_BYTES  2

static void follow(struct head *head, const char *text, size_t length, size_t separator)
{
    head->straight = head->straight && text == head->next;
    head->next = text + length + separator;
}

void head_begin(struct head *head, const char *method, const char *uri, size_t uri_length,
                const char *version)
{
    *head = (struct head){.begin = method, .next = method, .straight = true};
    follow(head, method, strlen(method), SPACE_BYTES);
    follow(head, uri, uri_length, SPACE_BYTES);
    follow(head, version, strlen(version), CRLF_BYTES);
}

void head_header(struct head *head, const char *name, const char *value)
{
    follow(head, name, strlen(name), COLON_BYTES);
    if (head->straight) {
        head->next += strspn(head->next, " \t");
    }
    follow(head, value, strlen(value), CRLF_BYTES);
}

bool head_end(const struct head *head, size_t length, struct err *err)
{
    if (head->straight && head->next + CRLF_BYTES == head->begin + length) {
        return true;
    }
    return err_set(err, ERR_MALFORMED,
                   "the request's first line or a header has a NUL, a lone LF, a folded line, "
                   "or spaces that do not belong there");
}

/* "2-4", "7-", "-3": digits alone, so that no sign turns a number into another. */
bool head_range(const char *range, int64_t size, int64_t *ret_first, int64_t *ret_last)
{
    static const char unit[] = "bytes=", digits[] = "0123456789";
    const char *from = strncmp(range, unit, strlen(unit)) == 0 ? range + strlen(unit) : "";
    const char *to = from + strspn(from, digits);
    if (*to++ != '-' || to[strspn(to, digits)] != '\0' || (to == from + 1 && *to == '\0')) {
        return false;
    }
    long long first = strtoll(from, NULL, 10), last = strtoll(to, NULL, 10); /* large ones end at LLONG_MAX */
    if (to == from + 1) {
        *ret_first = last < size ? size - last : 0;
        *ret_last = size - 1;
        return true;
    }
    *ret_first = first;
    *ret_last = *to != '\0' && last < size ? last : size - 1;
    return *to == '\0' || last >= first;
}
