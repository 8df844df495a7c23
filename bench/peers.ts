import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** What a user would use instead, driven as that user would: by its command line. */

/** Runs a program to its end and returns what it wrote. Throws when it fails: a peer that does not work must not look fast. */
export async function runPeer(argv: readonly string[], options: { input?: string } = {}): Promise<string> {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => undefined).end(options.input ?? "");
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${argv.join(" ")} ended with ${code}: ${stderr.slice(0, 500)}`);
  return stdout;
}

/** Starts a program that serves, and waits for the first line it writes. Somebody else ends it. */
export async function startPeer(argv: readonly string[]): Promise<void> {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
  const line = await Promise.race([once(createInterface({ input: child.stdout }), "line"), once(child, "exit")]);
  if (typeof line[0] !== "string") throw new Error(`${argv.join(" ")} ended with ${line[0]} before it served`);
}

/** Counts the bytes a program writes, without keeping them. */
export async function countOutput(argv: readonly string[]): Promise<number> {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  let bytes = 0;
  child.stdout.on("data", (data: Buffer) => {
    bytes += data.length;
  });
  await once(child, "close");
  return bytes;
}

/** A bundle as `runc spec` makes it, around a static busybox: the plain OCI runtime without any of our hardening. */
export async function makePlainBundle(options: {
  runtime: string;
  dir: string;
  busybox: string;
  args: readonly string[];
}): Promise<string> {
  const rootfs = join(options.dir, "rootfs");
  await mkdir(join(rootfs, "bin"), { recursive: true });
  await cp(options.busybox, join(rootfs, "bin/busybox"));
  await runPeer([options.runtime, "spec", "--bundle", options.dir]).catch(async () => {
    // crun writes into the working folder and knows no --bundle.
    await runPeer(["sh", "-c", 'cd "$1" && exec "$2" spec', "sh", options.dir, options.runtime]);
  });
  const { default: config } = await import(join(options.dir, "config.json"), { with: { type: "json" } });
  const changed = { ...config, process: { ...config.process, terminal: false, args: ["/bin/busybox", ...options.args] } };
  await writeFile(join(options.dir, "config.json"), JSON.stringify(changed));
  return options.dir;
}

/** How to start crun here: it refuses a hybrid cgroup mount, which a private mount namespace without `unified` hides from it. */
export function plainRuntimeArgv(runtime: "runc" | "crun", args: readonly string[]): string[] {
  if (runtime === "runc") return ["runc", ...args];
  return ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/unified 2>/dev/null; exec crun "$@"', "sh", ...args];
}
