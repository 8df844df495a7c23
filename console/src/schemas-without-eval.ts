/**
 * Zod compiles schemas to functions if the page may evaluate text, which it tests first. This page may not, and its
 * policy reports every test. Turns that off before the first schema is loaded, without loading any.
 */
(globalThis as { __zod_globalConfig?: { jitless?: boolean } }).__zod_globalConfig = { jitless: true };

export {};
