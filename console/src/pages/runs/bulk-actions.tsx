import { useQueryClient } from "@tanstack/react-query";
import { Square, Trash2 } from "lucide-react";
import { useState } from "react";
import type { RunView } from "../../../../src/contract/run-verbs.ts";
import { plural } from "../../parts/amounts.ts";
import { BulkBar } from "../../parts/bulk-bar.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { dropRun } from "../../station/queries.ts";
import { useStation } from "../../station/station.tsx";
import { inTurns } from "./in-turns.ts";

/** What can be done with the runs that are chosen, all at once. */
export function BulkActions({ chosen, onClear }: { chosen: readonly RunView[]; onClear(): void }) {
  const station = useStation();
  const queries = useQueryClient();
  const [asking, setAsking] = useState<"stop" | "remove" | null>(null);
  const open = chosen.filter(({ status }) => status !== "ended");
  const ended = chosen.filter(({ status }) => status === "ended");
  const act = async (runs: readonly RunView[], what: { done: string; one(run: string): Promise<unknown> }) => {
    const failures = await inTurns(runs, ({ run }) => what.one(run));
    say(`${plural(runs.length - failures.length, "run")} ${what.done}`);
    if (failures[0] !== undefined) sayProblem(failures[0]);
    onClear();
  };
  const stop = () => act(open, { done: "stopped", one: (run) => station.runs.stop(run) });
  const remove = () =>
    act(ended, {
      done: "removed",
      async one(run) {
        await station.runs.remove(run);
        dropRun(queries, run);
      },
    });
  return (
    <BulkBar count={chosen.length} onClear={onClear}>
      <Button icon={<Square />} disabled={open.length === 0} onClick={() => setAsking("stop")}>
        Stop {open.length > 0 && open.length}
      </Button>
      <Button look="danger" icon={<Trash2 />} disabled={ended.length === 0} onClick={() => setAsking("remove")}>
        Remove {ended.length > 0 && ended.length}
      </Button>
      {asking === "stop" && (
        <Confirm title={`Stop ${plural(open.length, "run")}?`} action="Stop" onConfirm={stop} onClose={() => setAsking(null)}>
          <p>What they are doing is interrupted, and their sandboxes are removed. Their files stay, and they can be continued.</p>
        </Confirm>
      )}
      {asking === "remove" && (
        <Confirm title={`Remove ${plural(ended.length, "run")}?`} action="Remove" onConfirm={remove} onClose={() => setAsking(null)}>
          <p>Their logs and those of their sub-runs are forgotten for good. Their sessions, with what they changed, stay.</p>
          {open.length > 0 && <p>Those that have not ended are left as they are: {open.length}.</p>}
        </Confirm>
      )}
    </BulkBar>
  );
}
