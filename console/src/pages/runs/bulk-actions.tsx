import { useQueryClient } from "@tanstack/react-query";
import { Square, Trash2 } from "lucide-react";
import { useState } from "react";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { dropRun } from "../../data/queries.ts";
import { useStation } from "../../data/station.tsx";
import { plural } from "../../parts/amounts.ts";
import { BulkBar } from "../../parts/bulk-bar.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { inTurns } from "./in-turns.ts";

/** The actions on all selected runs. */
export function BulkActions({ chosen, onClear }: { chosen: readonly RunView[]; onClear(): void }) {
  const station = useStation();
  const queries = useQueryClient();
  const [asking, setAsking] = useState<"stop" | "remove" | null>(null);
  const open = chosen.filter(({ status }) => status !== "ended");
  const ended = chosen.filter(({ status }) => status === "ended");
  const act = async (runs: readonly RunView[], what: { done: string; one(run: string): Promise<unknown> }) => {
    const failures = await inTurns(runs, ({ run }) => what.one(run));
    say(`${plural(runs.length - failures.length, "run")} ${what.done}.`);
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
          <p>Interrupts the agents and removes their sandboxes. Their files stay, and you can continue the runs.</p>
        </Confirm>
      )}
      {asking === "remove" && (
        <Confirm title={`Remove ${plural(ended.length, "run")}?`} action="Remove" onConfirm={remove} onClose={() => setAsking(null)}>
          <p>Permanently removes their logs and those of their sub-runs. Their sessions and changes stay.</p>
          {open.length > 0 && <p>Runs that have not ended are skipped: {open.length}.</p>}
        </Confirm>
      )}
    </BulkBar>
  );
}
