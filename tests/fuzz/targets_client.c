/* SPDX-License-Identifier: Apache-2.0 */
/* What gpuctl reads: files of people, and what a server sends. */
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/bundle/ignore.h"
#include "client/cli/mcp/mcp_message.h"
#include "client/cli/slurm/batch.h"
#include "client/cli/spec/jobfile.h"
#include "client/cli/spec/requirements.h"
#include "proto/base/text/yaml_read.h"
#include "client/cli/transport/sse.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/files/files.h"
#include "proto/base/settings/settings.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_yaml(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct yaml yaml;
    if (!yaml_parse("file", (const char *)bytes, size, &yaml, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    for (size_t i = 0; i < yaml.mark_count; i++) {
        FUZZ_MUST(yaml_line(&yaml, yaml.marks[i].path) >= 1);
    }
    yaml_finish(&yaml);
    return true;
}

bool fuzz_jobfile(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct jobfile file = {0};
    if (!jobfile_parse("file", (const char *)bytes, size, true, &file, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    FUZZ_MUST(json_is_object(file.spec));
    jobfile_finish(&file);
    return true;
}

bool fuzz_batch(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct batch batch;
    const struct batch_options given = {0};
    autofree char *text = fuzz_text(bytes, size);
    if (!batch_parse("script", text, size, &given, &batch, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    struct notes notes = {0};
    autojson json_t *spec = batch_spec(&batch, NULL, 0, "/", true, &notes, &err);
    FUZZ_MUST(spec != NULL || err.text[0] != '\0');
    notes_finish(&notes);
    batch_finish(&batch);
    return spec != NULL;
}

/* Lines of a file; those that include others name files that are not there. */
bool fuzz_requirements(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    autojson json_t *lines = json_array();
    autofree char *text = fuzz_text(bytes, size);
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        json_t *item = json_string(line);
        if (item == NULL) {
            return false; /* no UTF-8 */
        }
        json_array_append_new(lines, item);
    }
    autojson json_t *taken = requirements_take("/nonexistent", lines, "requirements", &err);
    FUZZ_MUST(taken != NULL || err.text[0] != '\0');
    return taken != NULL;
}

/* The first line is a path, the rest are rules. */
bool fuzz_ignore(const uint8_t *bytes, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(bytes, '\n', size) : NULL;
    if (end == NULL) {
        return false;
    }
    autofree char *path = fuzz_text(bytes, (size_t)(end - bytes));
    autofree char *rules = fuzz_text(end + 1, size - (size_t)(end - bytes) - 1);
    struct ignore *ignore = ignore_parse(rules);
    enum ignore_verdict file = ignore_ask(ignore, path, false), folder = ignore_ask(ignore, path, true);
    FUZZ_MUST(file == IGNORE_NOTHING || folder != IGNORE_NOTHING); /* what fits a file fits a folder */
    ignore_destroy(ignore);
    return file != IGNORE_NOTHING || folder != IGNORE_NOTHING;
}

static void collect(struct sse *sse, struct text *all)
{
    struct sse_event event;
    while (sse_next(sse, &event)) {
        text_printf(all, "%s %zu ", event.name, event.data_length);
        text_append_bytes(all, event.data, event.data_length);
    }
}

/* However a stream is cut into pieces, it has the same events. */
bool fuzz_sse(const uint8_t *bytes, size_t size)
{
    struct sse whole = {0}, cut = {0};
    autotext struct text all = {0}, same = {0};
    size_t step = size > 0 ? bytes[0] % 7 + 1 : 1;
    sse_feed(&whole, (const char *)bytes, size);
    collect(&whole, &all);
    for (size_t at = 0; at < size; at += step) {
        sse_feed(&cut, (const char *)bytes + at, at + step < size ? step : size - at);
        collect(&cut, &same);
    }
    FUZZ_MUST(all.length == same.length &&
              (all.length == 0 || memcmp(all.bytes, same.bytes, all.length) == 0));
    sse_finish(&whole);
    sse_finish(&cut);
    return all.length > 0;
}

bool fuzz_mcp(const uint8_t *bytes, size_t size)
{
    struct mcp_message message;
    autotext struct text line = {0};
    text_append_bytes(&line, (const char *)bytes, size);
    mcp_message_decode(&line, &message);
    bool taken = message.kind != MCP_FAULT;
    FUZZ_MUST(taken || message.text[0] != '\0');
    FUZZ_MUST(message.kind != MCP_REQUEST || (message.method != NULL && message.id != NULL));
    mcp_message_finish(&message);
    return taken;
}

/* A file of settings. */
bool fuzz_settings(const uint8_t *bytes, size_t size)
{
    static char path[64];
    struct err err = {0};
    int64_t number = 0;
    const char *word = NULL;
    const struct option_spec options[] = {
        {.name = "number", .value_name = "N", .kind = OPTION_INT, .target = &number, .min = 1, .max = 100},
        {.name = "word", .value_name = "WORD", .kind = OPTION_TEXT, .target = &word, .choices = "one|two"},
    };
    if (path[0] == '\0') {
        snprintf(path, sizeof path, "/dev/shm/gpuctl-fuzz-%d", (int)getpid());
    }
    FUZZ_MUST(file_replace(path, bytes, size, 0600, &err));
    autosettings struct settings *settings = settings_load("fuzz", path, &err);
    unlink(path);
    bool taken = settings != NULL && settings_apply(settings, options, 2, NULL, &err);
    FUZZ_MUST(taken || err.text[0] != '\0');
    FUZZ_MUST(!taken || (number >= 0 && number <= 100));
    return taken && (number > 0 || word != NULL);
}
