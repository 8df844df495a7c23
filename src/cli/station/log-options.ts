import { join, resolve } from "node:path";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice } from "../options/option-values.ts";
import type { ServedLog } from "../server-control.ts";
import { line } from "../terminal/line.ts";
import { logLevels } from "./log-levels.ts";

/** What the options ask for: text for people on a terminal, JSON for programs elsewhere. Throws `invalid`. */
export function logFrom({ cwd, stderr }: CliContext, given: ParsedArguments): ServedLog {
  const file = given.option("log-file");
  const format = given.option("log-format") ?? (stderr.isTerminal && file === undefined ? "text" : "json");
  return {
    format: parseChoice("json", "text")("log-format", format),
    level: parseChoice(...logLevels)("log-level", given.option("log-level") ?? "info"),
    ...defined({ file: file === undefined ? undefined : resolve(cwd, file) }),
    print: (text) => stderr.print(text.split("\n").map((each) => line`${each}`)),
  };
}

/** The same again for a process in the background, which writes to a file and keeps that from growing. */
export function detachedLogOptions(context: CliContext, given: ParsedArguments): string[] {
  const { format, level, file } = logFrom(context, given);
  const isAsked = given.option("log-format") !== undefined;
  return ["--log-file", file ?? join(context.stateDir, "station.log"), "--log-format", isAsked ? format : "json", "--log-level", level];
}
