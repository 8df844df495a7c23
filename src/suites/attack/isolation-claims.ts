import { type AttackContext, probeMissing } from "./attack-context.ts";
import { type Claim, defineClaim, type NotTried, unverifiable } from "./claim.ts";

export const kernelSettings = [
  "/proc/sys/kernel/core_pattern",
  "/proc/sysrq-trigger",
  "/proc/sys/kernel/modprobe",
  "/proc/sys/vm/overcommit_memory",
  "/proc/sys/fs/binfmt_misc/register",
  "/sys/kernel/uevent_helper",
  "/sys/power/state",
];

/** Results that say the kernel or the filter refused. */
const refusals = new Set(["EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT", "EROFS", "SIGSYS"]);
/** Calls that may pass: they touch nothing but the caller, or what the sandbox's own namespaces hold. */
const harmless = new Set(["memfd_secret", "landlock", "seccomp", "socket_netlink_route", "socket_netlink_uevent", "socket_unix", "end"]);
/** What root inside may do beyond that, with the few capabilities it has in its own user namespace. */
const harmlessForRoot = new Set([...harmless, "chroot", "setuid_root", "setgroups"]);

export interface CallResults {
  /** name → result, for the sandbox's user. */
  user: Record<string, string>;
  /** The same for root inside; null where there is none. */
  root: Record<string, string> | null;
}

async function callResults(context: AttackContext): Promise<CallResults | NotTried> {
  const user = await context.probe(await context.sandbox(), ["syscalls"]);
  if (user === null) return unverifiable(probeMissing);
  const rootSandbox = await context.rootSandbox();
  const root = rootSandbox === null ? null : await context.probe(rootSandbox, ["syscalls"], { user: "root" });
  return { user: toRecord(user), root: root === null ? null : toRecord(root) };
}

function toRecord(lines: string[][]): Record<string, string> {
  return Object.fromEntries(lines.map(([name = "", result = ""]) => [name, result]));
}

/** Calls that were let through, of those named (default all). A probe that did not come to its end proves nothing. */
function letThrough({ user, root }: CallResults, names?: readonly string[]): string[] {
  const of = (results: Record<string, string>, allowed: Set<string>, who: string) => {
    if (results.end !== "ok") return [`the probe broke off as ${who}`];
    return Object.entries(results)
      .filter(([name, result]) => (names === undefined ? !allowed.has(name) : names.includes(name)) && !refusals.has(result))
      .map(([name, result]) => `${name} passed as ${who} (${result})`);
  };
  return [...of(user, harmless, "user"), ...(root === null ? [] : of(root, harmlessForRoot, "root inside"))];
}

function describeCalls({ user, root }: CallResults): string {
  const passed = (results: Record<string, string>) =>
    Object.entries(results)
      .filter(([name, result]) => name !== "end" && !refusals.has(result))
      .map(([name]) => name)
      .join(", ");
  const tried = Object.keys(user).length - 1;
  const asRoot = root === null ? "there is no root inside" : `as root inside passed: ${passed(root)}`;
  return `${tried} calls tried; as user passed: ${passed(user)}; ${asRoot}`;
}

/** Claims about single calls, all judged from one run of the probe. */
function callClaim(id: string, title: string, names: readonly string[]): Claim {
  return defineClaim<CallResults>({
    id,
    title,
    group: "isolation",
    tried: `Called ${names.join(", ")} from a static program, as the user and as root inside.`,
    observe: callResults,
    judge: (seen) => letThrough(seen, names),
    describe: ({ user }) => names.map((name) => `${name}: ${user[name] ?? "not tried"}`).join(", "),
  });
}

/**
 * What came of opening each file, by who tried it: `ok`, an error's name, or `null` for the null device, which swallows
 * whatever is written.
 */
export interface Openings {
  user: Record<string, string>;
  /** Null where there is no root inside. */
  root: Record<string, string> | null;
}

/** Opens files for writing inside, as the user and as root. Nothing is written. */
async function openForWriting(context: AttackContext, paths: string[]): Promise<Openings | NotTried> {
  const user = await context.probe(await context.sandbox(), ["write", ...paths]);
  if (user === null) return unverifiable(probeMissing);
  const rootSandbox = await context.rootSandbox();
  const root = rootSandbox === null ? null : toRecord((await context.probe(rootSandbox, ["write", ...paths], { user: "root" })) ?? []);
  return { user: toRecord(user), root };
}

function writeClaim(id: string, title: string, paths: string[]): Claim {
  const failures = (results: Record<string, string>, who: string) =>
    paths.flatMap((path) => {
      if (results[path] === undefined) return [`the probe broke off before ${path} as ${who}`];
      return results[path] === "ok" ? [`could be opened for writing: ${path} as ${who}`] : [];
    });
  return defineClaim<Openings>({
    id,
    title,
    group: "isolation",
    tried: `Opened for writing, without writing: ${paths.join(", ")}.`,
    observe: (context) => openForWriting(context, paths),
    judge: ({ user, root }) => [...failures(user, "user"), ...(root === null ? [] : failures(root, "root inside"))],
    describe: ({ user }) => `none could be opened, or is the null device: ${paths.map((path) => `${path} ${user[path]}`).join(", ")}`,
  });
}

export const isolationClaims: Claim[] = [
  defineClaim<CallResults>({
    id: "I01",
    title: "Only harmless system calls pass",
    group: "isolation",
    tried: "Called about 95 dangerous system calls and socket kinds from a static program, as the user and as root inside.",
    observe: callResults,
    judge: (seen) => letThrough(seen),
    describe: describeCalls,
  }),
  callClaim("I02", "io_uring is refused", ["io_uring_setup", "io_uring_enter", "io_uring_register"]),
  callClaim("I03", "A new user namespace is refused", ["unshare_user", "clone_user", "clone3_user"]),
  callClaim("I05", "Process 1 cannot be traced, read or written", [
    "ptrace_init",
    "process_vm_readv_init",
    "process_vm_writev_init",
    "proc_mem_init",
    "pidfd_getfd_init",
  ]),
  defineClaim<{ user: boolean; root: boolean | null }>({
    id: "I06",
    title: "Killing process 1, or everything, leaves the guest answering",
    group: "isolation",
    tried: "Ran `kill -9 1` and `kill -9 -1`, as the user and as root inside, then pinged the guest and ran a command.",
    async observe(context) {
      if (context.capabilities.isolation === 0) return unverifiable("without a wall this would kill the machine's own processes");
      const survives = async (allowRoot: boolean) => {
        const sandbox = await context.create({ allowRoot });
        const user = allowRoot ? "root" : "user";
        // Root inside may kill what was about to start this very command; what counts is whether the next one runs.
        await context.shell(sandbox, "kill -9 1; kill -9 -1; true", [], { user }).catch(() => undefined);
        return answers(context, sandbox);
      };
      return { user: await survives(false), root: context.capabilities.rootUser ? await survives(true) : null };
    },
    judge: ({ user, root }) => [
      ...(user ? [] : ["the guest did not answer after the user's kill"]),
      ...(root === false ? ["the guest did not answer after root's kill"] : []),
    ],
    describe: () => "the guest answered and ran the next command",
  }),
  writeClaim("I07", "The guest's program cannot be overwritten", ["/proc/1/exe"]),
  writeClaim("I11", "The kernel's settings cannot be written", kernelSettings),
  callClaim("I16", "Device files for disk and memory cannot be made", ["mknod_disk", "mknod_memory"]),
];

/** The guest answers a ping and starts a command. */
export async function answers(
  context: AttackContext,
  sandbox: Parameters<AttackContext["shell"]>[0] & { ping(): Promise<unknown> },
): Promise<boolean> {
  try {
    await context.within("ping", sandbox.ping(), 5_000);
    const { stdout } = await context.shell(sandbox, "echo alive");
    return stdout === "alive\n";
  } catch {
    return false;
  }
}
