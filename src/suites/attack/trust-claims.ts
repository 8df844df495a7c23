import { gzipSync } from "node:zlib";
import { CaissonError } from "../../contract/error/error.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { type TarEntry, tarArchive } from "../conformance/tar-archive.ts";
import type { AttackContext } from "./attack-context.ts";
import { type Claim, defineClaim, type NotTried, unverifiable } from "./claim.ts";
import { pings } from "./isolation-claims.ts";

const MIB = 1024 * 1024;
/** How long uploads race with the swaps: enough for hundreds of both. */
const SWAP_MS = 2_000;

/** Returns the error code of a rejected call, or `succeeded`. */
async function codeOf(call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
    return "succeeded";
  } catch (error) {
    if (error instanceof CaissonError) return error.code;
    throw error;
  }
}

async function collect(iterable: AsyncIterable<Uint8Array>, bytesMax: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let total = 0;
  for await (const part of iterable) {
    parts.push(part);
    total += part.length;
    if (total > bytesMax) break;
  }
  return Buffer.concat(parts);
}

/** Attacks that use content inside to deceive the host. */
export const trustClaims: Claim[] = [
  defineClaim<{ leaked: string[]; answers: Record<string, string> }>({
    id: "H01",
    title: "A workspace link to host files reveals nothing",
    group: "host trust",
    tried:
      "Created links inside to a secret host file, to its folder and through /proc, then downloaded through them as file and as archive.",
    observe: observeLinks,
    judge: ({ leaked }) => leaked.map((path) => `the host's secret leaked through ${path}`),
    describe: ({ answers }) =>
      Object.entries(answers)
        .map(([path, answer]) => `${path}: ${answer}`)
        .join(", "),
  }),
  defineClaim<{ landed: string[]; uploads: number; refused: number }>({
    id: "H03",
    title: "A folder that is swapped for a link during an upload does not lead outside",
    group: "host trust",
    tried: "Uploaded files and archives into a folder that a program inside kept swapping for a link to a host folder.",
    observe: observeSwap,
    judge: ({ landed, uploads }) => [
      ...landed.map((name) => `written on the host: ${name}`),
      ...(uploads === 0 ? ["no upload was tried"] : []),
    ],
    describe: ({ uploads, refused }) => `${uploads} uploads, ${refused} rejected, none written on the host`,
  }),
  defineClaim<Record<string, string>>({
    id: "H04",
    title: "Malformed names are rejected",
    group: "host trust",
    tried: "Read and wrote names with `..`, NUL, percent-encoded dots and 5,000 characters.",
    async observe(context) {
      const sandbox = await context.sandbox();
      const names = {
        dots: "/workspace/../../etc/passwd",
        NUL: "/workspace/a\0b",
        long: `/workspace/${"x".repeat(5_000)}`,
        "percent-encoded": "/workspace/%2e%2e/%2e%2e/etc/passwd",
      };
      const answers: Record<string, string> = {};
      for (const [what, path] of Object.entries(names)) {
        answers[`reading ${what}`] = await codeOf(() => sandbox.readFile(path));
        answers[`writing ${what}`] = await codeOf(() => sandbox.writeFile(path, Buffer.from("x")));
      }
      return answers;
    },
    judge: (answers) =>
      Object.entries(answers)
        // Percent signs have no meaning here: such a name is an ordinary file name, and the file does not exist.
        .filter(([what, code]) => code !== (what.includes("percent") ? "not_found" : "invalid"))
        .map(([what, code]) => `${what}: ${code}`),
  }),
  defineClaim<{ answers: Record<string, string>; touched: string[] }>({
    id: "H05",
    title: "Archives that try to escape their folder are rejected",
    group: "host trust",
    tried: "Unpacked archives with absolute names, `..`, links out of the folder, hard links through links, and devices.",
    observe: observeArchives,
    judge: ({ answers, touched }) => [
      ...Object.entries(answers)
        .filter(([, code]) => code !== "unsafe")
        .map(([what, code]) => `${what}: ${code}`),
      ...touched.map((name) => `written on the host: ${name}`),
    ],
  }),
  defineClaim<{ code: string; taken: number; gzip: string }>({
    id: "H06",
    title: "An endless archive is stopped",
    group: "host trust",
    tried: "Unpacked an archive that declares 10 GB of zeros under a limit of 8 MiB, and a compressed one.",
    async observe(context) {
      const sandbox = await context.create();
      const [header] = [tarArchive([{ name: "zeros", sizeInHeader: 7_999_999_999 }]).subarray(0, 512)];
      let bytes = 0;
      const zeros = (async function* () {
        yield header;
        while (bytes < 512 * MIB) {
          bytes += MIB;
          yield Buffer.alloc(MIB);
        }
      })();
      const code = await codeOf(() => sandbox.tarIn("/workspace/bomb", zeros, { bytesMax: 8 * MIB }));
      const gzip = await codeOf(() => sandbox.tarIn("/workspace/gzip", gzipSync(tarArchive([{ name: "x", content: Buffer.alloc(MIB) }]))));
      return { code, taken: bytes, gzip };
    },
    judge: ({ code, taken: bytes, gzip }) => [
      ...(code === "too_large" ? [] : [`the archive was answered with ${code}`]),
      ...(bytes <= 64 * MIB ? [] : [`${bytes} bytes were accepted before the limit of ${8 * MIB} took effect`]),
      ...(gzip === "succeeded" ? ["a compressed archive was unpacked"] : []),
    ],
  }),
  defineClaim<{ paths: string[]; lived: boolean; removed: string[] }>({
    id: "H14",
    title: "The control socket cannot be reached or replaced from inside",
    group: "host trust",
    tried:
      "Searched for Unix sockets inside by path, tried to connect to, remove and replace each of them and the guest's own folders, then pinged.",
    observe: observeControlSocket,
    judge: ({ paths, lived, removed }) => [
      ...paths.map((path) => `reachable: ${path}`),
      ...removed.map((path) => `could be removed or replaced: ${path}`),
      ...(lived ? [] : ["the guest no longer answered"]),
    ],
    describe: () => "no path leads to it, and the guest answers",
  }),
  defineClaim<{ polluted: boolean; names: string[]; variable: string }>({
    id: "H16",
    title: "`__proto__` is a name like any other",
    group: "host trust",
    tried: "Used `__proto__` as a label, variable and file name, as parsed from JSON.",
    async observe(context) {
      const parsed = SandboxConfig.safeParse(JSON.parse('{"labels":{"__proto__":"x"},"env":{"__proto__":"polluted"}}'));
      const sandbox = await context.create(parsed.success ? { labels: parsed.data.labels, env: parsed.data.env } : {});
      await sandbox.writeFile("/workspace/__proto__", Buffer.from("x"));
      const names = (await sandbox.list("/workspace")).entries.map((each) => each.name);
      const { stdout } = await context.shell(sandbox, "printenv __proto__; true", [], { env: JSON.parse('{"__proto__":"own"}') });
      await context.runtime.list();
      return { polluted: "x" in {} || ({} as Record<string, unknown>).polluted !== undefined, names, variable: stdout.trim() };
    },
    judge: ({ polluted, names }) => [
      ...(polluted ? ["the prototype of all objects was changed"] : []),
      ...(names.includes("__proto__") ? [] : ["a file with that name was not listed"]),
    ],
  }),
  defineClaim<{ source: string; before: number | null; after: number | null }>({
    id: "H18",
    title: "Usage figures come from the host, not from the guest",
    group: "host trust",
    tried: "Checked the source of the figures, and compared processor time before and after half a second of work.",
    async observe(context) {
      const sandbox = await context.create();
      const before = await sandbox.stats();
      await context.shell(
        sandbox,
        'end=$(( $(date +%s) + 1 )); while [ "$(date +%s)" -le $end ]; do i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; done',
      );
      const after = await sandbox.stats();
      return { source: after.source, before: before.cpuMs, after: after.cpuMs };
    },
    judge: ({ source, before, after }) => [
      ...(source === "host" ? [] : [`the source of the figures is the ${source}`]),
      ...(before === null || after === null || after > before ? [] : ["processor time did not grow"]),
    ],
  }),
];

async function observeLinks(context: AttackContext) {
  const sandbox = await context.create();
  const canary = await context.canary();
  const links = {
    "link-to-file": `${canary.folder}/secret`,
    "link-to-folder": canary.folder,
    "link-to-proc": `/proc/1/root${canary.folder}`,
  };
  for (const [name, target] of Object.entries(links)) await context.shell(sandbox, 'ln -s "$1" "$2"', [target, name]);
  const reads: Record<string, () => Promise<AsyncIterable<Uint8Array>>> = {
    "link-to-file": () => sandbox.readFile("/workspace/link-to-file"),
    "link-to-folder/secret": () => sandbox.readFile("/workspace/link-to-folder/secret"),
    "link-to-proc/secret": () => sandbox.readFile("/workspace/link-to-proc/secret"),
    "archive of the workspace": () => sandbox.tarOut("/workspace"),
    "archive of link-to-folder": () => sandbox.tarOut("/workspace/link-to-folder"),
    "archive through link-to-proc": () => sandbox.tarOut("/workspace/link-to-proc/"),
  };
  const leaked: string[] = [];
  const answers: Record<string, string> = {};
  for (const [path, open] of Object.entries(reads)) {
    let bytes: Buffer = Buffer.alloc(0);
    const code = await codeOf(async () => {
      bytes = await collect(await open(), MIB);
    });
    answers[path] = code === "succeeded" ? `${bytes.length} bytes without the secret` : code;
    if (bytes.includes(canary.secret)) leaked.push(path);
  }
  return { leaked, answers };
}

async function observeSwap(context: AttackContext) {
  const sandbox = await context.create();
  const canary = await context.canary();
  // `rm -rf` of a link removes only the link, but of a folder also the uploads in it.
  const script = 'while :; do rm -rf spot; mkdir spot; rm -rf spot; ln -s "$1" spot; done 2>/dev/null';
  const swapping = await context.startShell(sandbox, script, [canary.folder], { timeoutMs: 20_000 });
  swapping.discardOutput();
  let uploads = 0;
  let refused = 0;
  const until = performance.now() + SWAP_MS;
  while (performance.now() < until) {
    const name = `file${uploads}`;
    const archive = tarArchive([{ name: `spot/${name}`, content: Buffer.from("x") }]);
    const codes = [
      await codeOf(() => sandbox.writeFile(`/workspace/spot/${name}`, Buffer.from("x"))),
      await codeOf(() => sandbox.tarIn("/workspace", archive)),
    ];
    uploads += codes.length;
    refused += codes.filter((code) => code !== "succeeded").length;
  }
  await swapping.kill();
  return { landed: await canary.touched(), uploads, refused };
}

async function observeArchives(context: AttackContext) {
  const sandbox = await context.create();
  const canary = await context.canary();
  const content = Buffer.from("got out");
  const archives: Record<string, TarEntry[]> = {
    "an absolute name": [{ name: `${canary.folder}/absolute`, content }],
    "a name with ..": [{ name: `${"../".repeat(20)}${canary.folder.slice(1)}/dots`, content }],
    "a file through a link": [
      { name: "link", type: "2", linkTarget: canary.folder },
      { name: "link/through", content },
    ],
    "a hard link through a link": [
      { name: "link2", type: "2", linkTarget: canary.folder },
      { name: "hard", type: "1", linkTarget: "link2/secret" },
    ],
    "a hard link to the outside": [{ name: "hard2", type: "1", linkTarget: `${canary.folder}/secret` }],
    "a device": [{ name: "device", type: "4" }],
  };
  const answers: Record<string, string> = {};
  for (const [what, entries] of Object.entries(archives))
    answers[what] = await codeOf(() => sandbox.tarIn("/workspace/in", tarArchive(entries)));
  return { answers, touched: await canary.touched() };
}

async function observeControlSocket(context: AttackContext): Promise<{ paths: string[]; lived: boolean; removed: string[] } | NotTried> {
  if (context.capabilities.isolation === 0) return unverifiable("without a wall, the state folder is visible; the capabilities say so");
  const sandbox = await context.create();
  const seek = 'find / -type s -not -path "/proc/*" 2>/dev/null | head -20; true';
  const paths = (await context.shell(sandbox, seek)).stdout.split("\n").filter((line) => line !== "");
  const removed = await tryToReplace(context, sandbox, paths, "user");
  const rooted = context.capabilities.rootUser ? await context.create({ allowRoot: true }) : null;
  if (rooted !== null) {
    const seen = (await context.shell(rooted, seek, [], { user: "root" })).stdout.split("\n").filter((line) => line !== "");
    removed.push(...(await tryToReplace(context, rooted, seen, "root")));
  }
  const lived = await Promise.all([sandbox, rooted].map((each) => each === null || pings(context, each)));
  return { paths, lived: lived.every(Boolean), removed };
}

async function tryToReplace(context: AttackContext, sandbox: OwnedSandbox, sockets: string[], user: string): Promise<string[]> {
  const removed: string[] = [];
  for (const path of sockets) {
    const script =
      'd=$(dirname "$1"); (rm -f "$1" && [ ! -e "$1" ] && echo removed) 2>/dev/null; (mv "$d" "$d.moved" && echo moved) 2>/dev/null; true';
    if ((await context.shell(sandbox, script, [path], { user })).stdout !== "") removed.push(`${path} as ${user}`);
  }
  return removed;
}
