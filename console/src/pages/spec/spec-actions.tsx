import { Download, Repeat2, Send } from "lucide-react";
import { useState } from "react";
import { phases, type SpecPhase } from "../../../../src/contract/spec/spec.ts";
import type { SpecView } from "../../../../src/contract/spec/spec-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ChoiceField } from "../../parts/field.tsx";
import { saveFile } from "../../parts/save-file.ts";
import { sayProblem } from "../../parts/toasts.tsx";
import { JobActions } from "../job/job-actions.tsx";
import { ShipDialog } from "../ship/ship-dialog.tsx";
import { phaseTitles } from "./phase-text.ts";

type Asking = "export" | "again" | "ship";

/** The actions on a whole spec. `onDone` reads it again. */
export function SpecActions({ view, onDone }: { view: SpecView; onDone(): void }) {
  const { specs } = useStation();
  const [asking, setAsking] = useState<Asking | null>(null);
  const close = () => setAsking(null);
  const { spec, status } = view;
  const isActive = status === "running" || status === "retrying" || status === "waiting" || status === "paused";
  return (
    <JobActions<unknown>
      noun="spec"
      id={spec}
      verbs={{ ...specs, resume: (id) => specs.execute(id, {}) }}
      can={{ resume: !isActive && status !== "done" && view.source !== null, cancel: isActive, remove: !isActive }}
      resumeLabel={status === "draft" ? "Run" : status === "planned" ? "Run the tasks" : "Resume"}
      cancelText="Stops its runs. The phases it wrote stay, and you can resume it."
      removeText="Deletes its phases for good. Its runs and sessions stay."
      onDone={onDone}
    >
      {(act) => (
        <>
          {status === "done" && view.session !== null && (
            <Button look="main" icon={<Send />} onClick={() => setAsking("ship")}>
              Ship…
            </Button>
          )}
          {!isActive && view.version > 0 && view.source !== null && (
            <Button look="plain" icon={<Repeat2 />} label="Rewrite from a phase" onClick={() => setAsking("again")} />
          )}
          <Button look="plain" icon={<Download />} label="Export" onClick={() => setAsking("export")} />
          {asking === "ship" && <ShipDialog of={spec} title={view.title} onClose={close} />}
          {asking === "export" && <ExportDialog view={view} onClose={close} />}
          {asking === "again" && <AgainDialog onChoose={(from) => act(specs.execute(spec, { from }))} onClose={close} />}
        </>
      )}
    </JobActions>
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
      <p>Markdown is easy to read in a repository or a ticket. JSON contains every phase as data.</p>
    </Dialog>
  );
}

function AgainDialog({ onChoose, onClose }: { onChoose(phase: SpecPhase): void; onClose(): void }) {
  const [phase, setPhase] = useState<SpecPhase>("requirements");
  return (
    <Dialog
      title="Rewrite from a phase"
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
            Rewrite
          </Button>
        </>
      }
    >
      <ChoiceField
        label="From"
        hint="Later phases are rewritten as well. Earlier versions stay."
        choices={phases.map((value) => ({ value, label: phaseTitles[value] }))}
        value={phase}
        onChoice={(value) => setPhase(value as SpecPhase)}
      />
    </Dialog>
  );
}
