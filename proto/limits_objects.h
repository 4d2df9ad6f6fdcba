/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the object store behind the controller, and of credentials for S3. */
#ifndef PROTO_LIMITS_OBJECTS_H
#define PROTO_LIMITS_OBJECTS_H

#include "proto/limits.h"

/* --- object store --- */
/* the prefix of our keys; S3 allows 1,024 bytes for a whole key, and the path of an artifact has up to 768 */
#define LIMIT_OBJECT_PREFIX_BYTES 128
/* one of the credentials; a session token of AWS has some 1,000 bytes */
#define LIMIT_S3_CREDENTIAL_BYTES 4096
/* the file of credentials */
#define LIMIT_OBJECT_CREDENTIALS_FILE_BYTES (64 * 1024)
/* an answer of the store that is no object: a list of 1,000 keys has up to 1.5 MiB */
#define LIMIT_OBJECT_ANSWER_BYTES (4 * MIB)
/* keys of a page of a list, the most that S3 sends */
#define LIMIT_OBJECT_PAGE_KEYS 1000
/* a part of an upload: it is in memory while it is sent, and sent again as a whole when the connection
 * breaks; S3 wants 5 MiB at least and 10,000 parts at most: 156 GiB. An object of up to one part is sent at
 * once */
#define OBJECT_PART_BYTES (16 * MIB)
/* a connection to the store, ... */
#define OBJECT_CONNECT_MS 5000
/* ... and how long less than 1 KiB/s may come or go */
#define OBJECT_SILENT_S 20
/* tries of a request whose connection broke, or that the store was too busy for ... */
#define LIMIT_OBJECT_TRIES 3
/* ... with this pause before the second, twice as long before each next one */
#define OBJECT_TRY_PAUSE_MS 200
/* after a request that failed in all tries, requests of people are refused at once for this long, and files
 * are not moved */
#define OBJECT_AWAY_MS 5000
/* threads that bring objects back for people and nodes who wait for them: each may be held up by a large one
 */
#define OBJECT_RECALLERS 4
/* requests that wait for objects; further ones are answered 503 */
#define LIMIT_OBJECT_RECALLS 256
/* how often the thread that moves files looks for new ones */
#define OBJECT_SCAN_MS 2000
/* ... at least so many times as long as a look takes: a million files take some ten seconds */
#define OBJECT_REST 4
/* how long a copy of what the store has stays after its last use, unless gpuctld --object-store-after says
 * otherwise; files of a job go to the store so long after its end, for some may still be on their way */
#define DEFAULT_OBJECT_AFTER_MS (3600LL * 1000)
/* what may wait for the store, unless gpuctld --object-store-spool says otherwise: ten minutes of uploads at
 * 25 MB/s */
#define DEFAULT_OBJECT_SPOOL_BYTES (16LL * 1024 * MIB)
/* how long a redirect to the store is valid: a node fetches 1 GiB in it at 10 MB/s several times over */
#define OBJECT_LINK_S 900

#endif
