#!/usr/bin/env node
// The command of the installed package. Package managers start it with Node by themselves, so it is no shell script.
// It does what ./caisson does in a clone: have the compiled form of the program kept, where the user's caches are.
const { join } = require("node:path");
const { XDG_CACHE_HOME, HOME = "/nonexistent" } = process.env;
const cache = join(XDG_CACHE_HOME || join(HOME, ".cache"), "caisson", "compile-cache");
process.env.NODE_COMPILE_CACHE = cache;
// Missing in a Node that is too old, which caisson.mjs says.
require("node:module").enableCompileCache?.(cache);
void import("./caisson.mjs");
