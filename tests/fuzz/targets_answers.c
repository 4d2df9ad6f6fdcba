/* SPDX-License-Identifier: Apache-2.0 */
/* What gpuctl reads of a controller's answers and shows, and of files that it or an earlier gpuctl has
 * written; answers of servers of S3, and credentials for them. */
#include <jansson.h>
#include <string.h>

#include "client/cli/charts/point.h"
#include "client/cli/cluster/audit_chain.h"
#include "client/cli/show/event.h"
#include "client/cli/show/result.h"
#include "client/cli/spec/multi_document.h"
#include "client/cli/spec/short_forms.h"
#include "client/cli/login/saved_login.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/s3/s3_answer.h"
#include "proto/s3/s3_credentials.h"
#include "proto/s3/s3_listing.h"
#include "tests/fuzz/fuzz.h"

/* One line, that no terminal takes for an order. */
static void must_be_harmless(const struct text *line)
{
    for (size_t i = 0; i < line->length; i++) {
        unsigned char byte = (unsigned char)line->bytes[i];
        FUZZ_MUST((byte >= ' ' && byte != 0x7f) || (byte == '\n' && i + 1 == line->length));
    }
}

/* What is shown of an object of one of the lists of the API. */
bool fuzz_answer(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct point point;
    struct result result;
    autotext struct text line = {0}, members = {0};
    autojson json_t *json = json_parse((const char *)bytes, size, &err);
    if (json == NULL) {
        FUZZ_REFUSED(err);
        return false;
    }
    bool is_point = point_read(json, &point, &err);
    if (is_point) {
        point_line(&point, &line);
        must_be_harmless(&line);
    } else {
        FUZZ_REFUSED(err);
    }
    text_clear(&line);
    bool is_progress = point_progress_line(json, &line, &err);
    if (is_progress) {
        must_be_harmless(&line);
    }
    bool is_result = result_read(json, &result, &err);
    for (size_t i = 0; i < RESULT_COLUMNS; i++) {
        result_columns[i].show(json, result_columns[i].member, &members);
    }
    event_members(json, &members);
    array_say(json, &members);
    return is_point || is_progress || is_result;
}

/* The first line is a head that is wanted, or empty; the rest are rows. */
bool fuzz_audit(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct audit_chain chain = {0};
    autofree char *head = fuzz_line(&bytes, &size);
    if (head == NULL || size == 0) {
        return false;
    }
    FILE *file = fmemopen((void *)(uintptr_t)bytes, size, "r");
    FUZZ_MUST(file != NULL);
    bool good = audit_chain_read_head(head[0] != '\0' ? head : NULL, &chain, &err) &&
                audit_chain_take_file(&chain, file, &err) && audit_chain_end(&chain, &err);
    fclose(file);
    audit_chain_finish(&chain);
    if (!good) {
        FUZZ_REFUSED(err);
        return false;
    }
    const char *colon = strchr(chain.head, ':');
    FUZZ_MUST(chain.count == 0 || (colon != NULL && strspn(colon + 1, "0123456789abcdefABCDEF") == HASH_HEX &&
                                   strlen(colon + 1) == HASH_HEX));
    FUZZ_MUST(head[0] == '\0' || chain.head_seen);
    return chain.count > 0;
}

/* A saved login. */
bool fuzz_login(const uint8_t *bytes, size_t size)
{
    struct saved_login login;
    fuzz_file("login.json", bytes, size);
    if (!saved_login_read(fuzz_folder(), &login)) {
        return false;
    }
    FUZZ_MUST(login.url != NULL && login.issuer != NULL && login.token == NULL);
    saved_login_finish(&login);
    return true;
}

/* Job files with several jobs. */
bool fuzz_documents(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    autoseveral struct multi_document jobs = {0};
    if (!multi_document_read(fuzz_file("jobs.yaml", bytes, size), true, &jobs, &err) ||
        !multi_document_sort(&jobs, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    for (size_t i = 0; i < jobs.count; i++) {
        size_t job = jobs.order[i];
        FUZZ_MUST(job < jobs.count && !multi_document_waits(&jobs, job));
        memcpy(jobs.ids[job], "abcdefghijklmnop", sizeof jobs.ids[job]);
    }
    for (size_t i = 0; i < jobs.count; i++) {
        multi_document_name(&jobs, i);
    }
    return jobs.count > 1;
}

/* --- answers of servers of S3 --------------------------------------------------------------------------- */

/* A list, which both gpuctld and gpuagent read. */
static bool is_list(struct s3_element answer)
{
    struct err err = {0};
    struct s3_listing listing = {0};
    bool taken = s3_listing_read(answer, 3, &listing, &err);
    FUZZ_MUST((taken || err.text[0] != '\0') && listing.count <= 3);
    for (size_t i = 0; i < listing.count; i++) {
        FUZZ_MUST(listing.objects[i].key != NULL && listing.objects[i].size >= 0);
    }
    s3_listing_finish(&listing);
    return taken;
}

bool fuzz_s3_answer(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = {"Part", "Upload", "Error"};
    static const char *const inner[] = {"ETag", "UploadId", "Code"};
    const struct s3_element answer = {(const char *)bytes, size};
    bool found = is_list(answer);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct s3_element rest = answer, element;
        while (s3_answer_next(&rest, names[i], &element)) {
            autofree char *text = s3_answer_text(element, inner[i]);
            FUZZ_MUST(element.bytes >= (const char *)bytes &&
                      element.bytes + element.length <= (const char *)bytes + size);
            FUZZ_MUST(text == NULL || strlen(text) <= element.length);
            FUZZ_MUST(s3_answer_int(element, "PartNumber") >= -1);
            found = true;
        }
    }
    return found;
}

/* Credentials of S3, as people write them. */
bool fuzz_s3_credentials(const uint8_t *bytes, size_t size)
{
    struct s3_credentials credentials;
    autofree char *text = fuzz_text(bytes, size);
    bool whole = s3_credentials_parse(text, &credentials);
    FUZZ_MUST(!whole || (credentials.key_id[0] != '\0' && strpbrk(credentials.secret, " \r\n") == NULL));
    s3_credentials_finish(&credentials);
    return whole;
}
