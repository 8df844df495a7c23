import type { SandboxInfo } from "../../contract/sandbox.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { listFrom } from "../options/list-asked.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  const { sandboxes, damaged } = await context.station.sandboxes.list(listFrom(given));
  if (given.flag("json")) {
    await context.stdout.printJson(sandboxes);
  } else if (sandboxes.length === 0) {
    await context.stdout.print(line`No sandbox. Make one that stays: caisson sandbox create`);
  } else {
    await context.stdout.print(table([["ID", "NAME", "RUNTIME", "STATE", "AGE", "KEPT", "WORKSPACE", "LABELS"], ...sandboxes.map(row)]));
  }
  for (const record of damaged) await context.stderr.print(line`caisson: ${record.dir} is damaged: ${record.reason}`);
  return 0;
}

const stateText = ({ state, health }: SandboxInfo) => (health === undefined ? state : `${state}, ${health}`);

function row(info: SandboxInfo): string[] {
  const labels = Object.entries(info.labels).map(([name, value]) => `${name}=${value}`);
  const workspace = info.workspace.kind === "empty" ? "–" : `${info.workspace.path}:${info.workspace.access}`;
  const age = showDuration(Math.max(0, Date.now() - Date.parse(info.createdAt)));
  return [info.id, info.name ?? "–", info.runtime, stateText(info), age, info.keep ? "yes" : "no", workspace, labels.join(" ")];
}
