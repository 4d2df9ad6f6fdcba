/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the choice between JSON and words for one answer. The words are the verbs'. */
#include "client/cli/common/answer.h"

#include <stdarg.h>

#include "proto/base/cleanup.h"
#include "proto/base/json.h"

static bool show_json(const json_t *answer, struct err *err)
{
    autotext struct text out = {0};
    print_json(answer, &out);
    return print_out(&out, err);
}

bool answer_note(const struct call *call, const json_t *answer, struct err *err, const char *format, ...)
{
    if (answer == NULL || print_is_json(call->format)) {
        return answer != NULL && show_json(answer, err);
    }
    char *note = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&note, format, args);
    va_end(args);
    if (length < 0) {
        out_of_memory();
    }
    print_note("%s", note);
    free(note);
    return true;
}

bool answer_member(const struct call *call, const json_t *answer, const char *member, struct err *err)
{
    if (answer == NULL || print_is_json(call->format)) {
        return answer != NULL && show_json(answer, err);
    }
    autotext struct text out = {0};
    const char *text = json_string_of(answer, member);
    text_printf(&out, "%s\n", text != NULL ? text : "?");
    return print_out(&out, err);
}
