/**
 * Schemas are made into functions by zod where a page may evaluate text, which it tries out. This page may not, and its
 * policy reports each try. It is said before the first schema is loaded, without loading any.
 */
(globalThis as { __zod_globalConfig?: { jitless?: boolean } }).__zod_globalConfig = { jitless: true };

export {};
