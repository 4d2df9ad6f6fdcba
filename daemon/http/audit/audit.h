/* SPDX-License-Identifier: Apache-2.0 */
/* The audit: who did what from where, who was refused, and who looked at what belongs to others. A change by
 * the writer is noted in its transaction; all else by a transaction of its own, after the reply. */
#ifndef HTTP_AUDIT_H
#define HTTP_AUDIT_H

struct audit;
struct audit_row;
struct request;
struct step;
struct text;
struct writer_request;

struct audit *audit_create(void);
void audit_destroy(struct audit *audit);

/* What the writer is to note of a request if it succeeds; NULL: nothing, because agents ask, or bytes are
 * sent. Borrows subject and detail, each of which may be NULL, and the request. The row lives as long as the
 * request. */
const struct audit_row *audit_of_change(struct request *request, const char *subject, const char *detail);

/* The reply is about to leave: notes what the writer has not. */
void audit_replied(struct request *request);

/* Of a request to the writer that nobody waits for: its answer, and its end, which frees it. It is the first
 * member of what was allocated. */
int audit_render_nothing(const struct writer_request *writer, const struct step *step, struct text *out);
void audit_note_done(struct writer_request *writer);

/* token_use.c. The sender's token was taken: notes it, to an hour. */
void audit_token_used(const struct request *request);
/* Tells a person in a header of the reply when the token ends, if that is soon. */
void audit_warn_of_end(struct request *request);

#endif
