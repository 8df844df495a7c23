import { lstat, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import { type AttackContext, probeMissing } from "./attack-context.ts";
import { type Claim, defineClaim, type NotTried, unverifiable } from "./claim.ts";

const maskedFiles = [
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/timer_list",
  "/proc/sched_debug",
  "/proc/kmsg",
  "/proc/kpagecount",
  "/dev/kmsg",
  "/dev/mem",
  "/dev/port",
];

/** Host resources that should not be visible from inside. */
export const sightClaims: Claim[] = [
  defineClaim<{ refused: string[]; started: string[]; touched: string[] }>({
    id: "I09",
    title: "An image whose /dev, /proc or /etc are links does not lead to the host",
    group: "isolation",
    tried: "Started sandboxes from rootfs folders in which one folder is a link to a folder of the host.",
    observe: observeLinkedImages,
    judge: ({ touched }) => touched.map((each) => `the host folder was changed: ${each}`),
    describe: ({ refused, started }) =>
      `refused: ${refused.join(", ") || "none"}; started without reaching the host: ${started.join(", ") || "none"}`,
  }),
  defineClaim<{ writable: string[]; agents: string[] }>({
    id: "I12",
    title: "No cgroup can be changed from inside",
    group: "isolation",
    tried: "Looked for writable files below /sys/fs/cgroup, especially release_agent, as the user and as root inside.",
    async observe(context) {
      const script =
        'find /sys/fs/cgroup -writable 2>/dev/null | head -20; echo ---; for f in $(find /sys/fs/cgroup -name release_agent 2>/dev/null | head -20); do (: >> "$f") 2>/dev/null && echo "$f"; done; true';
      const found = { writable: [] as string[], agents: [] as string[] };
      const root = await context.rootSandbox();
      const attempts = [{ sandbox: await context.sandbox(), user: "user" }, ...(root === null ? [] : [{ sandbox: root, user: "root" }])];
      for (const { sandbox, user } of attempts) {
        const { stdout } = await context.shell(sandbox, script, [], { user });
        const [writable = "", agents = ""] = stdout.split("---\n");
        found.agents.push(...lines(agents).map((path) => `${path} as ${user}`));
        // For root, `-writable` trusts the permission bits; only a file that opens counts.
        const opened = (await context.probe(sandbox, ["write", ...lines(writable)], { user })) ?? [];
        found.writable.push(...opened.filter(([, result]) => result === "ok").map(([path]) => `${path} as ${user}`));
      }
      return found;
    },
    judge: ({ writable, agents }) => [
      ...agents.map((each) => `release_agent can be written: ${each}`),
      ...writable.map((each) => `can be written: ${each}`),
    ],
    describe: () => "nothing below /sys/fs/cgroup can be written",
  }),
  defineClaim<{ sockets: string[]; opened: string[] }>({
    id: "I13",
    title: "No host socket is visible",
    group: "isolation",
    tried: "Searched the whole file system for sockets and tried the usual paths of engine sockets.",
    async observe(context) {
      const script =
        "find / -xdev -type s 2>/dev/null | head -20; for p in /run /tmp /var /workspace /home; do find $p -type s 2>/dev/null | head -5; done; echo ---; for s in /var/run/docker.sock /run/docker.sock /run/podman/podman.sock /run/containerd/containerd.sock /run/dbus/system_bus_socket; do [ -e $s ] && echo $s; done; true";
      const { stdout } = await context.shell(await context.sandbox(), script);
      const [found = "", usual = ""] = stdout.split("---\n");
      return { sockets: [...new Set(lines(found))], opened: lines(usual) };
    },
    judge: ({ sockets, opened }) => [...sockets.map((path) => `a socket: ${path}`), ...opened.map((path) => `an engine's socket: ${path}`)],
    describe: () => "none found",
  }),
  defineClaim<{ noNewPrivileges: string; before: string; after: string | null }>({
    id: "I18",
    title: "A setuid program gains nothing",
    group: "isolation",
    tried: "Read a command's NoNewPrivs; if root inside can create a setuid program, ran it as the user.",
    observe: observeSetuid,
    judge: ({ noNewPrivileges, before, after }) => [
      ...(noNewPrivileges === "1" ? [] : [`NoNewPrivs is ${noNewPrivileges || "unknown"}`]),
      ...(after !== null && after !== before ? [`a setuid program ran with euid ${after} instead of ${before}`] : []),
    ],
  }),
  defineClaim<{ readable: string[]; log: string; devices: string[] }>({
    id: "I19",
    title: "Kernel memory, keys and log are not visible",
    group: "isolation",
    tried: `Read ${maskedFiles.join(", ")} and the kernel log, as the user and as root inside; listed block devices in /dev.`,
    async observe(context) {
      const user = await readable(context, await context.sandbox(), "user");
      if (user === null) return unverifiable(probeMissing);
      const rootSandbox = await context.rootSandbox();
      const root = rootSandbox === null ? [] : ((await readable(context, rootSandbox, "root")) ?? []);
      const log = (await context.shell(await context.sandbox(), "dmesg 2>/dev/null | head -c 100; true")).stdout;
      const devices = (await context.shell(await context.sandbox(), "find /dev -type b 2>/dev/null | head -20; true")).stdout;
      return { readable: [...user, ...root], log, devices: lines(devices) };
    },
    judge: ({ readable: files, log, devices }) => [
      ...files.map((path) => `could be read: ${path}`),
      ...(log.trim() === "" ? [] : ["the kernel log could be read"]),
      ...devices.map((path) => `a block device: ${path}`),
    ],
    describe: () => "nothing could be read",
  }),
  defineClaim<{ processes: boolean; files: string[]; stateDir: boolean; hostProcess: boolean }>({
    id: "I20",
    title: "Another sandbox's and the host's processes and files are invisible",
    group: "isolation",
    tried:
      "Started a marked process in one sandbox and looked for it from another; looked for a secret host file and for the state folder, directly and through /proc.",
    observe: observeNeighbours,
    judge: ({ processes, files, stateDir, hostProcess }) => [
      ...(processes ? ["the other sandbox's process is visible"] : []),
      ...(hostProcess ? ["the host's process is visible"] : []),
      ...(stateDir ? ["the state folder is visible"] : []),
      ...files.map((path) => `the host's secret was read at ${path}`),
    ],
    describe: () => "no processes or files were visible",
  }),
];

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

async function readable(context: AttackContext, sandbox: Parameters<AttackContext["probe"]>[0], user: string): Promise<string[] | null> {
  const results = await context.probe(sandbox, ["read", ...maskedFiles], { user });
  if (results === null) return null;
  return results.filter(([, verb, count]) => verb === "read" && count !== "0").map(([path]) => `${path} as ${user}`);
}

async function observeLinkedImages(context: AttackContext) {
  if (!context.capabilities.templates.includes("image")) return unverifiable("the runtime does not support images");
  const base = await mkdtemp(join(tmpdir(), "caisson-test-"));
  const seen = { refused: [] as string[], started: [] as string[], touched: [] as string[] };
  try {
    const plain = await rootfs(join(base, "plain"));
    const refusal = await startFrom(context, plain);
    if (refusal !== null) return unverifiable(`the runtime does not accept a rootfs folder as an image: ${refusal}`);
    for (const name of ["dev", "proc", "sys", "etc", "tmp", "workspace", "home", "run"]) {
      const canary = await context.canary();
      const refused = await startFrom(context, await rootfs(join(base, name), { [name]: canary.folder }));
      (refused === null ? seen.started : seen.refused).push(name);
      seen.touched.push(...(await canary.touched()).map((each) => `${each} through ${name}`));
    }
    return seen;
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}

async function rootfs(folder: string, links: Record<string, string> = {}): Promise<string> {
  await mkdir(folder, { mode: 0o755 });
  for (const name of ["bin", "dev", "etc", "home", "proc", "run", "sys", "tmp", "usr", "var", "workspace"]) {
    const target = links[name];
    if (target === undefined) await mkdir(join(folder, name), { mode: 0o755 });
    else await symlink(target, join(folder, name));
  }
  return folder;
}

/** Starts a sandbox from a rootfs folder and writes a file in each place. Returns why it could not start, or null. */
async function startFrom(context: AttackContext, reference: string): Promise<string | null> {
  try {
    const sandbox = await context.create({ template: { kind: "image", reference } });
    for (const name of ["etc", "tmp", "workspace", "home"]) {
      await ignore(sandbox.writeFile(`/${name}/written-inside`, Buffer.from("x")), "a refusal is the desired result");
    }
    await sandbox.destroy();
    return null;
  } catch (error) {
    if (error instanceof CaissonError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

async function observeSetuid(context: AttackContext) {
  const status = await context.shell(await context.sandbox(), "grep NoNewPrivs /proc/self/status");
  const noNewPrivileges = status.stdout.split(/\s+/)[1] ?? "";
  const rootSandbox = await context.rootSandbox();
  if (rootSandbox === null) return { noNewPrivileges, before: "", after: null };
  const plain = await context.probe(rootSandbox, ["ids"]);
  if (plain === null) return unverifiable(probeMissing);
  await context.shell(rootSandbox, "cp caisson-probe setuid-probe && chown 0:0 setuid-probe && chmod 4755 setuid-probe", [], {
    user: "root",
  });
  const { stdout } = await context.shell(rootSandbox, "./setuid-probe ids");
  const euid = (text: string) => /euid (\d+)/.exec(text)?.[1] ?? "unknown";
  return { noNewPrivileges, before: euid(plain.map((line) => line.join(" ")).join("\n")), after: euid(stdout) };
}

async function observeNeighbours(
  context: AttackContext,
): Promise<{ processes: boolean; files: string[]; stateDir: boolean; hostProcess: boolean } | NotTried> {
  const [one, other] = [await context.sandbox(), await context.create()];
  const canary = await context.canary();
  const marker = `4${process.pid}${Date.now() % 1000}`;
  const sleeper = await context.startShell(one, 'exec sleep "$1"', [marker]);
  sleeper.discardOutput();
  const seeks = 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "; true';
  const commands = (await context.shell(other, seeks)).stdout;
  const paths = [
    canary.folder,
    `/proc/1/root${canary.folder}`,
    `/proc/self/root${canary.folder}`,
    `/proc/1/cwd/../../../../..${canary.folder}`,
  ];
  const files: string[] = [];
  for (const path of paths) {
    const { stdout } = await context.shell(other, 'cat "$1/secret" 2>/dev/null; true', [path]);
    if (stdout.includes(canary.secret)) files.push(path);
  }
  const stateDir = (await context.shell(other, 'ls -d "$1/sandboxes" 2>/dev/null; true', [context.stateDir])).stdout !== "";
  await sleeper.kill();
  const hostProgram = process.argv.slice(0, 2).join(" ");
  await lstat(canary.folder);
  return { processes: commands.includes(marker), files, stateDir, hostProcess: commands.includes(hostProgram) };
}
