import { copyFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Plugin, rolldown } from "rolldown";
import { keepCompiled } from "./keep-compiled.ts";
import { startupFiles } from "./startup-files.ts";

/**
 * Bundles the program into a few files in the given folder: loading hundreds of files one by one costs more than
 * creating a sandbox. In a clone, the bundle is a cache of the command line, and the launcher uses it only while no
 * source is newer. With `--package`, the bundle also contains the library's entry points, for the npm package.
 */
const root = join(import.meta.dirname, "..");
const source = (...path: string[]) => join(root, "src", ...path);
const [target, forPackage] = process.argv.slice(2);
if (target === undefined || (forPackage !== undefined && forPackage !== "--package"))
  throw new Error("usage: bundle.ts FOLDER [--package]");

/** The entry points in `exports` of package.json. */
const library = {
  index: source("index.ts"),
  client: source("client", "connect.ts"),
  conformance: source("suites", "conformance", "describe-runtime.ts"),
  attack: source("suites", "attack", "run-attacks.ts"),
};

/** If two groups name the same module, the first group gets it. */
const groups = startupFiles.map(({ name, modules }, index) => {
  const paths = new Set(modules.map((module) => source(module)));
  return { name, test: (id: string) => paths.has(id), priority: startupFiles.length - index };
});
/**
 * Gets Node's own modules from the process instead of importing them. An import creates a second view of a module with
 * all its exports, and reading some exports loads more modules: every `import … from "node:fs"` loads streams.
 */
const askForNodeModules: Plugin = {
  name: "ask-for-node-modules",
  renderChunk(code) {
    const rewrittenCode = code.replaceAll(
      /^import (\w+|\{[^}]*\}|\* as \w+) from ("node:[\w/]+");$/gm,
      (_, names: string, module: string) => {
        const target = names.startsWith("{") ? names.replaceAll(" as ", ": ") : names.replace("* as ", "");
        return `const ${target} = globalThis.process.getBuiltinModule(${module});`;
      },
    );
    // Keeps every line in its place, so that source maps stay correct.
    return { code: rewrittenCode, map: null };
  },
};
/**
 * `@hono/node-server` checks whether each request uses HTTP/2, but our servers do not speak HTTP/2. Loading Node's
 * module for this check delays the start of a station by 10 ms.
 */
const neverHttp2: Plugin = {
  name: "never-http2",
  resolveId: (id, from) => (id === "node:http2" && from?.includes("@hono") ? "\0never-http2" : null),
  load: (id) =>
    id === "\0never-http2"
      ? "export const Http2ServerRequest = class { static [Symbol.hasInstance]() { return false; } }; export const constants = {};"
      : null,
};
const bundle = await rolldown({
  input: {
    caisson: source("caisson.ts"),
    // Imported by the files that `keepCompiled` writes.
    "kept-script": join(root, "scripts", "kept-script.ts"),
    // Separate programs, next to the files that start them.
    "unpack-main": source("runtimes", "oci", "template", "unpack-main.ts"),
    "stall-guard-main": source("api", "overload", "stall-guard-main.ts"),
    // Threads, also next to the files that start them.
    "expression-thread-main": source("station", "workflows", "expression-thread-main.ts"),
    "turn-watch-main": source("station", "poison", "turn-watch-main.ts"),
    ...(forPackage && library),
  },
  platform: "node",
  plugins: [askForNodeModules, neverHttp2],
  // The groups decide which file a module is in; a late import still decides when it runs.
  checks: { ineffectiveDynamicImport: false },
  // Node 22 has no `using`; its replacement comes from @oxc-project/runtime.
  ...(forPackage && { transform: { target: "node22.18" } }),
  // A clone's cache contains all packages except those that are loaded on demand and have native parts. For the npm
  // package, npm installs the dependencies.
  external: forPackage ? (id) => !/^[./]|^@oxc-project\/runtime/.test(id) : ["dockerode", "vitest"],
});
await bundle.write({
  dir: target,
  format: "esm",
  entryFileNames: "[name].mjs",
  chunkFileNames: "[name].mjs",
  codeSplitting: { groups },
  sourcemap: forPackage !== undefined,
  // Stack traces need only file names and line numbers. The sources themselves would make up half of the package.
  sourcemapExcludeSources: true,
});
await bundle.close();
for (const { name, large } of startupFiles) if (large) keepCompiled(target, name);

// Files that the code reads from its own folder.
const agents = source("agent", "file");
for (const name of await readdir(agents)) if (name.endsWith(".prompt")) await copyFile(join(agents, name), join(target, name));
const preload = "node-proxy.cjs";
await copyFile(source("network", "sandbox-setup", preload), join(target, preload));
