#pragma once

struct guest;

/* Called when a command has ended: a shutdown may be waiting for the last one. */
void shutdown_check(struct guest *guest);
