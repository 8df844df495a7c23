import type { NetworkEvent } from "../../contract/network-event.ts";
import { parsePolicy, showPolicy } from "../../contract/network-text.ts";
import type { NetworkChange } from "../../contract/network-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { exitCodeOf } from "../terminal/signals.ts";
import { table } from "../terminal/table.ts";
import { networkLine } from "./network-view.ts";

/** `caisson net show` */
export async function show(context: CliContext, given: ParsedArguments): Promise<number> {
  const network = await context.station.networks.show(given.positionals[0] as string);
  if (given.flag("json")) {
    await context.stdout.printJson(network);
    return 0;
  }
  const { policy, secrets, gateway, servedBy } = network;
  const rows = [
    ["policy", showPolicy(policy)],
    ...secrets.map(({ name, hosts, revoked }) => ["secret", `${name} for ${hosts.join(", ")}${revoked ? " (revoked)" : ""}`]),
    ...(gateway ? [["gateway", gateway.wires.join(", ")]] : []),
    [
      "served by",
      servedBy === null ? (policy.mode === "none" ? "nobody needs to" : "nobody: `caisson net serve` does") : `process ${servedBy}`,
    ],
  ];
  await context.stdout.print(table(rows));
  return 0;
}

/** `caisson net log` */
export async function log(context: CliContext, given: ParsedArguments): Promise<number> {
  const { station, stdout, interruption } = context;
  const wanted = (event: NetworkEvent) => !given.flag("denied") || event.type === "network.denied";
  const print = (event: NetworkEvent) =>
    given.flag("json") ? stdout.printJson(event) : stdout.print(line`${event.at.slice(11, 19)} ${networkLine(event)}`);
  const asked = { follow: given.flag("follow"), signal: interruption.signal };
  for await (const event of station.networks.log(given.positionals[0] as string, asked)) if (wanted(event)) await print(event);
  return 0;
}

/** `caisson net allow` */
export const allow = changing("allow");
/** `caisson net deny` */
export const deny = changing("deny");
/** `caisson net set` */
export const set = changing("set");

function changing(how: NetworkChange["how"]) {
  return async (context: CliContext, given: ParsedArguments): Promise<number> => {
    const [name = "", ...words] = given.positionals;
    const policy = await context.station.networks.change(name, { how, policy: parsePolicy(words) });
    await context.stdout.print(line`${showPolicy(policy)}`);
    return 0;
  };
}

/** `caisson net revoke` */
export async function revoke(context: CliContext, given: ParsedArguments): Promise<number> {
  const [name = "", ...secrets] = given.positionals;
  for (const secret of secrets) await context.station.networks.revoke(name, { secret });
  return 0;
}

/** `caisson net serve` */
export async function serve(context: CliContext, given: ParsedArguments): Promise<number> {
  const id = given.positionals[0] as string;
  const end = await context.serveNetwork(id);
  if (end.why === "served") await context.stderr.print(line`caisson: process ${end.by ?? "?"} serves the network of ${id} already`);
  const received = context.interruption.received();
  return end.why === "interrupted" && received !== null ? exitCodeOf(received) : 0;
}
