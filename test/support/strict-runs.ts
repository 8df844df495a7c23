import type { Script } from "../../src/agent/model/scripted-model.ts";
import type { LoggedEvent, useRunsCli } from "./runs-cli.ts";

export const bash = (command: string) => ({ tool: "bash", arguments: { command } });

/** Returns why a run ended, or the type of its last event if it has not. */
export const reasonOf = (events: readonly LoggedEvent[]) => {
  const last = events.at(-1);
  return last?.type === "run.ended" ? last.data.reason : last?.type;
};

/** Starts runs of a script with strict permissions and without a workspace. */
export function strictRuns(cli: ReturnType<typeof useRunsCli>) {
  return async (script: Script, ...more: string[]) => {
    const going = cli.start([
      "run",
      "the task",
      "--no-workspace",
      "--permissions",
      "strict",
      "--model",
      await cli.script(script),
      "--json",
      ...more,
    ]);
    const created = await going.event("run.created");
    return { going, id: created.data.run };
  };
}
