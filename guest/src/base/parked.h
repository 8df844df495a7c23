/* How the host finds a guest's socket to process 1, and sees that the guest waits for an image of its memory. */
#pragma once

enum { REAPER_FD = 99 };

/* The guest's name in /proc while it waits. */
#define PARKED_NAME "caisson-parked"
