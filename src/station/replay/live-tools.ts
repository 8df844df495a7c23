import type { RecordedResult, RunTool } from "../../agent/replay/replay-tools.ts";
import type { Tool, ToolContext, ToolResult } from "../../agent/tool.ts";
import { builtInTools } from "../../agent/tools/tool-set.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { ReplayDrift, ReplayedCall } from "../../contract/run/run-replay.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { diffLines } from "../../workspace/text-diff.ts";

const DIFF_LINES_MAX = 60;
const DIFF_CHARACTERS_MAX = 4000;
const CONTEXT_LINES = 1;
const ARGUMENTS_CHARACTERS_MAX = 300;
const FILES_MAX = 50;

/** Built-in tools that a replay never runs: they work on the log, or need the network. */
const recordedOnly: Readonly<Record<string, string>> = {
  recall: "it reads the log",
  todo_write: "it works on the log alone",
  todo_read: "it works on the log alone",
  web_fetch: "it needs the network",
  request_network: "it needs the network",
};
/** What the loop appended to a result, other than the tool. */
const ADDED = ["\n\n[network] ", "\n\nA hook objects to the result: ", "\n\nA hook stopped the run: "];

export interface LiveTools {
  runTool: RunTool;
  /** Returns the calls of the step so far, and forgets them. */
  takeCalls(): ReplayedCall[];
  /** The calls whose results differ. */
  readonly drift: readonly ReplayDrift[];
}

/** Runs tools again in a sandbox, and compares their results with the recorded ones. */
export function createLiveTools(options: {
  sandbox: () => Promise<Sandbox>;
  /** Splits a text into lines, some of which count as equal. */
  lines: (text: string) => string[];
  filesOf: (call: string) => readonly string[];
  stepOf: (call: string) => number;
  signal: AbortSignal;
}): LiveTools {
  let calls: ReplayedCall[] = [];
  const drift: ReplayDrift[] = [];
  return {
    drift,
    takeCalls: () => {
      const stepCalls = calls;
      calls = [];
      return stepCalls;
    },
    async runTool(tool, args, context, recorded) {
      const { name } = tool;
      const { call, outcome } = recorded;
      const why = reasonNotToRun(name, recorded);
      if (why !== null) return void calls.push({ call, name, outcome, isSame: null, why });
      const live = await runLive(tool, args, { ...context, sandbox: await options.sandbox(), signal: options.signal });
      const files = { recorded: options.filesOf(call), live: (live.files ?? []).map(({ kind, path }) => `${kind} ${path}`) };
      const [before, after] = [options.lines(withoutAdded(recorded.text)), options.lines(live.text)];
      const isSame =
        outcome === live.outcome && before.join("\n") === after.join("\n") && files.recorded.join("\n") === files.live.join("\n");
      calls.push({ call, name, outcome: live.outcome, isSame });
      if (isSame) return;
      const step = options.stepOf(call);
      const argsText = JSON.stringify(args) ?? "";
      drift.push({
        ...{ step, call, name, arguments: argsText.slice(0, ARGUMENTS_CHARACTERS_MAX).toWellFormed(), diff: shortDiff(before, after) },
        recorded: { outcome, files: files.recorded.slice(0, FILES_MAX) },
        live: { outcome: live.outcome, files: files.live.slice(0, FILES_MAX) },
      });
    },
  };
}

function reasonNotToRun(name: string, { outcome }: RecordedResult): string | null {
  if (name === "agent") return "sub-agents do not run again";
  if (!builtInTools.some((tool) => tool.name === name)) return "tools of MCP servers do not run again";
  if (outcome !== "ok" && outcome !== "error") return `the call was ${outcome}`;
  return recordedOnly[name] ?? null;
}

async function runLive(tool: Tool, args: unknown, context: ToolContext): Promise<Pick<ToolResult, "files" | "text" | "outcome">> {
  try {
    return await tool.run(args, context);
  } catch (error) {
    // A failure of the sandbox is none of the tool.
    if (!(error instanceof CaissonError) || ["lost", "protocol", "cancelled"].includes(error.code)) throw error;
    return { outcome: "error", text: error.sentences };
  }
}

function withoutAdded(text: string): string {
  const places = ADDED.map((part) => text.indexOf(part)).filter((at) => at !== -1);
  return places.length === 0 ? text : text.slice(0, Math.min(...places));
}

function shortDiff(before: readonly string[], after: readonly string[]): string {
  const pieces = diffLines(before, after);
  const diffed = pieces.flatMap(({ sign, lines }, index) => {
    if (sign !== " ") return lines.map((text) => `${sign}${text}`);
    const lead = index === 0 ? [] : lines.slice(0, CONTEXT_LINES);
    const trail = index === pieces.length - 1 ? [] : lines.slice(-CONTEXT_LINES);
    return (lead.length + trail.length >= lines.length ? lines : [...lead, ...trail]).map((text) => ` ${text}`);
  });
  if (pieces.every(({ sign }) => sign === " ")) return "";
  const text = diffed.slice(0, DIFF_LINES_MAX).join("\n");
  const isCut = diffed.length > DIFF_LINES_MAX || text.length > DIFF_CHARACTERS_MAX;
  return `${text.slice(0, DIFF_CHARACTERS_MAX).toWellFormed()}${isCut ? "\n…" : ""}`;
}
