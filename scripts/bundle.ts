import { copyFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Plugin, rolldown } from "rolldown";
import { keepCompiled } from "./keep-compiled.ts";
import { startupFiles } from "./startup-files.ts";

/**
 * The program as a few files instead of some hundreds, into the folder named: loading them one by one costs more than a sandbox does. For a clone that
 * is a cache of the command line, which the launcher uses only while no source is newer; with `--package`, the library's entry points come with it, and
 * it is what npm gets.
 */
const root = join(import.meta.dirname, "..");
const source = (...path: string[]) => join(root, "src", ...path);
const [target, forPackage] = process.argv.slice(2);
if (target === undefined || (forPackage !== undefined && forPackage !== "--package"))
  throw new Error("usage: bundle.ts FOLDER [--package]");

/** What package.json's `exports` name. */
const library = {
  index: source("index.ts"),
  client: source("client", "connect.ts"),
  conformance: source("suites", "conformance", "describe-runtime.ts"),
  attack: source("suites", "attack", "run-attacks.ts"),
};

/** Where two name the same module, the first has it. */
const groups = startupFiles.map(({ name, modules }, index) => {
  const paths = new Set(modules.map((module) => source(module)));
  return { name, test: (id: string) => paths.has(id), priority: startupFiles.length - index };
});
/**
 * Asks for Node's own modules instead of importing them: an import makes a second view of a module with all that it exports, and to look at some of
 * that loads more modules (streams, for every `import … from "node:fs"`).
 */
const askForNodeModules: Plugin = {
  name: "ask-for-node-modules",
  renderChunk(code) {
    const asked = code.replaceAll(/^import (\w+|\{[^}]*\}|\* as \w+) from ("node:[\w/]+");$/gm, (_, names: string, module: string) => {
      const target = names.startsWith("{") ? names.replaceAll(" as ", ": ") : names.replace("* as ", "");
      return `const ${target} = globalThis.process.getBuiltinModule(${module});`;
    });
    // No line moves, so that source maps stay right.
    return { code: asked, map: null };
  },
};
/**
 * `@hono/node-server` asks of each request whether it came by HTTP/2, which no server of ours speaks. To load Node's module for that costs a station's start 10 ms.
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
    // Imported by what `keepCompiled` writes.
    "kept-script": join(root, "scripts", "kept-script.ts"),
    // A program of its own, started beside whichever file starts it.
    "unpack-main": source("runtimes", "oci", "template", "unpack-main.ts"),
    "stall-guard-main": source("api", "overload", "stall-guard-main.ts"),
    // A thread, started likewise.
    "expression-thread-main": source("station", "workflows", "expression-thread-main.ts"),
    "turn-watch-main": source("station", "poison", "turn-watch-main.ts"),
    ...(forPackage && library),
  },
  platform: "node",
  plugins: [askForNodeModules, neverHttp2],
  // Which file a module is in is said by the groups; to import it late is still for when it runs.
  checks: { ineffectiveDynamicImport: false },
  // Node 22 has no `using` yet; its replacement comes from @oxc-project/runtime.
  ...(forPackage && { transform: { target: "node22.18" } }),
  // A clone's cache holds all but what is loaded only when it is used and brings native parts along. npm installs what a package depends on.
  external: forPackage ? (id) => !/^[./]|^@oxc-project\/runtime/.test(id) : ["dockerode", "vitest"],
});
await bundle.write({
  dir: target,
  format: "esm",
  entryFileNames: "[name].mjs",
  chunkFileNames: "[name].mjs",
  codeSplitting: { groups },
  sourcemap: forPackage !== undefined,
  // A stack says the file and the line; the sources themselves would be half of the package.
  sourcemapExcludeSources: true,
});
await bundle.close();
for (const { name, large } of startupFiles) if (large) keepCompiled(target, name);

// Files that the code reads from beside itself.
const agents = source("agent", "file");
for (const name of await readdir(agents)) if (name.endsWith(".prompt")) await copyFile(join(agents, name), join(target, name));
const preload = "node-proxy.cjs";
await copyFile(source("network", "inside", preload), join(target, preload));
