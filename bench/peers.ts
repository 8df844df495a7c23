import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** What a user would use instead, driven by its command line, as that user would. */

/** Runs a program to its end and returns its output. Throws if it fails: a broken peer must not look fast. */
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

/** Starts a program that serves, and waits for its first line of output. Another command ends it. */
export async function startPeer(argv: readonly string[]): Promise<void> {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
  const line = await Promise.race([once(createInterface({ input: child.stdout }), "line"), once(child, "exit")]);
  if (typeof line[0] !== "string") throw new Error(`${argv.join(" ")} ended with ${line[0]} before it served`);
}

/** Counts the bytes that a program writes, without storing them. */
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

/**
 * Makes a bundle with the runtime's `spec`, around a static busybox: the plain OCI runtime without any of our
 * hardening.
 */
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
    // crun writes into the working folder and does not know --bundle.
    await runPeer(["sh", "-c", 'cd "$1" && exec "$2" spec', "sh", options.dir, options.runtime]);
  });
  const { default: config } = await import(join(options.dir, "config.json"), { with: { type: "json" } });
  const changed = { ...config, process: { ...config.process, terminal: false, args: ["/bin/busybox", ...options.args] } };
  await writeFile(join(options.dir, "config.json"), JSON.stringify(changed));
  return options.dir;
}

/**
 * Returns the command line of an OCI runtime. crun refuses a hybrid cgroup mount, so a private mount namespace without
 * `unified` hides that.
 */
export function plainRuntimeArgv(runtime: "runc" | "crun", args: readonly string[]): string[] {
  if (runtime === "runc") return ["runc", ...args];
  return ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/unified 2>/dev/null; exec crun "$@"', "sh", ...args];
}
