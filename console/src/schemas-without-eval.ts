/**
 * Zod tests whether the page allows `eval`, to compile schemas to functions. This page forbids `eval`, and its policy
 * reports every test. Turns the test off before the first schema is loaded, and loads no schema itself.
 */
(globalThis as { __zod_globalConfig?: { jitless?: boolean } }).__zod_globalConfig = { jitless: true };

export {};
