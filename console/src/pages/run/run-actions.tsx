import { useQueryClient } from "@tanstack/react-query";
import { Download, Pause, Repeat2, Send, Square } from "lucide-react";
import { useState } from "react";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { putRun } from "../../data/queries.ts";
import { useStation } from "../../data/station.tsx";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { ShipDialog } from "../ship/ship-dialog.tsx";
import { downloadRun } from "./export-run.ts";
import { ResumeRun } from "./resume-run.tsx";

/** The actions on a whole run. */
export function RunActions({ view }: { view: RunView }) {
  const station = useStation();
  const queries = useQueryClient();
  const [asking, setAsking] = useState<"stop" | "export" | "ship" | null>(null);
  const [isBusy, setBusy] = useState(false);
  const act = (action: () => Promise<unknown>) => {
    setBusy(true);
    action()
      .then(async () => putRun(queries, await station.runs.get(view.run)))
      .catch(sayProblem)
      .finally(() => setBusy(false));
  };
  const isHeld = view.status === "interrupted" || (view.status === "paused" && view.asked.length === 0);
  const hasFailed = view.status === "ended" && view.finish !== "done" && view.parent === null;
  const canStop = view.status !== "ended" && view.status !== "damaged";
  return (
    <>
      {(view.status === "running" || view.status === "created") && (
        <Button
          icon={<Pause />}
          disabled={isBusy}
          onClick={() => act(() => station.runs.pause(view.run, { text: "paused in the console" }))}
        >
          Pause
        </Button>
      )}
      {(isHeld || hasFailed) && (
        <ResumeRun
          {...{ view, isBusy }}
          onResume={(budgets) => act(() => station.runs.resume(view.run, { detached: true, ...(budgets !== null && { budgets }) }))}
        />
      )}
      {canStop && (
        <Button look="danger" icon={<Square />} disabled={isBusy} onClick={() => setAsking("stop")}>
          Stop
        </Button>
      )}
      {view.status === "ended" && view.finish === "done" && view.parent === null && (
        <Button icon={<Send />} onClick={() => setAsking("ship")}>
          Ship…
        </Button>
      )}
      <ButtonLink look="plain" icon={<Repeat2 />} label="Repeat with changes" href={`/start?from=${view.run}`} />
      <Button look="plain" icon={<Download />} label="Export" onClick={() => setAsking("export")} />
      {asking === "stop" && (
        <Confirm
          title="Stop this run?"
          action="Stop"
          onClose={() => setAsking(null)}
          onConfirm={async () => {
            await station.runs.stop(view.run);
            say("The run was stopped.");
          }}
        >
          <p>Interrupts the agent and removes its sandbox. Its files stay, and you can continue the run.</p>
        </Confirm>
      )}
      {asking === "ship" && <ShipDialog of={view.run} title={view.title} onClose={() => setAsking(null)} />}
      {asking === "export" && <ExportDialog view={view} onClose={() => setAsking(null)} />}
    </>
  );
}

function ExportDialog({ view, onClose }: { view: RunView; onClose(): void }) {
  const station = useStation();
  const save = (form: "json" | "html") => {
    downloadRun(station, view, form).then(onClose, sayProblem);
  };
  return (
    <Dialog
      title="Export this run"
      onClose={onClose}
      actions={
        <>
          <Button onClick={() => save("json")}>JSON</Button>
          <Button look="main" onClick={() => save("html")}>
            HTML file
          </Button>
        </>
      }
    >
      <p>The HTML file needs no station and contains no scripts. JSON contains every event as logged.</p>
    </Dialog>
  );
}
