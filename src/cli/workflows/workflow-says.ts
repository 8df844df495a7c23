import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { jsonOrText } from "./workflow-file.ts";

/** `caisson workflow cancel WORKFLOW`: resolves when it has ended. */
export async function cancel(context: CliContext, given: ParsedArguments): Promise<number> {
  const { workflows } = context.station;
  const { id } = await workflows.cancel(given.positionals[0] ?? "", { by: "user", ...defined({ text: given.option("text") }) });
  const { finish } = await workflows.wait(id);
  await context.stderr.print(line`caisson: ${id} has ended (${finish ?? "not yet"})`);
  return 0;
}

/** `caisson workflow pause WORKFLOW` */
export async function pause(context: CliContext, given: ParsedArguments): Promise<number> {
  const { id } = await context.station.workflows.pause(given.positionals[0] ?? "", {
    by: "user",
    ...defined({ text: given.option("text") }),
  });
  await context.stderr.print(line`caisson: nothing more of ${id} is begun until: caisson workflow resume ${id}`);
  return 0;
}

/** `caisson workflow signal WORKFLOW SIGNAL` */
export async function signal(context: CliContext, given: ParsedArguments): Promise<number> {
  const [word = "", name = ""] = given.positionals;
  const data = given.option("data");
  const { id } = await context.station.workflows.signal(word, {
    name,
    data: (data === undefined ? null : jsonOrText(data)) as never,
    by: "user",
    ...defined({ key: given.option("key") }),
  });
  await context.stderr.print(line`caisson: ${id} has the signal ${name}`);
  return 0;
}

/** `caisson workflow approve WORKFLOW` */
export async function approve(context: CliContext, given: ParsedArguments): Promise<number> {
  const approved = !given.flag("deny");
  const { id } = await context.station.workflows.approve(given.positionals[0] ?? "", {
    approved,
    by: "user",
    ...defined({ text: given.option("text"), path: given.option("step") }),
  });
  await context.stderr.print(line`caisson: ${id} is told ${approved ? "yes" : "no"}`);
  return 0;
}

/** `caisson workflow rm WORKFLOW…` */
export async function remove(context: CliContext, given: ParsedArguments): Promise<number> {
  for (const word of given.positionals) {
    const { id } = await context.station.workflows.get(word);
    await context.station.workflows.remove(id);
    await context.stdout.print(line`${id}`);
  }
  return 0;
}
