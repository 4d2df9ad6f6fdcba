/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the reader share. */
#ifndef STORE_READER_H
#define STORE_READER_H

#include "daemon/store/connection.h"
#include "daemon/store/store.h"

struct reader {
    struct connection connection;
};

#endif
