#include "spawner/identity.h"

#include <stdlib.h>
#include <string.h>

/* Reads a decimal id from the start of a text. Returns what follows it, or NULL. */
static const char *id_from(const char *text, uint64_t *id) {
  char *end;
  if (text[0] < '0' || text[0] > '9') return NULL;
  *id = strtoull(text, &end, 10);
  return *id < UINT32_MAX ? end : NULL;
}

/* Reads UID or UID:GID. A uid alone also is the gid. */
static bool ids_from(const char *text, uint64_t *uid, uint64_t *gid) {
  const char *rest = id_from(text, uid);
  *gid = *uid;
  if (rest && *rest == ':') rest = id_from(rest + 1, gid);
  return rest && *rest == 0;
}

bool identity_of(const struct guest *guest, const char *user, struct identity *out, const char **why) {
  bool default_user = user == NULL || user[0] == 0 || strcmp(user, "user") == 0;
  uint64_t uid = guest->uid;
  uint64_t gid = guest->gid;
  if (!default_user && strcmp(user, "root") == 0) {
    uid = gid = 0;
  } else if (!default_user) {
    if (!ids_from(user, &uid, &gid)) {
      *why = "user must be \"user\", \"root\", a decimal uid or UID:GID";
      return false;
    }
    /* A command of the sandbox's user has the sandbox's group, also where the uid is named. */
    if (uid == guest->uid && !strchr(user, ':')) gid = guest->gid;
    if (gid != uid && gid != guest->gid && !guest->allow_root) {
      *why = "the sandbox does not allow other groups";
      return false;
    }
  }
  if (uid == 0 && !guest->allow_root && !default_user) {
    *why = "the sandbox does not allow root";
    return false;
  }
  if (is_worker_uid(uid) && uid != guest->uid) {
    *why = "that uid is reserved for the guest";
    return false;
  }
  if (guest->not_init) {
    *out = (struct identity){.uid = geteuid(), .gid = getegid()};
    if (default_user || uid == out->uid) return true;
    *why = "this runtime cannot change the user";
    return false;
  }
  *out = (struct identity){.uid = (uint32_t)uid, .gid = (uint32_t)gid, .change = true};
  if (uid == 0 && guest->allow_root) out->keep_caps = guest->root_caps;
  return true;
}
