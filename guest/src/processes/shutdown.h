#pragma once

struct guest;

/* A command ended: perhaps it was the last that a shutdown waits for. */
void shutdown_check(struct guest *guest);
