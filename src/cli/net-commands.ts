import { SandboxId } from "../contract/ids.ts";
import type { NetworkPolicy } from "../contract/network.ts";
import { type NetworkEvent, networkEvents } from "../contract/network-event.ts";
import { parsePolicy, showPolicy, showRule } from "../contract/network-text.ts";
import { readNetworkLog } from "../network/held/network-log.ts";
import { networkStateFile } from "../network/held/network-state.ts";
import { becomeKeeper, keeperOf, servedBy } from "../network/held/serving.ts";
import { watchFolder } from "../network/held/watch-folder.ts";
import { createStore } from "../sandbox/store.ts";
import { runHistory } from "../station/runs/run-history.ts";
import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { line } from "./line.ts";
import { checkSandboxId, networkNamed, runtimeOf, sandboxNamed } from "./net-target.ts";
import { networkLine } from "./network-view.ts";
import { exitCodeOf } from "./signals.ts";
import { openStation } from "./station.ts";
import { table } from "./table.ts";

const BY = "user";

/** `caisson net show` */
export async function show(context: CliContext, given: ParsedArguments): Promise<number> {
  const id = await sandboxNamed(context, given.positionals[0] as string);
  const store = createStore({ stateDir: context.stateDir });
  await store.read(id);
  const folder = store.dir(id);
  const state = await networkStateFile(folder).read();
  const policy: NetworkPolicy = state?.policy ?? { mode: "none" };
  const secrets = Object.entries(state?.secrets ?? {}).map(([name, { hosts }]) => ({
    name,
    hosts,
    revoked: state?.revoked.includes(name) ?? false,
  }));
  const pid = servedBy(folder, store);
  if (given.flag("json")) {
    await context.stdout.printJson({ sandbox: id, policy, secrets, gateway: state?.gateway ?? null, servedBy: pid });
    return 0;
  }
  const rows = [
    ["policy", showPolicy(policy)],
    ...secrets.map(({ name, hosts, revoked }) => ["secret", `${name} for ${hosts.join(", ")}${revoked ? " (revoked)" : ""}`]),
    ...(state?.gateway ? [["gateway", state.gateway.wires.join(", ")]] : []),
    ["served by", pid === null ? (policy.mode === "none" ? "nobody needs to" : "nobody: `caisson net serve` does") : `process ${pid}`],
  ];
  await context.stdout.print(table(rows));
  return 0;
}

/** `caisson net log` */
export async function log(context: CliContext, given: ParsedArguments): Promise<number> {
  const name = given.positionals[0] as string;
  const wanted = (event: NetworkEvent) => !given.flag("denied") || event.type === "network.denied";
  const print = (event: NetworkEvent) =>
    given.flag("json") ? context.stdout.printJson(event) : context.stdout.print(line`${event.at.slice(11, 19)} ${networkLine(event)}`);
  for await (const event of eventsOf(context, name, { follow: given.flag("follow") })) if (wanted(event)) await print(event);
  return 0;
}

async function* eventsOf(context: CliContext, name: string, options: { follow: boolean }): AsyncGenerator<NetworkEvent> {
  if (!SandboxId.safeParse(name).success) {
    // A run's own log has them, also when its sandbox is gone.
    await using station = openStation(context);
    await station.runs.facts(name);
    for await (const { event } of runHistory(station.log, name).events()) {
      if (networkEvents.byType.has(event.type)) yield event as NetworkEvent;
    }
    if (!options.follow) return;
  }
  const id = await sandboxNamed(context, name);
  const store = createStore({ stateDir: context.stateDir });
  await store.read(id);
  const folder = store.dir(id);
  let seen = options.follow && name !== id ? (await readNetworkLog(folder)).length : 0;
  const fresh = async () => {
    const all = await readNetworkLog(folder);
    // It was cut at its beginning: what is there now is all new.
    const news = all.length < seen ? all : all.slice(seen);
    seen = all.length;
    return news;
  };
  if (!options.follow) return yield* await fresh();
  const { signal } = context.interruption;
  let changed = Promise.withResolvers<void>();
  const isLog = (file: string | null) => file === null || file.endsWith(".jsonl");
  const watching = watchFolder(folder, (file) => isLog(file) && changed.resolve(), { persistent: true });
  signal.addEventListener("abort", () => changed.resolve());
  try {
    while (!signal.aborted) {
      yield* await fresh();
      await changed.promise;
      changed = Promise.withResolvers<void>();
    }
  } finally {
    watching.close();
  }
}

/** `caisson net allow` */
export async function allow(context: CliContext, given: ParsedArguments): Promise<number> {
  const [name = "", ...words] = given.positionals;
  const more = parsePolicy(words);
  return change(context, name, (before) => {
    if (more.mode === "none") return before;
    if (before.mode === "none") return more;
    const rules = [...before.rules, ...more.rules.filter((rule) => !before.rules.some((each) => showRule(each) === showRule(rule)))];
    return {
      ...before,
      mode: more.mode === "open" ? "open" : before.mode,
      rules,
      registries: [...new Set([...before.registries, ...more.registries])],
    };
  });
}

/** `caisson net deny` */
export async function deny(context: CliContext, given: ParsedArguments): Promise<number> {
  const [name = "", ...words] = given.positionals;
  const less = parsePolicy(words);
  return change(context, name, (before) => {
    if (before.mode === "none" || less.mode === "none") return before;
    const hosts = new Set(less.rules.map(({ host }) => host));
    return {
      ...before,
      rules: before.rules.filter(({ host }) => !hosts.has(host)),
      registries: before.registries.filter((registry) => !less.registries.includes(registry)),
    };
  });
}

/** `caisson net set` */
export async function set(context: CliContext, given: ParsedArguments): Promise<number> {
  const [name = "", ...words] = given.positionals;
  const policy = parsePolicy(words);
  return change(context, name, () => policy);
}

async function change(context: CliContext, name: string, make: (before: NetworkPolicy) => NetworkPolicy): Promise<number> {
  const { network } = await networkNamed(context, name);
  const policy = await network.change(make, { by: BY });
  await context.stdout.print(line`${showPolicy(policy)}`);
  return 0;
}

/** `caisson net revoke` */
export async function revoke(context: CliContext, given: ParsedArguments): Promise<number> {
  const [name = "", ...secrets] = given.positionals;
  const { network } = await networkNamed(context, name);
  for (const secret of secrets) await network.revoke(secret, { by: BY });
  return 0;
}

/** `caisson net serve` */
export async function serve(context: CliContext, given: ParsedArguments): Promise<number> {
  const id = checkSandboxId(given.positionals[0] as string);
  const runtime = await runtimeOf(context, id);
  const store = createStore({ stateDir: context.stateDir });
  if (!(await becomeKeeper(store.dir(id), store))) {
    await context.stderr.print(line`caisson: process ${keeperOf(store.dir(id), store)?.pid ?? "?"} serves the network of ${id} already`);
    return 0;
  }
  const sandbox = await runtime.open(id, { serveNetwork: true });
  const interrupted = context.interruption.first.then((signal) => ({ signal }));
  const first = await Promise.race([sandbox.closed.then(() => null), interrupted]);
  // Nothing is handed over: whoever ends this wants it ended, and the guest notices.
  return first === null ? 0 : exitCodeOf(first.signal);
}
