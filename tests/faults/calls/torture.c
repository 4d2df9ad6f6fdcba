/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into one of our programs, it makes one call fail that can fail: an allocation, a call of SQLite,
 * or one of the HTTP libraries. It owns the memory that it shares with the test, which says there what fails
 * and when, and reads there what was called, from where, and what was struck. It promises to leave alone
 * every program but the one that is named, and every call but those that it was told to fail. What a failure
 * must come to is left to the test.
 *
 * Allocations inside libc (strdup, vasprintf, getaddrinfo) are seen because libc calls the allocator by its
 * public name. */
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <microhttpd.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { MEMORY, DATABASE, TRANSPORT, KIND_COUNT };

#define DEPTH     48
#define SITES     16384
#define INNERMOST 128
#define WHERE     128

/* A place in the code from which calls of the recorded kind come: the innermost frame outside libc, and the
 * innermost of the program that is no wrapper of the allocator. number is that of one of its calls, chosen by
 * chance, first that of its first. */
struct site {
    uint64_t key;
    int64_t first, number, times;
    char where[WHERE];
};

/* What the test and the program share. test_torture.py and torture.py know this layout. */
struct control {
    char program[32];                    /* the short name of the one that obeys */
    int64_t kind, number, code, lasting; /* from the call of that number on; 0: none. code: SQLite's */
    uint64_t site;                       /* not 0: only calls from that site count */
    int64_t from_site;                   /* how many came */
    int64_t calls[KIND_COUNT];           /* so far */
    int64_t struck;                      /* how often something failed */
    char where[WHERE];                   /* the first that failed */
    int64_t recording;                   /* the kind whose sites are wanted, plus one */
    uint64_t seed;
    int64_t wrapper_count;
    uint64_t wrappers[INNERMOST][2]; /* functions of the program that are no sites: from, to */
    int64_t site_count, sites_lost;
    struct site sites[SITES];
};

static struct control *control;
static pthread_mutex_t recording_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool inside
    __attribute__((tls_model("initial-exec"))); /* what is called from here is no call */
static __thread int said
    __attribute__((tls_model("initial-exec"))); /* the last call of SQLite was made to fail so */

__attribute__((constructor)) static void open_control(void)
{
    const char *path = getenv("GPUCTL_TORTURE");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) {
        return;
    }
    void *frame[1];
    backtrace(frame, 1); /* loads what it needs, once */
    struct control *mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED) {
        abort();
    }
    if (strncmp(mapped->program, program_invocation_short_name, sizeof mapped->program) == 0) {
        control = mapped;
    } else {
        munmap(mapped, sizeof *mapped);
    }
}

/* --- where a call comes from ---------------------------------------------------------------------------- */

static bool is_wrapper(uint64_t offset)
{
    for (int64_t i = 0; i < control->wrapper_count; i++) {
        if (offset >= control->wrappers[i][0] && offset < control->wrappers[i][1]) {
            return true;
        }
    }
    return false;
}

/* The object of a frame, NULL for this one; ret_program: it is the program itself. */
static struct link_map *object_of(void *address, bool *ret_libc, bool *ret_program)
{
    struct dl_find_object found, own;
    if (_dl_find_object(address, &found) != 0 ||
        _dl_find_object((void *)(uintptr_t)&open_control, &own) != 0 ||
        found.dlfo_link_map == own.dlfo_link_map) {
        return NULL;
    }
    const char *name = found.dlfo_link_map->l_name;
    *ret_libc = strstr(name, "/libc.so") != NULL || strstr(name, "/ld-linux") != NULL;
    *ret_program = name[0] == '\0';
    return found.dlfo_link_map;
}

/* "libjansson.so.4+1a2b gpuctld+3c4d"; the second is missing where no frame of the program is above. */
static void write_where(char where[WHERE])
{
    void *frames[DEPTH];
    int depth = backtrace(frames, DEPTH);
    size_t length = 0;
    bool inner = false;
    where[0] = '\0';
    for (int i = 0; i < depth; i++) {
        bool libc, program;
        struct link_map *object = object_of(frames[i], &libc, &program);
        if (object == NULL || libc) {
            continue;
        }
        uint64_t offset =
            (uint64_t)(uintptr_t)frames[i] - object->l_addr - 1; /* of the call, not behind it */
        bool site = program && !is_wrapper(offset);
        if (!inner || site) {
            const char *name = program ? program_invocation_short_name : strrchr(object->l_name, '/');
            length += (size_t)snprintf(where + length, WHERE - length, "%s%s+%llx", inner ? " " : "",
                                       program ? name : name + 1, (unsigned long long)offset);
            inner = true;
        }
        if (site || length >= WHERE) {
            return;
        }
    }
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    }
    return hash | 1;
}

static uint64_t chance(void)
{
    control->seed ^= control->seed << 13;
    control->seed ^= control->seed >> 7;
    control->seed ^= control->seed << 17;
    return control->seed;
}

/* Of all its calls each is as likely to be the one that is kept. */
static void record(int64_t number)
{
    char where[WHERE];
    write_where(where);
    uint64_t key = hash_of(where);
    pthread_mutex_lock(&recording_lock);
    for (uint64_t i = 0; i < SITES; i++) {
        struct site *site = &control->sites[(key + i) % SITES];
        if (site->key == 0) {
            site->key = key;
            site->first = number;
            memcpy(site->where, where, WHERE);
            control->site_count++;
        }
        if (site->key == key) {
            site->times++;
            if (chance() % (uint64_t)site->times == 0) {
                site->number = number;
            }
            break;
        }
        control->sites_lost += i == SITES - 1;
    }
    pthread_mutex_unlock(&recording_lock);
}

/* --- whether a call fails ------------------------------------------------------------------------------- */

/* The number of this call among those that count. */
static int64_t counted(int64_t number)
{
    char where[WHERE];
    if (control->site == 0) {
        return number;
    }
    write_where(where);
    return hash_of(where) == control->site ? __atomic_add_fetch(&control->from_site, 1, __ATOMIC_SEQ_CST)
                                           : -1;
}

static bool is_armed(enum kind kind, int64_t number)
{
    int64_t armed = __atomic_load_n(&control->number, __ATOMIC_SEQ_CST);
    if (armed == 0 || control->kind != (int64_t)kind) {
        return false;
    }
    int64_t call = counted(number);
    return control->lasting ? call >= armed : call == armed;
}

static bool strikes(enum kind kind)
{
    if (control == NULL || inside) {
        return false;
    }
    inside = true;
    int64_t number = __atomic_add_fetch(&control->calls[kind], 1, __ATOMIC_SEQ_CST);
    if (control->recording == (int64_t)kind + 1) {
        record(number);
    }
    bool struck = is_armed(kind, number);
    if (struck && __atomic_fetch_add(&control->struck, 1, __ATOMIC_SEQ_CST) == 0) {
        write_where(control->where);
    }
    inside = false;
    return struck;
}

/* A library that calls itself would be told what it never says itself: sqlite3_exec, for one, asks a failed
 * statement again and believes that. */
static bool strikes_from_program(enum kind kind, void *caller)
{
    bool libc, program;
    return control != NULL && object_of(caller, &libc, &program) != NULL && program && strikes(kind);
}

/* --- allocations: glibc's own have these names, too; the address sanitizer has its own, which stay ------ */

#ifndef __SANITIZE_ADDRESS__
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static bool out_of_memory(void)
{
    bool out = strikes(MEMORY);
    if (out) {
        errno = ENOMEM;
    }
    return out;
}

void *malloc(size_t size)
{
    return out_of_memory() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return out_of_memory() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *pointer, size_t size)
{
    return out_of_memory() ? NULL : __libc_realloc(pointer, size);
}

void *reallocarray(void *pointer, size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : realloc(pointer, bytes);
}

void *memalign(size_t alignment, size_t size)
{
    return out_of_memory() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **ret_pointer, size_t alignment, size_t size)
{
    *ret_pointer = memalign(alignment, size);
    return *ret_pointer != NULL ? 0 : ENOMEM;
}
#endif

/* --- functions of libraries ----------------------------------------------------------------------------- */

/* The library's own, found where it is first needed. */
#define REAL(name)                                                                                           \
    ({                                                                                                       \
        static __typeof__(&name) found;                                                                      \
        if (found == NULL) {                                                                                 \
            bool before = inside;                                                                            \
            inside = true;                                                                                   \
            *(void **)&found = dlsym(RTLD_NEXT, #name);                                                      \
            inside = before;                                                                                 \
        }                                                                                                    \
        found;                                                                                               \
    })

/* A function that passes its arguments on unless it was told to fail, and how it says that it failed. */
#define INTERPOSE(kind, type, name, failure, parameters, arguments)                                          \
    type name parameters                                                                                     \
    {                                                                                                        \
        return strikes_from_program(kind, __builtin_return_address(0)) ? (failure) : REAL(name) arguments;   \
    }

/* SQLite tells a connection's last error when it is asked, so what is made to fail is remembered until the
 * next call. */
#define INTERPOSE_SQLITE_AS(code, type, name, failure, parameters, arguments)                                \
    type name parameters                                                                                     \
    {                                                                                                        \
        said = strikes_from_program(DATABASE, __builtin_return_address(0)) ? (int)(code) : SQLITE_OK;        \
        return said != SQLITE_OK ? (failure) : REAL(name) arguments;                                         \
    }
#define INTERPOSE_SQLITE(type, name, failure, parameters, arguments)                                         \
    INTERPOSE_SQLITE_AS(control->code, type, name, failure, parameters, arguments)
/* What touches no disk can only lack memory. */
#define INTERPOSE_SQLITE_MEMORY(type, name, failure, parameters, arguments)                                  \
    INTERPOSE_SQLITE_AS(SQLITE_NOMEM, type, name, failure, parameters, arguments)

INTERPOSE_SQLITE(int, sqlite3_prepare_v2, said,
                 (sqlite3 * db, const char *sql, int length, sqlite3_stmt **statement, const char **tail),
                 (db, sql, length, statement, tail))
INTERPOSE_SQLITE(int, sqlite3_prepare_v3, said,
                 (sqlite3 * db, const char *sql, int length, unsigned flags, sqlite3_stmt **statement,
                  const char **tail),
                 (db, sql, length, flags, statement, tail))
INTERPOSE_SQLITE(int, sqlite3_step, said, (sqlite3_stmt * statement), (statement))
INTERPOSE_SQLITE(int, sqlite3_exec, said,
                 (sqlite3 * db, const char *sql, int (*each)(void *, int, char **, char **), void *closure,
                  char **error),
                 (db, sql, each, closure, error))
INTERPOSE_SQLITE_MEMORY(int, sqlite3_bind_int, said, (sqlite3_stmt * statement, int at, int value),
                        (statement, at, value))
INTERPOSE_SQLITE_MEMORY(int, sqlite3_bind_int64, said,
                        (sqlite3_stmt * statement, int at, sqlite3_int64 value), (statement, at, value))
INTERPOSE_SQLITE_MEMORY(int, sqlite3_bind_double, said, (sqlite3_stmt * statement, int at, double value),
                        (statement, at, value))
INTERPOSE_SQLITE_MEMORY(int, sqlite3_bind_text, said,
                        (sqlite3_stmt * statement, int at, const char *text, int length,
                         void (*destroy)(void *)),
                        (statement, at, text, length, destroy))
INTERPOSE_SQLITE_MEMORY(int, sqlite3_bind_text64, said,
                        (sqlite3_stmt * statement, int at, const char *text, sqlite3_uint64 length,
                         void (*destroy)(void *), unsigned char encoding),
                        (statement, at, text, length, destroy, encoding))
INTERPOSE_SQLITE_MEMORY(int, sqlite3_bind_blob64, said,
                        (sqlite3_stmt * statement, int at, const void *bytes, sqlite3_uint64 length,
                         void (*destroy)(void *)),
                        (statement, at, bytes, length, destroy))
INTERPOSE_SQLITE_MEMORY(const unsigned char *, sqlite3_column_text, NULL, (sqlite3_stmt * statement, int at),
                        (statement, at))
INTERPOSE_SQLITE_MEMORY(const void *, sqlite3_column_blob, NULL, (sqlite3_stmt * statement, int at),
                        (statement, at))
INTERPOSE_SQLITE(int, sqlite3_wal_checkpoint_v2, said,
                 (sqlite3 * db, const char *schema, int mode, int *frames, int *done),
                 (db, schema, mode, frames, done))
INTERPOSE_SQLITE(sqlite3_backup *, sqlite3_backup_init, NULL,
                 (sqlite3 * to, const char *to_name, sqlite3 *from, const char *from_name),
                 (to, to_name, from, from_name))
INTERPOSE_SQLITE(int, sqlite3_backup_step, said, (sqlite3_backup * backup, int pages), (backup, pages))

/* A connection that cannot be opened is there all the same, to tell why. */
int sqlite3_open_v2(const char *path, sqlite3 **ret_db, int flags, const char *vfs)
{
    said = strikes_from_program(DATABASE, __builtin_return_address(0)) ? (int)control->code : SQLITE_OK;
    int code = REAL(sqlite3_open_v2)(path, ret_db, flags, vfs);
    return said != SQLITE_OK ? said : code;
}

int sqlite3_errcode(sqlite3 *db)
{
    return said != SQLITE_OK ? said : REAL(sqlite3_errcode)(db);
}

int sqlite3_extended_errcode(sqlite3 *db)
{
    return said != SQLITE_OK ? said : REAL(sqlite3_extended_errcode)(db);
}

const char *sqlite3_errmsg(sqlite3 *db)
{
    return said != SQLITE_OK ? REAL(sqlite3_errstr)(said) : REAL(sqlite3_errmsg)(db);
}

/* A statement that failed says so again when it is reset or removed. */
int sqlite3_reset(sqlite3_stmt *statement)
{
    int code = REAL(sqlite3_reset)(statement);
    return said != SQLITE_OK ? said : code;
}

int sqlite3_finalize(sqlite3_stmt *statement)
{
    int code = REAL(sqlite3_finalize)(statement);
    return said != SQLITE_OK && statement != NULL ? said : code;
}

INTERPOSE(TRANSPORT, struct MHD_Response *, MHD_create_response_from_buffer, NULL,
          (size_t length, void *bytes, enum MHD_ResponseMemoryMode mode), (length, bytes, mode))
INTERPOSE(TRANSPORT, struct MHD_Response *, MHD_create_response_from_fd_at_offset64, NULL,
          (uint64_t length, int fd, uint64_t offset), (length, fd, offset))
INTERPOSE(TRANSPORT, struct MHD_Response *, MHD_create_response_from_callback, NULL,
          (uint64_t length, size_t block, MHD_ContentReaderCallback read, void *closure,
           MHD_ContentReaderFreeCallback destroy),
          (length, block, read, closure, destroy))
INTERPOSE(TRANSPORT, enum MHD_Result, MHD_add_response_header, MHD_NO,
          (struct MHD_Response * response, const char *name, const char *value), (response, name, value))
INTERPOSE(TRANSPORT, enum MHD_Result, MHD_queue_response, MHD_NO,
          (struct MHD_Connection * connection, unsigned status, struct MHD_Response *response),
          (connection, status, response))
INTERPOSE(TRANSPORT, CURLcode, curl_global_init, CURLE_OUT_OF_MEMORY, (long flags), (flags))
INTERPOSE(TRANSPORT, CURL *, curl_easy_init, NULL, (void), ())
INTERPOSE(TRANSPORT, CURLM *, curl_multi_init, NULL, (void), ())
INTERPOSE(TRANSPORT, CURLMcode, curl_multi_add_handle, CURLM_OUT_OF_MEMORY, (CURLM * multi, CURL *easy),
          (multi, easy))
INTERPOSE(TRANSPORT, CURLMcode, curl_multi_perform, CURLM_OUT_OF_MEMORY, (CURLM * multi, int *running),
          (multi, running))
INTERPOSE(TRANSPORT, CURLMcode, curl_multi_poll, CURLM_OUT_OF_MEMORY,
          (CURLM * multi, struct curl_waitfd *more, unsigned count, int timeout_ms, int *ready),
          (multi, more, count, timeout_ms, ready))
INTERPOSE(TRANSPORT, CURLMcode, curl_multi_socket_action, CURLM_OUT_OF_MEMORY,
          (CURLM * multi, curl_socket_t socket, int events, int *running), (multi, socket, events, running))
INTERPOSE(TRANSPORT, CURLMcode, curl_multi_assign, CURLM_OUT_OF_MEMORY,
          (CURLM * multi, curl_socket_t socket, void *closure), (multi, socket, closure))
INTERPOSE(TRANSPORT, struct curl_slist *, curl_slist_append, NULL,
          (struct curl_slist * list, const char *text), (list, text))
INTERPOSE(TRANSPORT, CURLU *, curl_url, NULL, (void), ())
INTERPOSE(TRANSPORT, CURLUcode, curl_url_set, CURLUE_OUT_OF_MEMORY,
          (CURLU * url, CURLUPart part, const char *text, unsigned flags), (url, part, text, flags))
INTERPOSE(TRANSPORT, CURLUcode, curl_url_get, CURLUE_OUT_OF_MEMORY,
          (CURLU * url, CURLUPart part, char **ret_text, unsigned flags), (url, part, ret_text, flags))

/* With one argument of a word's size, as all options have. */
#undef curl_easy_setopt
#undef curl_multi_setopt
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    va_list arguments;
    va_start(arguments, option);
    void *value = va_arg(arguments, void *);
    va_end(arguments);
    return strikes_from_program(TRANSPORT, __builtin_return_address(0))
               ? CURLE_OUT_OF_MEMORY
               : REAL(curl_easy_setopt)(easy, option, value);
}

CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
    va_list arguments;
    va_start(arguments, option);
    void *value = va_arg(arguments, void *);
    va_end(arguments);
    return strikes_from_program(TRANSPORT, __builtin_return_address(0))
               ? CURLM_OUT_OF_MEMORY
               : REAL(curl_multi_setopt)(multi, option, value);
}
