/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the user of this host that an owner's ranks run as. An account of the host counts only if it is a
 * person's, whatever the controller says: root, daemons and "nobody" never run a job. All other owners get
 * numbers, in the order in which they come; STATE/users records each before it is first used, and none goes
 * to another owner later, because files of the first one may be left. */
#include "agent/launch/users.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define RECORD      "users"
#define HOMES       "homes"
#define SHELL       "/bin/sh"
#define NOBODY      65534 /* of files whose owner has no number here */
#define GROUPS_MAX  1024
#define PASSWD_ROOM 65536 /* for an entry with its texts */

/* One line of the record: "UID OWNER". */
struct entry {
    uid_t uid;
    char *owner; /* owned */
};

struct users {
    char *state;
    uid_t first, last;
    struct entry *entries;
    size_t count;
};

/* --- the record ----------------------------------------------------------------------------------------- */

static void add_entry(struct users *users, uid_t uid, const char *owner)
{
    users->entries = xrealloc(users->entries, (users->count + 1) * sizeof *users->entries);
    users->entries[users->count++] = (struct entry){uid, xstrdup(owner)};
}

static bool parse(struct users *users, char *text, struct err *err)
{
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        char *owner = line;
        const char *number = strsep(&owner, " ");
        int64_t uid;
        if (*line == '\0') {
            continue;
        }
        if (owner == NULL || !text_to_int(number, 1, UINT32_MAX - 1, &uid) ||
            !text_is_owner(owner, LIMIT_NAME_BYTES)) {
            err_set(err, ERR_MALFORMED, "%s/" RECORD ": \"%.64s\" is no number and no owner", users->state,
                    line);
            return err_hint(err, "put the file back as it was: it says whose files are whose on this node");
        }
        add_entry(users, (uid_t)uid, owner);
    }
    return true;
}

static bool store(const struct users *users, struct err *err)
{
    autofree char *path = xprintf("%s/" RECORD, users->state);
    autotext struct text text = {0};
    for (size_t i = 0; i < users->count; i++) {
        text_printf(&text, "%u %s\n", (unsigned)users->entries[i].uid, users->entries[i].owner);
    }
    return file_replace(path, text.bytes, text.length, 0600, err);
}

struct users *users_open(const char *state, uid_t first, uid_t last, struct err *err)
{
    struct users *users = xzalloc(sizeof *users);
    *users = (struct users){.state = xstrdup(state), .first = first, .last = last};
    autofree char *path = xprintf("%s/" RECORD, state);
    autofree char *homes = xprintf("%s/" HOMES, state);
    autofree char *text = NULL;
    bool there = access(path, F_OK) == 0;
    if (!file_make_directories(homes, USER_PASSAGE_MODE, err) ||
        (there && (!file_read(path, LIMIT_USERS_BYTES, &text, NULL, err) || !parse(users, text, err)))) {
        users_close(users);
        return NULL;
    }
    return users;
}

void users_close(struct users *users)
{
    if (users != NULL) {
        for (size_t i = 0; i < users->count; i++) {
            free(users->entries[i].owner);
        }
        free(users->entries);
        free(users->state);
        free(users);
    }
}

uid_t users_of_fetches(const struct users *users)
{
    return users->first + USERS_OF_BUILDS - 1;
}

uid_t users_of_builds(const struct users *users)
{
    return users->first;
}

/* --- users ---------------------------------------------------------------------------------------------- */

static bool is_given(const struct users *users, uid_t uid)
{
    for (size_t i = 0; i < users->count; i++) {
        if (users->entries[i].uid == uid) {
            return true;
        }
    }
    return false;
}

static bool number_of(struct users *users, const char *owner, uid_t *ret_uid, struct err *err)
{
    for (size_t i = 0; i < users->count; i++) {
        if (strcmp(users->entries[i].owner, owner) == 0) {
            *ret_uid = users->entries[i].uid;
            return true;
        }
    }
    uid_t uid = users->first + USERS_OF_BUILDS + (uid_t)users->count;
    while (uid <= users->last && is_given(users, uid)) {
        uid++;
    }
    if (uid > users->last) {
        err_set(err, ERR_LIMIT, "no number is left for a job of %s", owner);
        return err_hint(err, "give this node a longer range with --user-ids");
    }
    add_entry(users, uid, owner);
    if (!store(users, err)) {
        free(users->entries[--users->count].owner);
        return false;
    }
    log_info("user added", "owner=%s uid=%u", owner, (unsigned)uid);
    *ret_uid = uid;
    return true;
}

/* A home of the agent's making. */
static bool make_home(const struct users *users, struct user *user, struct err *err)
{
    free(user->home);
    user->home = xprintf("%s/" HOMES "/%u", users->state, (unsigned)user->uid);
    struct stat status;
    bool made = mkdir(user->home, 0700) == 0 || errno == EEXIST;
    if (!made || lstat(user->home, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return err_errno(err, "cannot make %s", user->home);
    }
    return (status.st_uid == user->uid && status.st_gid == user->gid) ||
           chown(user->home, user->uid, user->gid) == 0 || err_errno(err, "cannot give %s away", user->home);
}

static void take_groups(const struct passwd *entry, struct user *user)
{
    int count = GROUPS_MAX;
    user->groups = xalloc(GROUPS_MAX * sizeof *user->groups);
    if (getgrouplist(entry->pw_name, entry->pw_gid, user->groups, &count) < 0) {
        count = GROUPS_MAX;
    }
    for (int i = 0; i < count; i++) { /* root's group reads files of the host that are no person's */
        if (user->groups[i] != 0) {
            user->groups[user->group_count++] = user->groups[i];
        }
    }
}

static bool is_person(const struct users *users, const struct passwd *entry)
{
    return entry->pw_uid >= USERS_LEAST && entry->pw_uid != NOBODY && entry->pw_gid != 0 &&
           (entry->pw_uid < users->first || entry->pw_uid > users->last);
}

bool users_find(struct users *users, const char *owner, struct user *ret_user, struct err *err)
{
    if (!text_is_owner(owner, LIMIT_NAME_BYTES)) { /* it becomes a line of the record */
        return err_set(err, ERR_FIELD, "the owner of the job is no name");
    }
    struct user user = {.name = xstrdup(owner)};
    struct passwd room, *entry = NULL;
    struct stat status;
    autofree char *texts = xalloc(PASSWD_ROOM);
    bool known =
        getpwnam_r(owner, &room, texts, PASSWD_ROOM, &entry) == 0 && entry != NULL && is_person(users, entry);
    if (known) {
        user.uid = entry->pw_uid;
        user.gid = entry->pw_gid;
        user.home = xstrdup(entry->pw_dir);
        user.shell = xstrdup(entry->pw_shell[0] != '\0' ? entry->pw_shell : SHELL);
        take_groups(entry, &user);
    } else {
        user.shell = xstrdup(SHELL);
        if (!number_of(users, owner, &user.uid, err)) {
            user_finish(&user);
            return false;
        }
        user.gid = user.uid;
    }
    bool at_home = known && stat(user.home, &status) == 0 && S_ISDIR(status.st_mode);
    if (!at_home && !make_home(users, &user, err)) {
        user_finish(&user);
        return false;
    }
    *ret_user = user;
    return true;
}

void user_finish(struct user *user)
{
    free(user->groups);
    free(user->name);
    free(user->home);
    free(user->shell);
    *user = (struct user){0};
}

/* The kernel takes the rights of root over files from a thread with another fsuid, and gives them back. */
void user_begin(const struct user *user)
{
    if (user != NULL) {
        setfsgid(user->gid);
        setfsuid(user->uid);
    }
}

void user_end(const struct user *user)
{
    if (user != NULL) {
        setfsuid(geteuid());
        setfsgid(getegid());
    }
}
