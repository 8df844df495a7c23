import { join, resolve } from "node:path";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseChoice } from "../options/option-values.ts";
import type { ServedLog } from "../server-control.ts";
import { line } from "../terminal/line.ts";
import { logLevels } from "./log-levels.ts";

/** Returns the log settings. By default the log is text on a terminal, and JSON otherwise. Throws `invalid`. */
export function logFrom({ cwd, stderr }: CliContext, args: ParsedArguments): ServedLog {
  const file = args.option("log-file");
  const format = args.option("log-format") ?? (stderr.isTerminal && file === undefined ? "text" : "json");
  return {
    format: parseChoice("json", "text")("log-format", format),
    level: parseChoice(...logLevels)("log-level", args.option("log-level") ?? "info"),
    ...defined({ file: file === undefined ? undefined : resolve(cwd, file) }),
    print: (text) => stderr.print(text.split("\n").map((each) => line`${each}`)),
  };
}

/** Returns the options for a background process, which logs to a file of bounded size. */
export function detachedLogOptions(context: CliContext, args: ParsedArguments): string[] {
  const { format, level, file } = logFrom(context, args);
  const isAsked = args.option("log-format") !== undefined;
  return ["--log-file", file ?? join(context.stateDir, "station.log"), "--log-format", isAsked ? format : "json", "--log-level", level];
}
