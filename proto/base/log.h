/* SPDX-License-Identifier: Apache-2.0 */
/* Logging of the programs (libraries never log): one line per event, "level noun verb key=value ...", on
 * stderr. The lines have journald's priority prefix when stderr is the journal. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include "proto/base/err.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Lines above the level are dropped; the start value is LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);
bool log_level_from_text(const char *text, enum log_level *ret_level);

/* event is "noun verb"; format gives the key=value pairs and may be "". Secrets never go here. */
void log_event(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define log_error(...)   log_event(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_event(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_event(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_event(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Logs why a program ends: "PROGRAM: TEXT", and the remedy in a second line if there is one. In the journal
 * both lines have the priority of errors. */
void log_failure(const char *program, const struct err *err);

#endif
