/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the run folder. Agents of one state folder use the same run folder for a whole boot, however each
 * was started. The settings depend on the environment ($XDG_RUNTIME_DIR is not set by cron or su), and an
 * agent that looked elsewhere would report running ranks as lost. STATE/run-folder records the folder and the
 * boot. attempt.c and seen.c own the content of the folder. */
#include "agent/node/run_folder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/attempt/seen.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define RECORD_BYTES (LIMIT_PATH_BYTES + 64)

/* Reads the record "BOOT-ID PATH\n". NULL if there is none of this boot, or the folder has been removed
 * since. */
static char *remembered(const char *record, const char *boot_id)
{
    autofree char *text = NULL;
    size_t length = strlen(boot_id);
    if (!file_read(record, RECORD_BYTES, &text, NULL, NULL) || strncmp(text, boot_id, length) != 0 ||
        text[length] != ' ' || text[length + 1] != '/') {
        return NULL;
    }
    autofree char *path = xstrndup(text + length + 1, strcspn(text + length + 1, "\n"));
    return access(path, F_OK) == 0 ? give(path) : NULL;
}

static bool remember(const char *record, const char *boot_id, const char *run, struct err *err)
{
    autofree char *text = xprintf("%s %s\n", boot_id, run);
    return file_replace(record, text, strlen(text), 0600, err);
}

static bool choose(const char *state, const char *boot_id, char **run, struct err *err)
{
    autofree char *record = xprintf("%s/run-folder", state);
    autofree char *earlier = remembered(record, boot_id);
    if (earlier == NULL) {
        return remember(record, boot_id, *run, err);
    }
    if (strcmp(earlier, *run) != 0) {
        log_warning("run folder kept", "folder=%s instead_of=%s reason=\"it was used since the last boot\"",
                    earlier, *run);
        free(*run);
        *run = give(earlier);
    }
    return true;
}

static bool remove_attempts(const char *run, struct err *err)
{
    autonames struct file_names names;
    bool removed = file_list(run, &names, err);
    for (size_t i = 0; removed && i < names.count; i++) {
        int64_t attempt_id;
        autofree char *path = xprintf("%s/%s", run, names.items[i]);
        bool ours =
            text_to_int(names.items[i], 1, INT64_MAX, &attempt_id) || strcmp(names.items[i], SEEN_FILE) == 0;
        removed = !ours || file_remove_tree(path, err);
    }
    return removed;
}

/* Empties a run folder of an earlier boot: it describes processes that no longer exist. */
static bool renew(const char *run, const char *boot_id, struct err *err)
{
    autofree char *path = xprintf("%s/boot", run);
    autofree char *filled = NULL;
    if (file_read(path, 64, &filled, NULL, NULL) && strcmp(filled, boot_id) == 0) {
        return true;
    }
    return remove_attempts(run, err) && file_replace(path, boot_id, strlen(boot_id), 0600, err);
}

bool run_folder_open(const char *state, const char *boot_id, char **run, struct err *err)
{
    return choose(state, boot_id, run, err) && file_make_directories(*run, 0700, err) &&
           renew(*run, boot_id, err);
}
