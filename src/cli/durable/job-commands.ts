import { CaissonError } from "../../contract/error/error.ts";
import { defined } from "../../lib/defined.ts";
import type { Station } from "../../verbs/station.ts";
import type { ParsedArguments, RunCommand } from "../command.ts";
import type { CliContext } from "../context.ts";
import { printResult, type Result, removeNamed } from "../print-result.ts";
import { type Line, line } from "../terminal/line.ts";

export type SharedCommand = "ls" | "show" | "pause" | "resume" | "cancel" | "rm";

/** The parts specific to one kind of durable job: its verbs and texts. */
export interface JobKind<View, Changed = View, Item = View> {
  /** The first word of its commands. */
  verb: string;
  verbs(station: Station): {
    get(word: string): Promise<View>;
    pause?(word: string, options: { by: string; text?: string }): Promise<Changed>;
    cancel(word: string, options: { by: string; text?: string }): Promise<Changed>;
    remove(word: string): Promise<unknown>;
  };
  idOf(view: View | Changed): string;
  /** The name that events record for the user who pauses or cancels. Default: `user`. */
  actor?(context: CliContext): string;
  list(context: CliContext, args: ParsedArguments): Promise<readonly Item[]>;
  /** Formats the output of `ls`; `lines` formats that of `show`. */
  rows(items: readonly Item[]): Line | Line[];
  lines(view: View): Line[];
  /** Reports that the job is paused. Default: how to resume it. */
  describePaused?(view: Changed): Omit<Result, "json">;
  /** Reports a job whose cancellation was requested. */
  reportCancelled(context: CliContext, args: ParsedArguments, view: Changed): Promise<number>;
  resume: RunCommand;
  /** Reports that a job was removed. Default: its id. */
  describeRemoved?(id: string): Omit<Result, "json">;
  /** Makes `rm --json` print an object per job instead of one list. */
  reportsEachRemoval?: boolean;
}

type JobHandler = <View, Changed, Item>(context: CliContext, args: ParsedArguments, kind: JobKind<View, Changed, Item>) => Promise<number>;

export const handleJobCommand: Readonly<Record<SharedCommand, JobHandler>> = {
  async ls(context, args, kind) {
    const items = await kind.list(context, args);
    return await printResult(context, args, { json: items, text: kind.rows(items) });
  },
  async show(context, args, kind) {
    const view = await kind.verbs(context.station).get(args.positionals[0] ?? "");
    return await printResult(context, args, { json: view, text: kind.lines(view) });
  },
  async pause(context, args, kind) {
    const { pause } = kind.verbs(context.station);
    if (pause === undefined) throw new CaissonError("internal", `a ${kind.verb} has no verb to pause it`);
    const view = await pause(args.positionals[0] ?? "", changeOptions(context, args, kind));
    const id = kind.idOf(view);
    const howToResume = { note: line`${id} starts nothing more until you run: caisson ${kind.verb} resume ${id}` };
    return await printResult(context, args, { json: view, ...(kind.describePaused?.(view) ?? howToResume) });
  },
  resume: (context, args, kind) => kind.resume(context, args),
  async cancel(context, args, kind) {
    const view = await kind.verbs(context.station).cancel(args.positionals[0] ?? "", changeOptions(context, args, kind));
    return await kind.reportCancelled(context, args, view);
  },
  async rm(context, args, kind) {
    const verbs = kind.verbs(context.station);
    const { describeRemoved = (id: string) => ({ text: line`${id}` }), reportsEachRemoval = false } = kind;
    return await removeNamed(context, args, {
      remove: async (word) => {
        const id = kind.idOf(await verbs.get(word));
        await verbs.remove(id);
        return id;
      },
      describe: describeRemoved,
      reportsEach: reportsEachRemoval,
    });
  },
};

/** Returns who changes a job, and the reason if the command has an option for it. */
function changeOptions(
  context: CliContext,
  args: ParsedArguments,
  { actor }: { actor?: (context: CliContext) => string },
): { by: string; text?: string } {
  const text = args.optionNames.includes("text") ? args.option("text") : undefined;
  return { by: actor?.(context) ?? "user", ...defined({ text }) };
}
