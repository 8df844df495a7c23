import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { printResult } from "../print-result.ts";
import { dim, type Line, line } from "../terminal/line.ts";

interface FollowedJob<View> {
  id: string;
  /** The command's name, and the key of the id in JSON. */
  verb: string;
  /** Follows the job's events until the signal. */
  events: (options: { fromSeq: number; follow: true; signal: AbortSignal }) => AsyncIterable<unknown>;
  /** The event to show first. Default: 1. */
  fromSeq?: number | undefined;
  progressLine: (event: unknown) => Line | null;
  wait: (options: { signal: AbortSignal }) => Promise<View>;
  resultLines: (view: View) => Line[];
}

/** Shows a job's progress until it ends, and then its result. Returns null if it is to work in the background. */
export async function followJob<View>(context: CliContext, args: ParsedArguments, job: FollowedJob<View>): Promise<View | null> {
  const { id, verb } = job;
  const isJson = args.flag("json");
  if (args.flag("detach")) {
    await printResult(context, args, { json: { [verb]: id }, text: line`${id}` });
    return null;
  }
  if (!isJson) await context.stdout.print(dim(id));
  const over = new AbortController();
  const printing = printProgress(context, job, { isJson, signal: over.signal });
  try {
    const view = await job.wait({ signal: context.interruption.signal });
    over.abort();
    await printing;
    await printResult(context, args, { json: view, text: job.resultLines(view) });
    return view;
  } finally {
    over.abort();
    await printing;
  }
}

async function printProgress<View>(
  context: CliContext,
  { events, progressLine, fromSeq = 1 }: FollowedJob<View>,
  { isJson, signal }: { isJson: boolean; signal: AbortSignal },
): Promise<void> {
  try {
    for await (const event of events({ fromSeq, follow: true, signal })) {
      const text = isJson ? null : progressLine(event);
      if (text !== null) await context.stderr.print(text);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
