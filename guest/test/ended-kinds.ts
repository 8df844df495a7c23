/** How a command ended: the `kind` of its ENDED frame. */
export const EXITED = 1;
export const SIGNALED = 2;
export const TIMED_OUT = 3;
export const MEMORY = 4;
export const OUTPUT = 5;
export const CANCELLED = 6;
