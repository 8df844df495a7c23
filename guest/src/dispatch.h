#pragma once

#include "connection/connection.h"

/* Hands one complete frame to its handler. Returns false for a protocol error. */
frame_handler dispatch;
