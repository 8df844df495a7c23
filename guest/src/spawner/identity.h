#pragma once

#include "base/privilege.h"
#include "connection/guest.h"

/* Resolves a request's user: "user", "root", a uid or UID:GID. Returns false with a reason if it is not permitted. */
bool identity_of(const struct guest *guest, const char *user, struct identity *out, const char **why);
