/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines of Go's logrus, as skopeo and umoci write them. */
#include "proto/base/text/log_line.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

char *log_line_message(const char *output)
{
    static const char key[] = "msg=\"";
    size_t length = strlen(output);
    while (length > 0 && strchr("\r\n ", output[length - 1]) != NULL) {
        length--;
    }
    autofree char *text = xstrndup(output, length);
    const char *line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    const char *message = strstr(line, key);
    if (message == NULL) {
        return xstrdup(line);
    }
    struct text out = {0};
    text_append(&out, "");
    for (message += strlen(key); *message != '\0' && *message != '"'; message++) {
        message += message[0] == '\\' && message[1] != '\0';
        text_append_bytes(&out, message, 1);
    }
    return text_take(&out);
}
