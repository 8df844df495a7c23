#pragma once

#include "base/privilege.h"
#include "connection/guest.h"

/* Whom a request means by its user: "user", "root" or a uid. False with a reason when that is not permitted. */
bool identity_of(const struct guest *guest, const char *user, struct identity *out, const char **why);
