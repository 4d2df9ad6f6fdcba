/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for the rights of a call's sender, and words what it lacks. */
#include "daemon/mlflow/call/rights.h"

#include <string.h>

#include "proto/spec/jobspec.h"

bool rights_have(const struct call *call, enum tracking_right right, struct holder holder)
{
    const struct tracking_rights *rights = call->request.rights;
    return rights == NULL || rights->have(rights, right, holder.owner, holder.project);
}

void rights_need(struct call *call, enum tracking_right right, struct holder holder, const char *what)
{
    if (call->failed || rights_have(call, right, holder)) {
        return;
    }
    call_fail(call, TRACKING_PERMISSION_DENIED,
              "The %s belongs to %.100s, in project %.100s: you may read it, and not %s it.", what,
              holder.owner[0] != '\0' ? holder.owner : "all", holder.project,
              right == TRACKING_ADDS ? "add to" : "change");
}

struct holder rights_sender(const struct call *call)
{
    const struct tracking_request *request = &call->request;
    return (struct holder){request->owner != NULL ? request->owner : "",
                           request->project != NULL ? request->project : DEFAULT_PROJECT};
}

void rights_need_project(struct call *call, const char *project)
{
    if (!call->failed && !rights_have(call, TRACKING_USES, (struct holder){"", project})) {
        call_fail(call, TRACKING_PERMISSION_DENIED, "There is no project '%.100s' that you may use.",
                  project);
    }
}

const char *rights_project(struct call *call, const json_t *tags)
{
    const char *project = rights_sender(call).project;
    size_t i;
    const json_t *tag;
    json_array_foreach (tags, i, tag) {
        const char *key = json_string_value(json_object_get(tag, "key"));
        const char *value = json_string_value(json_object_get(tag, "value"));
        if (key != NULL && value != NULL && strcmp(key, TAG_PROJECT) == 0) {
            project = value;
        }
    }
    rights_need_project(call, project);
    return project;
}
