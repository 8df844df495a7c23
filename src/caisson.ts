/**
 * The first file of the program, and all that every call of it loads: what is not needed to say which version this is
 * comes after it. It imports nothing, so that an older Node gets as far as the message.
 */
const nodeNeeded = [22, 18] as const;
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < nodeNeeded[0] || (major === nodeNeeded[0] && minor < nodeNeeded[1])) {
  console.error(`caisson: Node ${nodeNeeded.join(".")} or later is needed; this is ${process.versions.node}`);
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
    // Its reader is slow, or gone: Node's own stream waits for the one, and of the other nobody wants to hear.
    process.stdout.on("error", () => process.exit(0)).write(text);
  }
}

export {};
