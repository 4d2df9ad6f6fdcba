/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and writes the description of a simulated cluster. */
#include <stdlib.h>
#include <string.h>

#include "daemon/simulate/replay.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define LIMIT_SIMULATED_NODES 1000000
#define LIMIT_PARTS           256

static bool refuse(const char *part, struct err *err)
{
    return err_field(err, ERR_USAGE, "nodes",
                     "nodes x GPUs of each, perhaps with their type: 64x8, or 64x8:A10,10x8:H100",
                     "\"%.64s\" does not say what nodes there are", part);
}

static bool parse_part(char *text, struct fleet_part *ret_part, struct err *err)
{
    autofree char *whole = xstrdup(text);
    char *type = strchr(text, ':');
    if (type != NULL) {
        *type++ = '\0';
    }
    char *gpus = strchr(text, 'x');
    if (gpus == NULL) {
        return refuse(whole, err);
    }
    *gpus++ = '\0';
    struct fleet_part part = {0};
    if (!text_to_int(text, 1, LIMIT_SIMULATED_NODES, &part.nodes) ||
        !text_to_int(gpus, 1, LIMIT_NODE_DEVICES, &part.gpus) ||
        (type != NULL && !text_is_name(type, LIMIT_NAME_BYTES))) {
        return refuse(whole, err);
    }
    part.type = type != NULL ? xstrdup(type) : NULL;
    *ret_part = part;
    return true;
}

bool fleet_parse(const char *text, struct fleet *ret_fleet, struct err *err)
{
    struct fleet fleet = {.parts = xzalloc(LIMIT_PARTS * sizeof *fleet.parts)};
    autofree char *copy = xstrdup(text);
    char *rest = copy;
    bool good = true;
    for (char *part; good && (part = strsep(&rest, ",")) != NULL;) {
        good =
            fleet.count < LIMIT_PARTS ? parse_part(part, &fleet.parts[fleet.count], err) : refuse(text, err);
        fleet.count += good;
    }
    for (size_t i = 1; good && i < fleet.count; i++) {
        if ((fleet.parts[i].type == NULL) != (fleet.parts[0].type == NULL)) {
            good = err_field(err, ERR_USAGE, "nodes", "name the type of all of them, or of none",
                             "some nodes have a GPU type and some have none");
        }
    }
    if (!good) {
        fleet_finish(&fleet);
        return false;
    }
    *ret_fleet = fleet;
    return true;
}

static bool is_like(const struct fleet_part *part, int64_t gpus, const char *type)
{
    return part->gpus == gpus && (part->type == NULL) == (type == NULL) &&
           (type == NULL || strcmp(part->type, type) == 0);
}

void fleet_add(struct fleet *fleet, int64_t nodes, int64_t gpus, const char *type)
{
    for (size_t i = 0; i < fleet->count; i++) {
        if (is_like(&fleet->parts[i], gpus, type)) {
            fleet->parts[i].nodes += nodes;
            return;
        }
    }
    fleet->parts = xrealloc(fleet->parts, (fleet->count + 1) * sizeof *fleet->parts);
    fleet->parts[fleet->count++] =
        (struct fleet_part){.nodes = nodes, .gpus = gpus, .type = type != NULL ? xstrdup(type) : NULL};
}

int64_t fleet_gpus(const struct fleet *fleet)
{
    int64_t sum = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        sum += fleet->parts[i].nodes * fleet->parts[i].gpus;
    }
    return sum;
}

int64_t fleet_nodes(const struct fleet *fleet)
{
    int64_t sum = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        sum += fleet->parts[i].nodes;
    }
    return sum;
}

void fleet_write(const struct fleet *fleet, struct text *out)
{
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_part *part = &fleet->parts[i];
        bool typed = part->type != NULL;
        text_printf(out, "%s%lldx%lld%s%s", i > 0 ? "," : "", (long long)part->nodes, (long long)part->gpus,
                    typed ? ":" : "", typed ? part->type : "");
    }
}

void fleet_finish(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        free(fleet->parts[i].type);
    }
    free(fleet->parts);
    *fleet = (struct fleet){0};
}
