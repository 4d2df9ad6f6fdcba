/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all our uses of libcurl: our allocators, so that running out of memory aborts, and the check of
 * options that must not fail. */
#ifndef BASE_CURL_USE_H
#define BASE_CURL_USE_H

#include <curl/curl.h>
#include <stdlib.h>

#include "proto/base/text/text.h"

static inline void *curl_use_calloc(size_t count, size_t size)
{
    void *pointer = calloc(count, size);
    if (pointer == NULL) {
        out_of_memory();
    }
    return pointer;
}

/* Call once, before anything else of libcurl. */
static inline void curl_use_begin(long flags)
{
    if (curl_global_init_mem(flags, xalloc, free, xrealloc, xstrdup, curl_use_calloc) != CURLE_OK) {
        out_of_memory();
    }
}

static inline void curl_use_must(CURLcode code)
{
    if (code == CURLE_OUT_OF_MEMORY) {
        out_of_memory();
    }
    if (code != CURLE_OK) {
        abort(); /* an option that does not exist, or a value that libcurl does not take */
    }
}

/* Aborts on failure: without one of its options the request would be a different one. */
#define curl_use_set(easy, option, value) curl_use_must(curl_easy_setopt(easy, option, value))

static inline void curl_use_must_multi(CURLMcode code)
{
    if (code == CURLM_OUT_OF_MEMORY) {
        out_of_memory();
    }
    if (code != CURLM_OK) {
        abort();
    }
}

/* Trusts the authorities of $SSL_CERT_FILE in place of the system's: libcurl itself does not read it. */
static inline void curl_use_authorities(CURL *easy)
{
    static const char *const system_wide[] = {"SSL_CERT_FILE"};
    const char *file = getenv(system_wide[0]);
    if (file != NULL) {
        curl_use_set(easy, CURLOPT_CAINFO, file);
    }
}

/* Returns the longer list. */
static inline struct curl_slist *curl_use_append(struct curl_slist *list, const char *text)
{
    struct curl_slist *longer = curl_slist_append(list, text);
    if (longer == NULL) {
        out_of_memory();
    }
    return longer;
}

static inline CURL *curl_use_easy(void)
{
    CURL *easy = curl_easy_init();
    if (easy == NULL) {
        out_of_memory();
    }
    return easy;
}

static inline CURLM *curl_use_multi(void)
{
    CURLM *multi = curl_multi_init();
    if (multi == NULL) {
        out_of_memory();
    }
    return multi;
}

#endif
