import { useQueryClient } from "@tanstack/react-query";
import { Ban, Download, Play, Repeat2, Send, Trash2 } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import { phases, type SpecPhase } from "../../../../src/contract/spec.ts";
import type { SpecView } from "../../../../src/contract/spec-verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ChoiceField } from "../../parts/field.tsx";
import { saveFile } from "../../parts/save-file.ts";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { useStation } from "../../station/station.tsx";
import { lookAtWorkAgain } from "../../station/work-queries.ts";
import { ShipDialog } from "../ship/ship-dialog.tsx";
import { phaseTitles } from "./phase-text.ts";

type Asking = "cancel" | "remove" | "export" | "again" | "ship";

/** What can be done with a spec as a whole. `onDone` looks at it again. */
export function SpecActions({ view, onDone }: { view: SpecView; onDone(): void }) {
  const { specs } = useStation();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [asking, setAsking] = useState<Asking | null>(null);
  const [isBusy, setBusy] = useState(false);
  const close = () => setAsking(null);
  const { spec, status } = view;
  const isAtWork = status === "running" || status === "retrying" || status === "waiting" || status === "paused";
  const canGoOn = !isAtWork && status !== "done" && view.source !== null;
  const execute = (from?: SpecPhase) => {
    setBusy(true);
    specs
      .execute(spec, from === undefined ? {} : { from })
      .then(onDone, sayProblem)
      .finally(() => setBusy(false));
  };
  return (
    <>
      {canGoOn && (
        <Button look="main" icon={<Play />} disabled={isBusy} onClick={() => execute()}>
          {status === "draft" ? "Run" : status === "planned" ? "Do the tasks" : "Resume"}
        </Button>
      )}
      {status === "done" && view.session !== null && (
        <Button look="main" icon={<Send />} onClick={() => setAsking("ship")}>
          Ship…
        </Button>
      )}
      {isAtWork && (
        <Button look="danger" icon={<Ban />} onClick={() => setAsking("cancel")}>
          Cancel
        </Button>
      )}
      {!isAtWork && view.version > 0 && view.source !== null && (
        <Button look="plain" icon={<Repeat2 />} label="Write anew from a phase" onClick={() => setAsking("again")} />
      )}
      <Button look="plain" icon={<Download />} label="Export" onClick={() => setAsking("export")} />
      {!isAtWork && <Button look="danger" icon={<Trash2 />} label="Remove" onClick={() => setAsking("remove")} />}
      {asking === "ship" && <ShipDialog of={spec} title={view.title} onClose={close} />}
      {asking === "export" && <ExportDialog view={view} onClose={close} />}
      {asking === "again" && <AgainDialog onChoose={execute} onClose={close} />}
      {asking === "cancel" && (
        <Confirm
          title="Cancel this spec?"
          action="Cancel it"
          onClose={close}
          onConfirm={async () => {
            await specs.cancel(spec);
            onDone();
          }}
        >
          <p>Its runs are ended. What is written stays, and it can be resumed.</p>
        </Confirm>
      )}
      {asking === "remove" && (
        <Confirm
          title="Remove this spec?"
          action="Remove"
          onClose={close}
          onConfirm={async () => {
            await specs.remove(spec);
            say("The spec was removed.");
            lookAtWorkAgain(queries);
            navigate("/work");
          }}
        >
          <p>What was written for it is forgotten for good. Its runs and sessions stay.</p>
        </Confirm>
      )}
    </>
  );
}

function ExportDialog({ view, onClose }: { view: SpecView; onClose(): void }) {
  const { specs } = useStation();
  const save = (format: "markdown" | "json") => {
    specs.export(view.spec, { format }).then(({ text }) => {
      const [end, type] = format === "json" ? ["json", "application/json"] : ["md", "text/markdown;charset=utf-8"];
      saveFile(`${view.name ?? view.spec}.${end}`, text, type ?? "");
      onClose();
    }, sayProblem);
  };
  return (
    <Dialog
      title="Export this spec"
      onClose={onClose}
      actions={
        <>
          <Button onClick={() => save("json")}>JSON</Button>
          <Button look="main" onClick={() => save("markdown")}>
            Markdown
          </Button>
        </>
      }
    >
      <p>Markdown is for reading, in a repository or a ticket. JSON has every phase as data.</p>
    </Dialog>
  );
}

function AgainDialog({ onChoose, onClose }: { onChoose(phase: SpecPhase): void; onClose(): void }) {
  const [phase, setPhase] = useState<SpecPhase>("requirements");
  return (
    <Dialog
      title="Write it anew from a phase"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="main"
            onClick={() => {
              onChoose(phase);
              onClose();
            }}
          >
            Begin
          </Button>
        </>
      }
    >
      <ChoiceField
        label="From"
        hint="What comes after it is written anew, too. Earlier versions stay."
        choices={phases.map((value) => ({ value, label: phaseTitles[value] }))}
        value={phase}
        onChoice={(value) => setPhase(value as SpecPhase)}
      />
    </Dialog>
  );
}
