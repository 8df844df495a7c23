import type { NetworkEvent } from "../../contract/network/network-event.ts";
import { parsePolicy, showPolicy } from "../../contract/network/network-text.ts";
import type { NetworkChange } from "../../contract/network/network-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { printResult } from "../print-result.ts";
import { line } from "../terminal/line.ts";
import { exitCodeOf } from "../terminal/signals.ts";
import { table } from "../terminal/table.ts";
import { networkLine } from "./network-view.ts";

/** `caisson net show` */
export async function showNetwork(context: CliContext, args: ParsedArguments): Promise<number> {
  const network = await context.station.networks.show(args.positionals[0] as string);
  const { policy, secrets, gateway, servedBy } = network;
  const rows = [
    ["policy", showPolicy(policy)],
    ...secrets.map(({ name, hosts, revoked }) => ["secret", `${name} for ${hosts.join(", ")}${revoked ? " (revoked)" : ""}`]),
    ...(gateway ? [["gateway", gateway.wires.join(", ")]] : []),
    [
      "served by",
      servedBy === null
        ? policy.mode === "none"
          ? "no process (not needed)"
          : "no process; run `caisson net serve`"
        : `process ${servedBy}`,
    ],
  ];
  return await printResult(context, args, { json: network, text: table(rows) });
}

/** `caisson net log` */
export async function log(context: CliContext, args: ParsedArguments): Promise<number> {
  const { station, stdout, interruption } = context;
  const isWanted = (event: NetworkEvent) => !args.flag("denied") || event.type === "network.denied";
  const print = (event: NetworkEvent) =>
    args.flag("json") ? stdout.printJson(event) : stdout.print(line`${event.at.slice(11, 19)} ${networkLine(event)}`);
  const options = { follow: args.flag("follow"), signal: interruption.signal };
  for await (const event of station.networks.log(args.positionals[0] as string, options)) if (isWanted(event)) await print(event);
  return 0;
}

/** `caisson net allow` */
export const allow = changing("allow");
/** `caisson net deny` */
export const deny = changing("deny");
/** `caisson net set` */
export const set = changing("set");

function changing(how: NetworkChange["how"]) {
  return async (context: CliContext, args: ParsedArguments): Promise<number> => {
    const [name = "", ...words] = args.positionals;
    const policy = await context.station.networks.change(name, { how, policy: parsePolicy(words), by: "user" });
    return await printResult(context, args, { json: { policy }, text: line`${showPolicy(policy)}` });
  };
}

/** `caisson net revoke` */
export async function revoke(context: CliContext, args: ParsedArguments): Promise<number> {
  const [name = "", ...secrets] = args.positionals;
  for (const secret of secrets) await context.station.networks.revoke(name, { secret });
  return await printResult(context, args, { json: { revoked: secrets } });
}

/** `caisson net serve` */
export async function serve(context: CliContext, args: ParsedArguments): Promise<number> {
  const id = args.positionals[0] as string;
  const end = await context.serveNetwork(id);
  if (end.why === "served") await context.stderr.print(line`caisson: process ${end.by ?? "?"} already serves the network of ${id}`);
  const received = context.interruption.received();
  return end.why === "interrupted" && received !== null ? exitCodeOf(received) : 0;
}
