import { ignore } from "../../lib/failures.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { Feature } from "../conformance/context.ts";
import { hasFeature } from "../conformance/context.ts";
import { type AttackContext, finishAttempt, probeMissing } from "./attack-context.ts";
import { type Claim, defineClaim, type NotTried, unverifiable } from "./claim.ts";
import { answers, pings } from "./isolation-claims.ts";

const MIB = 1024 * 1024;
/**
 * Far more than the garbage collector leaves uncollected, which is about 100 MiB in any case. This distinguishes
 * keeping data from freeing it late.
 */
const INPUT_MIB = 500;
const GROWTH_MIB_MAX = 160;

/** Returns why exhaustion cannot be tried, or null. Without a limit, it would exhaust the machine. */
function without(context: AttackContext, feature: Feature): NotTried | null {
  if (context.capabilities.isolation === 0) return unverifiable("without a wall, this would exhaust the machine itself");
  if (hasFeature(context.capabilities, feature)) return null;
  return unverifiable(
    context.capabilities.reasons[feature] ?? `the runtime cannot limit ${feature} here, and rejects sandboxes that request it`,
  );
}

interface MemorySeen {
  outcome: string;
  memoryKills: number;
  answered: boolean;
  usedBytes: number | null;
}

/** Runs a program that wants more memory than the sandbox has, and checks the sandbox afterwards. */
function memoryClaim(
  id: string,
  title: string,
  tried: string,
  start: (context: AttackContext, sandbox: OwnedSandbox) => Promise<{ outcome: string; memoryKills: number } | null>,
  mayRefuse: boolean,
): Claim {
  const limit = 96 * MIB;
  return defineClaim<MemorySeen>({
    id,
    title,
    group: "exhaustion",
    tried: `${tried} in a sandbox of 96 MiB, then ran a command.`,
    async observe(context) {
      const impossible = without(context, "memoryBytes");
      if (impossible !== null) return impossible;
      const sandbox = await context.create({ limits: { memoryBytes: limit }, tmpBytes: 512 * MIB });
      const ended = await start(context, sandbox);
      if (ended === null) return unverifiable(probeMissing);
      const usedBytes = (await sandbox.stats()).memoryBytes;
      return { ...ended, answered: await answers(context, sandbox), usedBytes };
    },
    judge: ({ outcome, memoryKills, answered, usedBytes }) => [
      ...(answered ? [] : ["no command could run afterwards"]),
      ...(memoryKills > 0 || mayRefuse ? [] : [`nothing was killed for memory (${outcome})`]),
      ...(outcome === "exited 0" ? ["it got all the memory it requested"] : []),
      ...(usedBytes === null || usedBytes <= limit * 1.05 ? [] : [`${usedBytes} bytes are in use`]),
    ],
  });
}

async function outcomeOf(context: AttackContext, sandbox: OwnedSandbox, script: string, args: string[] = []) {
  const { ended } = await context.shell(sandbox, script, args, { timeoutMs: 15_000 });
  return {
    outcome: ended.kind === "exited" ? `exited ${ended.exitCode}` : ended.kind === "killed" ? `killed for ${ended.why}` : ended.kind,
    memoryKills: ended.memoryKills,
  };
}

/** What one sandbox must not take from others or from the host. */
export const exhaustionClaims: Claim[] = [
  defineClaim<{ forks: number; error: string; answered: boolean; processes: number }>({
    id: "R01",
    title: "A fork bomb leaves room for the next command",
    group: "exhaustion",
    tried: "Forked up to 3,000 times under a limit of 64 processes, and ran a command at the same time.",
    async observe(context) {
      const impossible = without(context, "pids");
      if (impossible !== null) return impossible;
      const sandbox = await context.create({ limits: { pids: 64 } });
      const bomb = await context.startProbe(sandbox, ["exhaust", "forks", "3000", "6000"]);
      if (bomb === null) return unverifiable(probeMissing);
      await ignore(
        context.within("the bomb filling the sandbox", untilCrowded(sandbox, 50), 10_000),
        "the claims below are checked in any case",
      );
      const processes = (await sandbox.stats()).processes;
      const pinged = await pings(context, sandbox);
      await context.within("killing the bomb", bomb.kill(), 15_000);
      const { stdout } = await finishAttempt(bomb);
      const [, forks = "0", error = ""] = stdout.trim().split(" ");
      return { forks: Number(forks), error, answered: pinged && (await answers(context, sandbox)), processes };
    },
    judge: ({ forks, answered, processes }) => [
      ...(answered ? [] : ["the guest did not answer or ran no command"]),
      ...(forks <= 64 && processes <= 72 ? [] : [`${Math.max(forks, processes)} processes under a limit of 64`]),
      ...(processes >= 32 ? [] : [`the bomb had no effect: ${processes} processes`]),
    ],
  }),
  memoryClaim(
    "R02",
    "Taking all memory kills only the taker",
    "Ran `tail /dev/zero`",
    (context, sandbox) => outcomeOf(context, sandbox, "exec tail /dev/zero"),
    false,
  ),
  memoryClaim(
    "R03",
    "Many processes' memory is counted together",
    "Ran 8 processes that take 32 MiB each",
    async (context, sandbox) => {
      if ((await context.probe(sandbox, ["ids"])) === null) return null;
      const script =
        "for i in 1 2 3 4 5 6 7 8; do (./caisson-probe exhaust memory 32 0; sleep 1) & done; failed=0; for p in $(jobs -p); do wait $p || failed=1; done; wait; exit 9";
      return outcomeOf(context, sandbox, script);
    },
    true,
  ),
  memoryClaim(
    "R04",
    "Files in memory are charged to the sandbox",
    "Filled a memfd, /tmp and /dev/shm with 256 MiB each, and removed the files from outside,",
    async (context, sandbox) => {
      if ((await context.probe(sandbox, ["ids"])) === null) return null;
      const fills = ["/tmp/fill", "/dev/shm/fill"];
      const filled = fills.map((path) => `head -c 268435456 /dev/zero > ${path} && got=1;`).join(" ");
      const script = `got=0; ./caisson-probe exhaust memfd 256 0 | grep -q ok && got=1; ${filled} [ $got = 0 ] && exit 9; exit 0`;
      const outcome = await outcomeOf(context, sandbox, script);
      // While the memory is full, the next command may not start. It must be possible to free the memory from outside.
      for (const path of fills) await ignore(sandbox.remove(path), "the sandbox is removed as well");
      return outcome;
    },
    true,
  ),
  defineClaim<{ stderr: string; answered: boolean; bytes: number }>({
    id: "R05",
    title: "Filling the disk ends at the sandbox's own limit",
    group: "exhaustion",
    tried: "Wrote up to 128 MiB into the workspace and the home folder of a sandbox with 32 MiB of disk.",
    async observe(context) {
      const impossible = without(context, "diskBytes");
      if (impossible !== null) return impossible;
      const sandbox = await context.create({ limits: { diskBytes: 32 * MIB } });
      const script =
        'head -c 67108864 /dev/zero > /workspace/fill; head -c 67108864 /dev/zero > "$HOME/fill"; cat /workspace/fill "$HOME/fill" 2>/dev/null | wc -c';
      const { stdout, stderr } = await context.shell(sandbox, script);
      await context.shell(sandbox, 'rm -f /workspace/fill "$HOME/fill"');
      return { stderr: stderr.slice(0, 300), bytes: Number(stdout.trim()), answered: await answers(context, sandbox) };
    },
    judge: ({ bytes, answered }) => [
      ...(bytes <= 34 * MIB ? [] : [`${bytes} bytes were written under a limit of ${32 * MIB}`]),
      ...(answered ? [] : ["no command could run afterwards"]),
    ],
  }),
  defineClaim<{ grownBytes: number; outcome: string; bytes: number }>({
    id: "R07",
    title: "Endless output does not fill the host's memory and ends at its limit",
    group: "exhaustion",
    tried: "Ran `yes` with a limit of 8 MB, watched the host's memory for a second without reading, then read to the end.",
    async observe(context) {
      const sandbox = await context.sandbox();
      const before = process.memoryUsage().rss;
      const running = await context.startShell(sandbox, "exec yes", [], { outputBytesMax: 8_000_000 });
      let grownBytes = 0;
      for (let i = 0; i < 10; i += 1) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        grownBytes = Math.max(grownBytes, process.memoryUsage().rss - before);
      }
      let bytes = 0;
      for await (const chunk of running.output) bytes += chunk.data.length;
      const ended = await running.ended;
      return { grownBytes, outcome: ended.kind === "killed" ? `killed for ${ended.why}` : ended.kind, bytes };
    },
    judge: ({ grownBytes, outcome, bytes }) => [
      ...(grownBytes <= 64 * MIB ? [] : [`the host's memory grew by ${grownBytes} bytes`]),
      ...(outcome === "killed for output" ? [] : [`the outcome is ${outcome}`]),
      ...(bytes === 8_000_000 ? [] : [`${bytes} bytes were delivered`]),
    ],
  }),
  defineClaim<{ p95Ms: number; commands: number }>({
    id: "R09",
    title: "Eight spinning processes do not block another sandbox's work",
    group: "exhaustion",
    tried: "Spun 8 processes in a sandbox with half a processor, and timed 40 commands in another.",
    async observe(context) {
      const impossible = without(context, "cpus");
      if (impossible !== null) return impossible;
      const spinning = await context.create({ limits: { cpus: 0.5 } });
      const spin = await context.startShell(spinning, "for i in 1 2 3 4 5 6 7; do (while :; do :; done) & done; while :; do :; done", [], {
        timeoutMs: 20_000,
      });
      const other = await context.create();
      const times: number[] = [];
      for (let i = 0; i < 40; i += 1) {
        const from = performance.now();
        await context.shell(other, "true");
        times.push(performance.now() - from);
      }
      await spin.kill();
      times.sort((a, b) => a - b);
      return { p95Ms: Math.round(times[37] ?? Number.POSITIVE_INFINITY), commands: times.length };
    },
    judge: ({ p95Ms }) => (p95Ms <= 500 ? [] : [`95 % of commands took up to ${p95Ms} ms`]),
  }),
  defineClaim<{ made: Record<string, string>; answered: boolean }>({
    id: "R10",
    title: "Descriptors, sockets, terminals and watches run out only inside",
    group: "exhaustion",
    tried:
      "Opened up to 1,200,000 descriptors and sockets, 20,000 terminals and 2,000,000 watches, each for at most 3 s, then ran a command.",
    async observe(context) {
      if (context.capabilities.isolation === 0) return unverifiable("without a wall, this would exhaust the machine itself");
      const sandbox = await context.create();
      const results: Record<string, string> = {};
      for (const [what, count] of Object.entries({ descriptors: "1200000", sockets: "1200000", ptys: "20000", watches: "2000000" })) {
        const lines = await context.probe(sandbox, ["exhaust", what, count, "3000"]);
        if (lines === null) return unverifiable(probeMissing);
        results[what] = lines.at(-1)?.slice(1).join(" ") ?? "killed";
      }
      return { made: results, answered: await answers(context, sandbox) };
    },
    judge: ({ made: results, answered }) => [
      ...(answered ? [] : ["no command could run afterwards"]),
      // Watches are limited per user of the machine and per user namespace; time may end the attempt first.
      ...Object.entries(results)
        .filter(([what, result]) => what !== "watches" && result.endsWith(" ok"))
        .map(([what, result]) => `no limit on ${what}: ${result}`),
    ],
  }),
  defineClaim<{ succeeded: number; busy: number; other: string[]; answered: boolean }>({
    id: "R12",
    title: "Ten thousand simultaneous requests are served or rejected, and none is lost",
    group: "exhaustion",
    tried: "Sent 10,000 requests at the same time, then another.",
    async observe(context) {
      const sandbox = await context.sandbox();
      const requests = Array.from({ length: 10_000 }, (_, i) => (i % 2 === 0 ? sandbox.ping() : sandbox.stat("/workspace")));
      const results = await context.within("10,000 requests", Promise.allSettled(requests));
      const codes = results.map((each) =>
        each.status === "fulfilled" ? "ok" : String((each.reason as { code?: string }).code ?? each.reason),
      );
      const other = [...new Set(codes.filter((code) => code !== "ok" && code !== "busy"))];
      return {
        succeeded: codes.filter((code) => code === "ok").length,
        busy: codes.filter((code) => code === "busy").length,
        other,
        answered: await answers(context, sandbox),
      };
    },
    judge: ({ succeeded, other, answered }) => [
      ...other.map((code) => `a request ended with ${code}`),
      ...(succeeded > 0 ? [] : ["no request succeeded"]),
      ...(answered ? [] : ["no command could run afterwards"]),
    ],
  }),
  defineClaim<{ lineBytes: number; stdinBytes: number; grownBytes: number }>({
    id: "R13",
    title: "A line of 10 MB and input of 500 MB are streamed",
    group: "exhaustion",
    tried: "Read a line of 10 MB, and wrote 500 MB to a program's input, watching the host's memory.",
    observe: observeBigStreams,
    judge: ({ lineBytes, stdinBytes, grownBytes }) => [
      ...(lineBytes === 10_000_000 ? [] : [`${lineBytes} bytes of the line arrived`]),
      ...(stdinBytes === INPUT_MIB * MIB ? [] : [`${stdinBytes} bytes of input arrived`]),
      ...(grownBytes <= GROWTH_MIB_MAX * MIB ? [] : [`the host's memory grew by ${grownBytes} bytes`]),
    ],
  }),
];

async function untilCrowded(sandbox: OwnedSandbox, count: number): Promise<void> {
  while ((await sandbox.stats()).processes < count) await new Promise((resolve) => setTimeout(resolve, 50));
}

async function observeBigStreams(context: AttackContext) {
  const sandbox = await context.sandbox();
  const line = await context.startShell(sandbox, "head -c 10000000 /dev/zero | tr '\\0' x", [], { outputBytesMax: 20_000_000 });
  let lineBytes = 0;
  for await (const chunk of line.output) lineBytes += chunk.data.length;
  const counting = await context.startShell(sandbox, "exec wc -c", [], { stdin: "pipe" });
  const block = Buffer.alloc(MIB);
  const before = process.memoryUsage().rss;
  let grownBytes = 0;
  for (let i = 0; i < INPUT_MIB; i += 1) {
    await counting.write(block);
    grownBytes = Math.max(grownBytes, process.memoryUsage().rss - before);
  }
  await counting.closeStdin();
  const { stdout } = await finishAttempt(counting);
  return { lineBytes, stdinBytes: Number(stdout.trim()), grownBytes };
}
