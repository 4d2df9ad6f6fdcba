/* SPDX-License-Identifier: Apache-2.0 */
/* The part of stage.c for checkpoints: what the last attempt has left is laid out, or the folder on a volume
 * is made, by a process, because a file server may hang whoever asks it. That process has the rights of the
 * ranks' user: root has none on many servers. Without its checkpoint an attempt does not start: it would
 * begin from nothing, or have no place for a checkpoint. */
#include <string.h>
#include <sys/wait.h>

#include "agent/attempt/attempt.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/spec/node_label.h"

/* --- from the controller -------------------------------------------------------------------------------- */

static void restored(void *closure, const struct err *err)
{
    struct attempt *attempt = closure;
    attempt->restore = NULL;
    if (err == NULL) {
        stage_content(attempt);
        return;
    }
    autofree char *text = xprintf("the checkpoint could not be laid out: %s", err->text);
    attempt_over(attempt, CAUSE_SHIM_LOST, text);
}

static void restore(struct attempt *attempt)
{
    struct agent_context *context = attempt->context;
    autofree char *folder = xprintf("%s/" SHIM_CHECKPOINT_FOLDER, attempt->logs);
    attempt->restore = restore_begin(context->controller, context->objects, context->config.name,
                                     attempt->attempt_id, folder, stage_user(attempt), restored, attempt);
}

/* --- on a volume ---------------------------------------------------------------------------------------- */

#define SETPRIV_WORDS 7 /* of the command line below */

/* On another node it could not be made either: it is the volume's fault, or the job's. A server that does not
 * answer is another matter: the node is about to lose the volume. */
static void made(void *closure, int status, const char *said)
{
    struct attempt *attempt = closure;
    const char *volume = attempt->spec.checkpoint_volume;
    attempt->checkpoint_maker = NULL;
    if (status == 0) {
        stage_content(attempt);
    } else if (WIFSIGNALED(status)) {
        autofree char *text = xprintf("volume %s does not answer", volume);
        attempt_decline(attempt, text);
    } else {
        autofree char *text = xprintf("the folder for checkpoints cannot be made on volume %s: %.*s", volume,
                                      (int)strcspn(said, "\n"), said);
        attempt_over(attempt, CAUSE_EXEC_FAILED, text);
    }
}

/* "--groups=1,2", because a user may have its rights by a group. */
static char *groups_of(const struct user *user)
{
    struct text list = {0};
    text_append(&list, user->group_count > 0 ? "--groups=" : "--clear-groups");
    for (size_t i = 0; i < user->group_count; i++) {
        text_printf(&list, "%s%u", i > 0 ? "," : "", (unsigned)user->groups[i]);
    }
    return text_take(&list);
}

static void make_folder(struct attempt *attempt)
{
    static const struct user nobody = {0}; /* in words that are then left out */
    struct agent_context *context = attempt->context;
    struct err err;
    const struct user *user = stage_user(attempt) != NULL ? stage_user(attempt) : &nobody;
    autofree char *uid = xprintf("--reuid=%u", (unsigned)user->uid);
    autofree char *gid = xprintf("--regid=%u", (unsigned)user->gid);
    autofree char *groups = groups_of(user);
    const char *const as_user[] = {"setpriv",
                                   uid,
                                   gid,
                                   groups,
                                   "--no-new-privs",
                                   "--bounding-set=-all",
                                   "--",
                                   shims_program(context->shims),
                                   SHIM_CHECKPOINT,
                                   volumes_find(context->volumes, attempt->spec.checkpoint_volume)->path,
                                   CHECKPOINTS_ON_VOLUME,
                                   job_spec_checkpoint_key(attempt->spec.json, attempt->order.job_id),
                                   NULL};
    static const char *const variables[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL};
    attempt->checkpoint_maker =
        child_start(context->children,
                    &(struct child_call){.arguments = user != &nobody ? as_user : as_user + SETPRIV_WORDS,
                                         .variables = variables,
                                         .input = -1,
                                         .extra = -1,
                                         .done = made,
                                         .closure = attempt},
                    &err);
    if (attempt->checkpoint_maker == NULL) {
        attempt_decline(attempt, err.text);
    }
}

void stage_checkpoint(struct attempt *attempt)
{
    if (attempt->spec.checkpoint_volume != NULL) {
        make_folder(attempt);
    } else if (attempt->order.restore) {
        restore(attempt);
    } else {
        stage_content(attempt);
    }
}
