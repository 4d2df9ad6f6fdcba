/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the person's browser. A link that signs in stands in a file of the person's own: the browser is told
 * the name of that file, which leads it there, so the list of processes shows no code to others of the host.
 */
#include "client/cli/common/browser.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/transport/api.h"
#include "client/cli/transport/process.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"

#define BROWSER_WORDS 16

/* --- a file that leads there --- */

static void append_escaped(const char *plain, struct text *out)
{
    for (; *plain != '\0'; plain++) {
        switch (*plain) {
        case '&':
            text_append(out, "&amp;");
            break;
        case '"':
            text_append(out, "&quot;");
            break;
        case '<':
            text_append(out, "&lt;");
            break;
        default:
            text_append_bytes(out, plain, 1);
        }
    }
}

static bool write_in(const char *folder, const struct text *page, char **ret_file, struct err *err)
{
    autofree char *file = xprintf("%s/open.html", folder);
    if (!file_make_directories(folder, 0700, err) ||
        !file_replace(file, page->bytes, page->length, 0600, err)) {
        return false;
    }
    *ret_file = file_absolute(file);
    return true;
}

/* The next call replaces it, and the end of the person's session removes it where there is a folder for that.
 */
static bool write_file(const char *state, const char *link, char **ret_file, struct err *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    autofree char *folder = runtime != NULL && runtime[0] == '/' ? xprintf("%s/gpuctl", runtime) : NULL;
    autotext struct text page = {0};
    text_append(&page,
                "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">"
                "<title>gpuctl</title><meta http-equiv=\"refresh\" content=\"0; url=");
    append_escaped(link, &page);
    text_append(&page, "\">\n");
    return (folder != NULL && write_in(folder, &page, ret_file, NULL)) ||
           write_in(state, &page, ret_file, err);
}

/* The caller frees it. */
static char *url_of_file(const char *file)
{
    struct text url = {0};
    text_append(&url, "file://");
    for (const char *part = file; *part == '/';) {
        size_t length = strcspn(++part, "/");
        autofree char *name = xstrndup(part, length);
        text_append(&url, "/");
        api_part(&url, name);
        part += length;
    }
    return text_take(&url);
}

/* --- the browser --- */

static bool set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

/* The first command of BROWSER, as other programs read it: words, with %s for the URL or the URL
 * behind them; else the desktop's. */
bool browser_open(const char *url, struct err *err)
{
    if (!set("BROWSER") && !set("DISPLAY") && !set("WAYLAND_DISPLAY")) {
        return err_set(err, ERR_UNREACHABLE, "this session has no browser");
    }
    autofree char *own = xstrdup(url);
    autofree char *command = xstrdup(set("BROWSER") ? getenv("BROWSER") : "xdg-open");
    char *argv[BROWSER_WORDS + 2] = {NULL};
    size_t count = 0;
    bool placed = false;
    char *rest = command;
    command[strcspn(command, ":")] = '\0';
    for (char *word; count < BROWSER_WORDS && (word = strsep(&rest, " ")) != NULL;) {
        if (word[0] != '\0') {
            bool here = strcmp(word, "%s") == 0;
            argv[count++] = here ? own : word;
            placed = placed || here;
        }
    }
    if (!placed) {
        argv[count++] = own;
    }
    autofree char *program = file_absolute_program(argv[0]);
    argv[0] = program;
    return process_launch(argv, CLIENT_BROWSER_MS, err);
}

bool browser_open_link(const char *state, const char *link, struct err *err)
{
    autofree char *file = NULL;
    if (!write_file(state, link, &file, err)) {
        return false;
    }
    autofree char *url = url_of_file(file);
    return browser_open(url, err);
}
