import type { CommandDefinition, OptionDefinition } from "./command.ts";
import { optionsOf } from "./options/arguments.ts";

export function overview(commands: readonly CommandDefinition[], version: string): string {
  const rows = commands.map((command) => [command.path.join(" "), command.summary] as const);
  return [
    `caisson ${version}: run untrusted code in sandboxes you own`,
    "",
    "Usage: caisson COMMAND [OPTIONS] …",
    "",
    ...columns(rows),
    "",
    "Start here: caisson demo",
    "Help for one command: caisson COMMAND --help",
    "",
  ].join("\n");
}

/**
 * Formats the help for a group such as `caisson sandbox`. If the group is also a command, such as `caisson ship`, its
 * own help comes first.
 */
export function groupHelp(commands: readonly CommandDefinition[], group: string): string {
  const all = commands.filter((command) => command.path[0] === group);
  const own = all.find((command) => command.path.length === 1);
  const rows = all.filter((command) => command !== own).map((command) => [command.path.join(" "), command.summary] as const);
  if (own !== undefined) return [commandHelp(own), "Commands:", ...columns(rows), ""].join("\n");
  return [`Usage: caisson ${group} COMMAND [OPTIONS] …`, "", ...columns(rows), ""].join("\n");
}

export function commandHelp(command: CommandDefinition): string {
  const name = `caisson ${command.path.join(" ")}`;
  const words = command.arguments.map((argument) => {
    const placeholder = `${argument.name}${argument.repeat === true ? "…" : ""}`;
    return argument.optional === true ? `[${placeholder}]` : placeholder;
  });
  const lines = [
    `Usage: ${[name, "[OPTIONS]", ...(command.takesCommand === true ? ["--"] : []), ...words].join(" ")}`,
    "",
    command.summary,
  ];
  if (command.details !== undefined) lines.push("", command.details);
  if (command.arguments.length > 0)
    lines.push("", "Arguments:", ...columns(command.arguments.map((each) => [each.name, each.summary] as const)));
  lines.push("", "Options:", ...columns(optionsOf(command).map((option) => [optionUsage(option), option.summary] as const)));
  lines.push(
    "",
    "Examples:",
    ...command.examples.flatMap((each) => (typeof each === "string" ? [`  ${each}`] : [`  ${each[0]}`, `      ${each[1]}`])),
    "",
  );
  return lines.join("\n");
}

function optionUsage(option: OptionDefinition): string {
  const short = option.short === undefined ? "    " : `-${option.short}, `;
  const value = option.value === undefined ? "" : option.isValue === undefined ? ` ${option.value}` : `[=${option.value}]`;
  return `${short}--${option.name}${value}`;
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
