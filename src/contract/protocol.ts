/**
 * The version of the protocol between a station and its clients. It increases when a side that only knows the previous
 * version could misunderstand the other; pure additions do not count.
 */
export const PROTOCOL = 1;
