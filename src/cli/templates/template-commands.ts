import type { TemplateView } from "../../contract/template/template.ts";
import { defined } from "../../lib/defined.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { printResult, removeNamed } from "../print-result.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** `caisson template ls` */
export async function listTemplates(context: CliContext, args: ParsedArguments): Promise<number> {
  const templates = await context.station.templates.list(defined({ owner: args.option("owner") }));
  const rows = templates.map(({ id, names, kind, runtime, bytes, createdAt }) => [
    ...[names.join(" ") || "–", id, kind, runtime, showBytes(bytes), createdAt],
  ]);
  return await printResult(context, args, {
    json: templates,
    text:
      rows.length === 0
        ? line`No templates. Build one: caisson template build . --name NAME`
        : table([["NAMES", "ID", "KIND", "RUNTIME", "SIZE", "CREATED"], ...rows]),
  });
}

/** `caisson template show TEMPLATE` */
export async function showTemplate(context: CliContext, args: ParsedArguments): Promise<number> {
  const template = await context.station.templates.get(args.positionals[0] ?? "");
  return await printResult(context, args, { json: template, text: table(rowsOf(template)) });
}

function rowsOf({ id, names, kind, runtime, owner, config, ignored, bytes, createdAt, digest }: TemplateView): string[][] {
  const words = (argv: readonly string[] | null) => (argv === null ? "" : JSON.stringify(argv));
  const pairs = (entries: Readonly<Record<string, string>>) => Object.entries(entries).map(([name, value]) => `${name}=${value}`);
  const rows: [string, string][] = [
    ["id", id],
    ["names", names.join(" ")],
    ["kind", kind],
    ["runtime", runtime],
    ["owner", owner],
    ["size", showBytes(bytes)],
    ["built", createdAt],
    ["digest", digest],
    ...pairs(config.env).map((text): [string, string] => ["variable", text]),
    ["working folder", config.workdir],
    ["user", config.user ?? ""],
    ["entrypoint", words(config.entrypoint)],
    ["command", words(config.command)],
    ["ports", config.ports.join(" ")],
    ["volumes", config.volumes.join(" ")],
    ...pairs(config.labels).map((text): [string, string] => ["label", text]),
    ...ignored.map((text): [string, string] => ["left out", text]),
  ];
  return rows.filter(([, value]) => value !== "");
}

/** `caisson template tag TEMPLATE NAME` */
export async function tagTemplate(context: CliContext, args: ParsedArguments): Promise<number> {
  const [word = "", name = ""] = args.positionals;
  const template = await context.station.templates.tag(word, { name });
  return await printResult(context, args, { json: template, note: line`${template.id} is also ${name}` });
}

/** `caisson template rm TEMPLATE…` */
export async function removeTemplates(context: CliContext, args: ParsedArguments): Promise<number> {
  return await removeNamed(context, args, { remove: (word) => context.station.templates.remove(word) });
}
