import { copyFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { rolldown } from "rolldown";

/**
 * The command line as a few files instead of some two hundred, into the folder named: loading them one by one costs more than a sandbox does. A
 * cache, no more: the launcher uses it only while no source is newer, and runs the sources otherwise.
 */
const root = join(import.meta.dirname, "..");
const target = process.argv[2];
if (target === undefined) throw new Error("usage: bundle.ts FOLDER");

const bundle = await rolldown({
  input: {
    caisson: join(root, "src", "main.ts"),
    // A program of its own, started beside whichever file starts it.
    "unpack-main": join(root, "src", "sandbox", "runtimes", "oci", "template", "unpack-main.ts"),
  },
  platform: "node",
  // What is loaded only when it is used, and brings native parts along.
  external: ["dockerode"],
});
await bundle.write({ dir: target, format: "esm", entryFileNames: "[name].mjs", chunkFileNames: "[name].mjs" });
await bundle.close();

// Files that the code reads from beside itself.
const agents = join(root, "src", "agent", "file");
for (const name of await readdir(agents)) if (name.endsWith(".prompt")) await copyFile(join(agents, name), join(target, name));
const preload = "node-proxy.cjs";
await copyFile(join(root, "src", "network", "inside", preload), join(target, preload));
