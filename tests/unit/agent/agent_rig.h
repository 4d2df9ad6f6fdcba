/* SPDX-License-Identifier: Apache-2.0 */
/* A folder, a loop and a client of a controller that is played by the test, all in one thread. */
#ifndef AGENT_RIG_H
#define AGENT_RIG_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/controller_client.h"
#include "agent/base/loop.h"
#include "proto/base/text/text.h"

/* One request that came. */
struct rig_request {
    char method[8];
    char target[256];
    char token[80]; /* that it came with */
    struct text body;
};

/* How it is answered. Status 0 closes the connection instead. */
struct rig_answer {
    int status;
    const char *body; /* JSON; NULL: {} */
};

struct rig {
    char folder[64];
    struct loop *loop;
    struct controller_client *controller;
    struct rig_request *requests;
    size_t request_count;
    size_t connection_count; /* opened since the start */
    /* With early it is asked as soon as a head is read; body is then empty. */
    struct rig_answer (*answer)(struct rig *rig, const struct rig_request *request);
    bool early;
    const char *location; /* of answers that redirect; NULL: none */
    size_t cut;           /* the connection ends after so many bytes of this answer; 0: it is sent whole */
    void *closure;        /* the test's */
    struct text reply;

    int listener;
    struct loop_watch accepts;
    struct rig_connection *connections;
    struct loop_timer first, late;
};

/* The one rig of a test; setup and teardown are fixtures. */
extern struct rig rig;
void rig_setup(void);
void rig_teardown(void);

/* Runs the loop until somebody ends it; fails after 20 s. Once a test. */
void rig_run(void);

/* Writes a file below the folder, making folders on the way. */
void rig_write(const char *path, const void *bytes, size_t length);
void rig_write_text(const char *path, const char *text);
/* The path of a name below the folder; the caller frees it. */
char *rig_path(const char *name);
/* length bytes that are not all alike; the caller frees them. */
char *rig_bytes(size_t length);

#endif
