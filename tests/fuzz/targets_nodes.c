/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent reads of files that it and its shims have written, and that a crash may have cut off. */
#include <string.h>

#include "agent/common/launch_file.h"
#include "agent/output/record.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "tests/fuzz/fuzz.h"

/* Newlines stand for the NULs of the file. */
bool fuzz_launch(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct launch launch;
    char *copy = xalloc(size + 1);
    for (size_t i = 0; i < size; i++) {
        copy[i] = bytes[i] == '\n' ? '\0' : (char)bytes[i];
    }
    copy = xrealloc(copy, size > 0 ? size : 1);
    if (!launch_parse(copy, size, &launch, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    FUZZ_MUST(launch.argument_count > 0 && launch.arguments[launch.argument_count] == NULL);
    FUZZ_MUST(launch.rank_count > 0 && (launch.uid < 0) == (launch.gid < 0));
    launch_finish(&launch);
    return true;
}

bool fuzz_record(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct record record;
    autofree char *text = fuzz_text(bytes, size);
    if (!record_parse(text, &record, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    record_finish(&record);
    return true;
}
