import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Certificates, makeCertificates } from "./certificates.ts";
import { createNamespaces, MACHINE_ADDRESS, MACHINE_PRIVATE_ADDRESS } from "./namespaces.ts";
import type { Call, CallAnswer, ServersCalls, ServersOptions } from "./servers-calls.ts";

export const PUBLIC = "93.184.216.34";
const PUBLIC_6 = "2606:2800:220:1::34";
const NAME_SERVER = "1.1.1.53";

/**
 * Public names. All addresses except the machine's lead to the same servers, which know the address of each request.
 */
const records = {
  "api.example.com": [PUBLIC],
  "six.example.com": [PUBLIC_6],
  "both.example.com": [PUBLIC, PUBLIC_6],
  "other.example.com": ["93.184.216.35"],
  "git.example.com": ["140.82.112.4"],
  "cdn.example.net": ["151.101.1.1"],
  "evil.example.net": ["151.101.1.66"],
  "npm.example.org": ["104.16.0.35"],
  "pypi.example.org": ["151.101.0.223"],
  "wrong-name.example.com": ["93.184.216.40"],
  "unknown-ca.example.com": ["93.184.216.41"],
  "expired.example.com": ["93.184.216.42"],
  "private.example.com": ["10.0.0.5"],
  "home.example.com": ["192.168.7.7"],
  "metadata.example.com": ["169.254.169.254"],
  "loopback.example.com": ["127.0.0.1"],
  "loopback6.example.com": ["::1"],
  "mapped.example.com": ["::ffff:10.0.0.5"],
  "unique-local.example.com": ["fd00:ec2::254"],
  "nat64.example.com": ["64:ff9b::a00:5"],
  "unspecified.example.com": ["0.0.0.0"],
  "carrier.example.com": ["100.64.1.1"],
  "broadcast.example.com": ["255.255.255.255"],
  "machine.example.com": [MACHINE_ADDRESS],
  "machine-private.example.com": [MACHINE_PRIVATE_ADDRESS],
  "mixed.example.com": [PUBLIC, "10.0.0.5"],
  "rebind.example.com": [[PUBLIC], ["10.0.0.5"]],
};
export const ports = { http: 80, https: 443, otherHttp: 8080, otherHttps: 8443, echo: 7000, mute: 7001, flood: 7002 } as const;

/** The servers' process, as the test calls it. */
export type Servers = {
  [Name in keyof ServersCalls]: (...args: Parameters<ServersCalls[Name]>) => Promise<ReturnType<ServersCalls[Name]>>;
};

/**
 * A private internet: a machine that runs Caisson, and a world whose names, addresses, servers and authorities belong
 * to the test.
 */
export interface Internet extends AsyncDisposable {
  /** A folder for files of the test, removed with the rig. */
  folder: string;
  certificates: Certificates;
  /** A token that only opens the git server, and must not appear anywhere it was not sent. */
  canary: string;
  /** The servers at every address except the machine's. */
  world: Servers;
  /** Services on the machine itself, which code inside must not reach. */
  machine: Servers;
  /** The environment of programs on the machine. */
  env: Record<string, string>;
  /** Returns the command that starts a program on the machine: as root, or as another user. */
  onMachine(argv: readonly string[], as?: { uid: number; gid: number }): string[];
  /** Returns the ids of processes that run on the machine, except the rig's own. */
  processes(): number[];
  /** Creates a bare repository with one commit, and returns its URL. */
  repository(name: string): string;
}

/** Starts the rig. Needs root. */
export async function startInternet(): Promise<Internet> {
  const folder = mkdtempSync(join(tmpdir(), "caisson-test-internet-"));
  chmodSync(folder, 0o755);
  const namespaces = createNamespaces();
  const children: ChildProcess[] = [];
  const dispose = async () => {
    await Promise.all(children.map(end));
    namespaces[Symbol.dispose]();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const canary = `ghp_${randomBytes(27).toString("base64url").replaceAll(/[-_]/g, "x")}`;
    const certificates = makeCertificates(folder, Object.keys(records));
    const { good, wrongName, expired, unknown } = certificates;
    const git = { folder: join(folder, "git"), username: "x-access-token", token: canary };
    mkdirSync(join(git.folder, "private"), { recursive: true });
    const quiet = { http: [], https: [], tcpEcho: [], tcpMute: [], tcpFlood: [] };
    const servers = async (namespace: string, options: Partial<ServersOptions>) => {
      const child = startServers(namespace);
      children.push(child);
      return connectServers(child, { ...quiet, ...options });
    };
    execFileSync("ip", ["-n", namespaces.world, "address", "add", `${NAME_SERVER}/32`, "dev", "lo"]);
    const world = await servers(namespaces.world, {
      http: [ports.http, ports.otherHttp],
      https: [ports.https, ports.otherHttps],
      tcpEcho: [ports.echo],
      tcpMute: [ports.mute],
      tcpFlood: [ports.flood],
      names: { address: NAME_SERVER, records },
      identities: { good, wrongName, expired, unknown },
      identityOf: { "wrong-name.example.com": "wrongName", "expired.example.com": "expired", "unknown-ca.example.com": "unknown" },
      git,
      registries: { npm: "npm.example.org", pypi: "pypi.example.org" },
    });
    const machine = await servers(namespaces.machine, { http: [ports.http, ports.otherHttp], tcpEcho: [ports.echo] });
    return {
      folder,
      certificates,
      canary,
      world,
      machine,
      env: trusting(certificates.bundleFile),
      onMachine: machineCommand({ folder, namespace: namespaces.machine, bundleFile: certificates.bundleFile }),
      processes: () => processesIn(namespaces.machine).filter((pid) => children.every((child) => child.pid !== pid)),
      repository: (name) => makeRepository(join(git.folder, `${name}.git`), `https://git.example.com/${name}.git`),
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function startServers(namespace: string): ChildProcess {
  const program = join(import.meta.dirname, "servers-program.ts");
  return spawn("nsenter", [`--net=/run/netns/${namespace}`, process.execPath, program], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
}

async function connectServers(child: ChildProcess, options: ServersOptions): Promise<Servers> {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  child.on("message", ({ id, result, error }: CallAnswer) => {
    const answer = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) answer?.resolve(result);
    else answer?.reject(new Error(error));
  });
  child.once("exit", (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`the rig's servers ended with ${code}`));
  });
  const wait = (id: number, message: ServersOptions | Call) => {
    const answer = Promise.withResolvers<unknown>();
    waiting.set(id, answer);
    child.send(message);
    return answer.promise;
  };
  await wait(0, options);
  let last = 0;
  return new Proxy({} as Servers, {
    // When the proxy is awaited, `then` must not become a call.
    get: (_, call) => (call === "then" ? undefined : (...args: unknown[]) => wait(++last, { id: last, call: call as Call["call"], args })),
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

/**
 * Returns a command prefix. The machine has its own name server, and trusts the rig's authority like all others. `ip
 * netns exec` would do this, but hides the control groups.
 */
function machineCommand({
  folder,
  namespace,
  bundleFile,
}: {
  folder: string;
  namespace: string;
  bundleFile: string;
}): Internet["onMachine"] {
  const etc = join(folder, "etc");
  mkdirSync(etc);
  writeFileSync(join(etc, "resolv.conf"), `nameserver ${NAME_SERVER}\noptions timeout:2 attempts:1\n`);
  writeFileSync(join(etc, "hosts"), "127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
  const mounts = [
    [join(etc, "resolv.conf"), "/etc/resolv.conf"],
    [join(etc, "hosts"), "/etc/hosts"],
    [bundleFile, "/etc/ssl/certs/ca-certificates.crt"],
  ];
  const script = `${mounts.map((pair) => `mount --bind ${pair.join(" ")}`).join(" && ")} && exec "$@"`;
  const enter = ["nsenter", `--net=/run/netns/${namespace}`, "unshare", "--mount", "--propagation", "slave", "sh", "-c", script, "sh"];
  return (argv, as) => [...enter, ...(as ? ["setpriv", `--reuid=${as.uid}`, `--regid=${as.gid}`, "--init-groups"] : []), ...argv];
}

function trusting(bundle: string): Record<string, string> {
  const names = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT"];
  return Object.fromEntries(names.map((name) => [name, bundle]));
}

function processesIn(namespace: string): number[] {
  return execFileSync("ip", ["netns", "pids", namespace], { encoding: "utf8" }).split("\n").filter(Boolean).map(Number);
}

function makeRepository(folder: string, url: string): string {
  const work = `${folder}.work`;
  const identity = {
    GIT_AUTHOR_NAME: "rig",
    GIT_AUTHOR_EMAIL: "rig@example.com",
    GIT_COMMITTER_NAME: "rig",
    GIT_COMMITTER_EMAIL: "rig@example.com",
  };
  const git = (...argv: string[]) =>
    execFileSync("git", argv, { env: { ...process.env, ...identity }, stdio: ["ignore", "ignore", "pipe"] });
  git("init", "--quiet", "--initial-branch=main", work);
  writeFileSync(join(work, "README"), "from the rig\n");
  git("-C", work, "add", "README");
  git("-C", work, "commit", "--quiet", "-m", "first");
  git("clone", "--quiet", "--bare", work, folder);
  rmSync(work, { recursive: true });
  return url;
}
