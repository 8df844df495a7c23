/**
 * The program's entry point. Every call loads it, so anything that `--version` does not need is imported later. It has
 * no static imports, so an older Node gets as far as the message.
 */
const nodeNeeded = [22, 18] as const;
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < nodeNeeded[0] || (major === nodeNeeded[0] && minor < nodeNeeded[1])) {
  console.error(`caisson: requires Node ${nodeNeeded.join(".")} or later; this is ${process.versions.node}`);
  process.exit(125);
}
if (["--version", "-V", "-v", "version"].includes(process.argv[2] ?? "")) await sayVersion();
else await import("./main.ts");

async function sayVersion(): Promise<void> {
  const { packageFiles, versionOf } = await import("./package-files.ts");
  const text = `caisson ${versionOf(packageFiles(import.meta.filename))}\n`;
  try {
    process.getBuiltinModule("node:fs").writeSync(1, text);
    process.exit(0);
  } catch {
    // The reader is slow or has closed the pipe. Node's stream waits for a slow reader; a closed pipe is not an error.
    process.stdout.on("error", () => process.exit(0)).write(text);
  }
}

export {};
