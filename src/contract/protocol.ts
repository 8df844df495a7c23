/**
 * The number of what a station and those who talk to it have agreed on. It grows when one that knows only the former
 * could misunderstand the other; what is merely new has no part in it.
 */
export const PROTOCOL = 1;
