#pragma once

#include "connection/connection.h"

/* Takes one complete frame to whom it is for. False is a protocol error. */
frame_handler dispatch;
