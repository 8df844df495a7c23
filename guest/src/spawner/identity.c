#include "spawner/identity.h"

#include <stdlib.h>
#include <string.h>

bool identity_of(const struct guest *guest, const char *user, struct identity *out, const char **why) {
  bool default_user = user == NULL || user[0] == 0 || strcmp(user, "user") == 0;
  uint64_t uid = guest->uid;
  if (!default_user && strcmp(user, "root") == 0) {
    uid = 0;
  } else if (!default_user) {
    char *end;
    uid = strtoull(user, &end, 10);
    if (user[0] < '0' || user[0] > '9' || *end != 0 || uid >= UINT32_MAX) {
      *why = "user must be \"user\", \"root\" or a decimal uid";
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
  *out = (struct identity){.uid = (uint32_t)uid, .gid = uid == guest->uid ? guest->gid : (uint32_t)uid, .change = true};
  if (uid == 0 && guest->allow_root) out->keep_caps = guest->root_caps;
  return true;
}
