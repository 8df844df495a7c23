import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { packageFiles } from "./package-files.ts";

/**
 * The first file of the program, and the only one that every call of it loads: what is not needed to say which version this is comes after it.
 * An older Node must get as far as the message, so its syntax and its imports are those of any Node.
 */
const nodeNeeded = [22, 18] as const;
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < nodeNeeded[0] || (major === nodeNeeded[0] && minor < nodeNeeded[1])) {
  console.error(`caisson: Node ${nodeNeeded.join(".")} or later is needed; this is ${process.versions.node}`);
  process.exit(125);
}
if (process.argv[2] === "--version" || process.argv[2] === "-V") sayVersion();
else await import("./main.ts");

function sayVersion(): void {
  const { version } = JSON.parse(readFileSync(join(packageFiles(import.meta.filename).root, "package.json"), "utf8")) as {
    version: string;
  };
  const text = `caisson ${version}\n`;
  try {
    writeSync(1, text);
    process.exit(0);
  } catch {
    // Its reader is slow, or gone: Node's own stream waits for the one, and of the other nobody wants to hear.
    process.stdout.on("error", () => process.exit(0)).write(text);
  }
}
