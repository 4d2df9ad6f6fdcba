/* SPDX-License-Identifier: Apache-2.0 */
/* One request, from its first line to the end of its reply. All of it happens on the HTTP thread. */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <microhttpd.h>

#include "daemon/http/auth/session.h"
#include "daemon/http/base/deadline.h"
#include "daemon/http/base/waiters.h"
#include "daemon/http/request/gate.h"
#include "daemon/http/request/query.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct audit_entry;
struct identity;
struct route;
struct sender;
struct server;
struct submitter;

enum request_phase {
    REQUEST_HEADERS,  /* the headers are not judged yet */
    REQUEST_BODY,     /* admitted, or refused with the body still to come */
    REQUEST_LINED,    /* suspended: its sender has used its share of the thread, or just resumed */
    REQUEST_HANDLING, /* its handler runs */
    REQUEST_WAITING,  /* suspended: its reply comes later */
    REQUEST_QUEUED,   /* the reply is with the library */
};

/* What a request takes of its sender's share. */
struct request_share {
    bool in_line;
    bool under_way; /* it has begun, and its cost is not known yet */
    bool handed_on; /* to the writer or a helper thread */
    int64_t lined_ms;
    int64_t paid_us, cost_us; /* expected, and so far */
    struct request *prev, *next;
};

#define OTHERS_SOME (-1) /* nobody has counted */

#define REQUEST_ARGUMENT_BYTES 80 /* the {...} of a path: at most 64 hex digits */

struct request {
    /* For handlers, to read. */
    struct server *server;
    const struct route *route;
    const struct identity *who; /* NULL on open routes */
    uint64_t ranks_attempt_id;  /* whose ranks ask, by their token; 0: somebody else does */
    const char *path;
    char argument[REQUEST_ARGUMENT_BYTES]; /* the part of the path that stands for {...} of the route */
    char array_id[ID_LENGTH + 1]; /* the path says ARRAY.TASK: argument is the id of that task; else "" */
    int64_t task;
    const struct query *query; /* NULL: no parameters; the readers take that */
    struct headers headers;
    struct session session; /* expires_s 0: the request was made with a token */
    bool head;              /* HEAD: answered as GET, and the library leaves the body out */
    int64_t arrived_ms;     /* CLOCK_BOOTTIME */
    int64_t whole_us;       /* the same, when its body was there */
    char *body;             /* the whole body with a NUL behind it, of routes that gather it; NULL: none */
    size_t body_length;
    json_t *json; /* the body decoded, of BODY_JSON routes; a handler may take it with give() */

    /* For handlers, to use: state of the request while it waits. */
    void *state;
    void (*state_finish)(void *state); /* called when the request ends, if not NULL; state may be NULL then */
    struct deadline deadline;          /* cleared when the reply is given */
    struct waiter waiter;              /* removed when the reply is given */

    /* For handlers, to say what is noted of it (daemon/http/audit). */
    bool changes_more;    /* it changes something that the writer does not */
    bool looks_beyond;    /* it shows what only the sender's role lets it see */
    int64_t others;       /* so many of others, of a list; OTHERS_SOME; 0: it is no list */
    const char *signs_in; /* on an open route: the name that its sender has proved; NULL: none */

    /* Of senders.c alone. */
    struct sender *sender; /* NULL: not known yet, or one that never waits */
    struct request_share share;

    /* Of request.c and router.c alone. */
    /* Renders an error in another form than a problem document and returns the HTTP status; NULL: none. */
    unsigned (*render_error)(const struct err *err, bool routed, struct text *out);
    struct MHD_Connection *connection;
    struct connection *link; /* the same, as connection.c sees it */
    const char *raw_uri;     /* where the library has it; uri is the copy */
    size_t uri_length;
    enum request_phase phase;
    bool person;    /* counted among those of users and admins */
    bool awaited;   /* the handler said that the reply comes later */
    bool suspended; /* the library leaves the connection alone */
    bool closing;   /* the connection ends with the reply */
    unsigned status;
    bool failed; /* the reply is an error: */
    enum err_code failure;
    struct audit_entry *audit;     /* what the writer notes of it; NULL: nothing */
    struct MHD_Response *response; /* given, not yet queued */
    ssize_t (*stream_read)(void *closure, uint64_t position, char *buffer, size_t room);
    void (*stream_finish)(void *closure);
    void *stream;
    void (*upgrade_take)(void *closure, struct MHD_Connection *connection, int socket,
                         struct MHD_UpgradeResponseHandle *handle);
    void *upgrade_closure;
    struct query *query_owned;
    size_t body_room;
    uint64_t body_seen;
    uint64_t drained;            /* bytes of a refused body */
    struct request *prev, *next; /* all open requests of the server */
    size_t size;                 /* of all this */
    char uri[];
};

/* --- replies: exactly one, at once or later ------------------------------------------------------------- */

/* Those that are no failure return true, so that a handler may end with them. */

/* Replies with text, which is taken over (text_take of a struct text, xprintf); content_type is a literal. */
bool request_reply(struct request *request, unsigned status, const char *content_type, char *text,
                   size_t length);
/* The same with JSON in a buffer, which is left empty. */
bool request_reply_json(struct request *request, unsigned status, struct text *json);
/* The same with a problem document. */
void request_reply_problem(struct request *request, unsigned status, struct text *problem);
/* The same with a JSON literal. */
bool request_reply_literal(struct request *request, unsigned status, const char *json);
/* Replies with an error as application/problem+json. */
void request_fail(struct request *request, const struct err *err);
/* The same, and the sender is told to try again after this time. */
void request_fail_for(struct request *request, const struct err *err, int64_t pause_ms);
/* The same with an error made on the spot. */
void request_fail_with(struct request *request, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Replies with length bytes of a file from offset; the file is taken over, also on failure. For a Range:
 * status 206 and a header Content-Range. */
bool request_reply_file(struct request *request, unsigned status, const char *content_type, int fd,
                        uint64_t offset, uint64_t length);
/* Replies with the pieces of a reader; finish is called once, when the reply has ended. The
 * reader may call request_suspend and return 0; request_resume has it called again. */
bool request_reply_stream(struct request *request, unsigned status, const char *content_type,
                          ssize_t (*read)(void *closure, uint64_t position, char *buffer, size_t room),
                          void (*finish)(void *closure), void *closure);

/* Whether the sender asks for the connection to become one of this protocol. */
bool request_wants_upgrade(const struct request *request, const char *protocol);
/* Replies with 101. take gets the connection once the reply has left, and owns its socket until
 * library_end_upgrade. The request ends when take returns; it may end before, and calls state_finish alone
 * then. */
bool request_upgrade(struct request *request, const char *protocol,
                     void (*take)(void *closure, struct MHD_Connection *connection, int socket,
                                  struct MHD_UpgradeResponseHandle *handle),
                     void *closure);
/* take is not called any more: the connection ends instead. */
void request_upgrade_forget(struct request *request);

/* Adds a header to the reply that was given in this turn of the loop; value is copied. */
void request_header(struct request *request, const char *name, const char *value);

/* Whether the sender has this version already, by If-None-Match: "*" and lists of tags fit nothing, then the
 * bytes go out again. tag is quoted. */
bool request_has(const struct request *request, const char *tag);

/* Says that the reply comes after the handler has returned: by the writer, a deadline, a waiter or a watched
 * file descriptor. A handler that neither replies nor calls this is a defect and aborts. true. */
bool request_wait(struct request *request);

/* Frees the body early: of requests that wait long. */
void request_drop_body(struct request *request);

/* For readers of a stream and sinks of a body: let the library leave the connection alone, and take it up
 * again. */
void request_suspend(struct request *request);
void request_resume(struct request *request);

/* --- helpers of handlers -------------------------------------------------------------------------------- */

/* false with ERR_UNKNOWN_FIELD when the JSON object has a member that known, names separated by spaces, does
 * not list. */
bool request_only_fields(const json_t *object, const char *known, struct err *err);

/* The sender as one who submits jobs; borrows from the request. */
struct submitter request_submitter(const struct request *request);

/* The owner whose jobs the sender may see wherever they are: NULL for all, else its own name. */
const char *request_owner_scope(const struct request *request);
/* The same for a list of jobs of one project, whose members see them all. NULL: of any project. */
const char *request_scope_in(const struct request *request, const char *project);

/* The bearer whose session the cookie and the proof of a request are: session_check. */
const struct identity *request_session(const struct request *request, struct session *ret_session,
                                       struct err *err);

/* Whether the sender's token still stands, for replies that come late: ERR_UNAUTHENTICATED when it was
 * revoked or has expired meanwhile. */
bool request_stands(const struct request *request, struct err *err);

/* true when the sender may see a job of this owner and project; otherwise it does not exist for the sender.
 */
bool request_may_see(const struct request *request, const char *owner, const char *project);
/* Whether only the role of the sender's token shows it the job. */
bool request_sees_by_role(const struct request *request, const char *owner, const char *project);
/* The answer, a list, shows this many things that only the role of the sender's token lets it see; 0: none.
 */
void request_shows_others(struct request *request, int64_t count);
/* The answer shows what there is of an owner and a project, NULL: of any; nobody has counted. */
void request_shows_all_of(struct request *request, const char *owner, const char *project);
/* Whether the sender, who may see the job, may also change it: ERR_FORBIDDEN. */
bool request_may_change(const struct request *request, const char *owner, const char *project,
                        struct err *err);

/* true when the reply should be a stream of events: Accept names text/event-stream. */
bool request_wants_events(const struct request *request);

/* --- for the router and connections --------------------------------------------------------------------- */

/* Hands the reply that was given to the HTTP library. */
enum MHD_Result request_queue_reply(struct request *request);
/* Takes a piece of the body: gathers it, or gives it to the route's sink. *size becomes the rest.
 * MHD_NO, which cuts the connection: a refused body does not end. */
enum MHD_Result request_take_body(struct request *request, const char *data, size_t *size);

/* Called by the HTTP library when the first line of a request is there, and when the request has ended. */
void *request_open(void *server, const char *uri, struct MHD_Connection *connection);
void request_close(void *server, struct MHD_Connection *connection, void **slot,
                   enum MHD_RequestTerminationCode code);
/* Ends a request that the library has opened and never handed over, so that request_close is not called: its
 * head was too long, or the client left in the middle of it. NULL is allowed. */
void request_drop(struct request *request);

#endif
