/* SPDX-License-Identifier: Apache-2.0 */
/* What programs of other people say of an error. */
#ifndef PROTO_LOG_LINE_H
#define PROTO_LOG_LINE_H

/* The message of the last line of an output: of time="..." level=fatal msg="..." what stands in msg, of any
 * other line all of it. The caller frees it. */
char *log_line_message(const char *output);

#endif
