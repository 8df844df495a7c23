import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { dim, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** `caisson model ls` */
export async function listModels(context: CliContext, args: ParsedArguments): Promise<number> {
  const { stdout, station } = context;
  const found = await station.machine.models();
  if (args.flag("json")) {
    await stdout.printJson(found);
    return 0;
  }
  const usable = found.providers.filter(({ hasKey }) => hasKey);
  const rows = usable.flatMap(({ models }) => models.map((model) => [model, model === found.default ? "default" : ""]));
  if (rows.length > 0) await stdout.print(table([["MODEL", ""], ...rows]));
  const isListed = rows.some(([, mark]) => mark !== "");
  if (found.default !== null && !isListed) await stdout.print(line`${found.default} is the default.`);
  const missing = found.providers.filter(({ hasKey }) => !hasKey);
  for (const { name, keys } of missing) await stdout.print(dim(`${name}: no key; set ${keys.join(" or ")}`));
  if (usable.length > 0) await stdout.print(dim("--model PROVIDER/MODEL also accepts any other model of these providers."));
  return 0;
}
