import { ignore, succeeds } from "../../lib/failures.ts";
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

/** Results that mean a refusal by the kernel or the filter. */
const refusals = new Set(["EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT", "EROFS", "SIGSYS"]);
/** Calls that may pass: they affect only the caller, or what is in the sandbox's own namespaces. */
const harmless = new Set(["memfd_secret", "landlock", "seccomp", "socket_netlink_route", "socket_netlink_uevent", "socket_unix", "end"]);
/** Calls that root inside may make as well, with its few capabilities in its own user namespace. */
const harmlessForRoot = new Set([...harmless, "chroot", "setuid_root", "setgroups"]);

export interface CallResults {
  /** Results by call, for the sandbox's user. */
  user: Record<string, string>;
  /** The same for root inside; null if there is no root. */
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

/** Returns the calls that passed, among `names` (default: all). A probe that did not finish proves nothing. */
function letThrough({ user, root }: CallResults, names?: readonly string[]): string[] {
  const of = (results: Record<string, string>, allowed: Set<string>, who: string) => {
    if (results.end !== "ok") return [`the probe stopped early as ${who}`];
    return Object.entries(results)
      .filter(([name, result]) => (names === undefined ? !allowed.has(name) : names.includes(name)) && !refusals.has(result))
      .map(([name, result]) => `${name} passed as ${who} (${result})`);
  };
  return [...of(user, harmless, "user"), ...(root === null ? [] : of(root, harmlessForRoot, "root inside"))];
}

function describeCalls({ user, root }: CallResults): string {
  const listPassed = (results: Record<string, string>) =>
    Object.entries(results)
      .filter(([name, result]) => name !== "end" && !refusals.has(result))
      .map(([name]) => name)
      .join(", ");
  const tried = Object.keys(user).length - 1;
  const asRoot = root === null ? "there is no root inside" : `as root inside passed: ${listPassed(root)}`;
  return `${tried} calls tried; as user passed: ${listPassed(user)}; ${asRoot}`;
}

/** Defines a claim about single calls. All such claims are judged from one run of the probe. */
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
 * The result of opening each file, by user: `ok`, an error name, or `null` for the null device, which discards
 * everything written to it.
 */
export interface Openings {
  user: Record<string, string>;
  /** Null if there is no root inside. */
  root: Record<string, string> | null;
}

/** Opens files for writing inside, as the user and as root. Writes nothing. */
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
      if (results[path] === undefined) return [`the probe stopped before ${path} as ${who}`];
      return results[path] === "ok" ? [`could be opened for writing: ${path} as ${who}`] : [];
    });
  return defineClaim<Openings>({
    id,
    title,
    group: "isolation",
    tried: `Opened for writing, without writing: ${paths.join(", ")}.`,
    observe: (context) => openForWriting(context, paths),
    judge: ({ user, root }) => [...failures(user, "user"), ...(root === null ? [] : failures(root, "root inside"))],
    describe: ({ user }) => `each was refused or is the null device: ${paths.map((path) => `${path} ${user[path]}`).join(", ")}`,
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
    title: "The guest still answers after killing process 1, or everything",
    group: "isolation",
    tried: "Ran `kill -9 1` and `kill -9 -1`, as the user and as root inside, then pinged the guest and ran a command.",
    async observe(context) {
      if (context.capabilities.isolation === 0) return unverifiable("without a wall this would kill the machine's own processes");
      const survives = async (allowRoot: boolean) => {
        const sandbox = await context.create({ allowRoot });
        const user = allowRoot ? "root" : "user";
        // Root inside may kill the process that starts this very command; what counts is whether the next command runs.
        await ignore(context.shell(sandbox, "kill -9 1; kill -9 -1; true", [], { user }), "the shell may kill itself");
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
  callClaim("I16", "Device files for disk and memory cannot be created", ["mknod_disk", "mknod_memory"]),
];

/** Whether the guest answers a ping. */
export function pings(context: AttackContext, sandbox: { ping(): Promise<unknown> }): Promise<boolean> {
  return succeeds(context.within("ping", sandbox.ping(), 5_000), "the check reports a guest that does not answer");
}

/** Whether the guest answers a ping and starts a command. */
export async function answers(
  context: AttackContext,
  sandbox: Parameters<AttackContext["shell"]>[0] & { ping(): Promise<unknown> },
): Promise<boolean> {
  const asking = context.within("ping", sandbox.ping(), 5_000).then(() => context.shell(sandbox, "echo alive"));
  return (await ignore(asking, "a sandbox that does not answer is not alive"))?.stdout === "alive\n";
}
