import { useState } from "react";
import type { StepOf } from "../../../../src/contract/workflow/workflow.ts";
import type { WorkflowView } from "../../../../src/contract/workflow/workflow-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { Ask } from "../../parts/ask.tsx";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, LongField } from "../../parts/field.tsx";
import { Markdown } from "../../parts/markdown.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import type { StepAttempt } from "./step-history.ts";
import { nodeAt, type StepNode } from "./step-tree.ts";
import styles from "./workflow.module.css";

interface AsksProps {
  view: WorkflowView;
  nodes: readonly StepNode[];
  history: ReadonlyMap<string, readonly StepAttempt[]>;
  onDone(view: WorkflowView): void;
}

/** The steps that wait for approval, each with the buttons to answer. */
export function WorkflowAsks({ view, nodes, history, onDone }: AsksProps) {
  const station = useStation();
  if (view.finish !== null) return null;
  const asking = view.steps.filter(({ kind, status }) => kind === "approval" && status === "running");
  return asking.map(({ path }) => {
    const tried = history.get(path)?.at(-1);
    if (tried?.answer) return null;
    const step = nodeAt(nodes, path)?.step as StepOf<"approval"> | undefined;
    const text = (tried?.given as { text?: string } | null | undefined)?.text ?? step?.text ?? "";
    const answer = (approved: boolean) => async (words: string) =>
      onDone(await station.workflows.approve(view.id, { approved, path, ...(words !== "" && { text: words }) }));
    return (
      <Ask
        key={path}
        title={`${path} needs approval`}
        field={{ label: "Comment" }}
        answers={[
          { label: "Approve", look: "main", give: answer(true), done: "Approved." },
          { label: "Reject", look: "danger", give: answer(false), done: "Rejected." },
        ]}
      >
        <Markdown text={text} />
      </Ask>
    );
  });
}

/** Sends a signal that a step waits for now or later. */
export function SendSignal({ view, onDone, onClose }: { view: WorkflowView; onDone(view: WorkflowView): void; onClose(): void }) {
  const station = useStation();
  const [name, setName] = useState(view.waits?.signal?.split(", ")[0] ?? "");
  const [data, setData] = useState("");
  const [problem, setProblem] = useState<string | undefined>();
  const send = async () => {
    let value: unknown = null;
    try {
      value = data.trim() === "" ? null : JSON.parse(data);
    } catch {
      return setProblem("This is not JSON.");
    }
    try {
      onDone(await station.workflows.signal(view.id, { name: name.trim(), data: value as never }));
      say(`The signal ${name.trim()} was sent.`);
      onClose();
    } catch (error) {
      sayProblem(error);
    }
  };
  return (
    <Dialog
      title="Send a signal"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="main" disabled={name.trim() === ""} onClick={() => void send()}>
            Send
          </Button>
        </>
      }
    >
      <div className={styles.send}>
        <Field
          label="Signal"
          hint="The name of the signal in the step's definition."
          value={name}
          onChange={(event) => setName(event.target.value)}
          data-first-focus=""
        />
        <LongField
          label="Data"
          placeholder='optional, such as { "version": 7 }'
          hint="JSON. Stored until a step receives it."
          problem={problem}
          value={data}
          onChange={(event) => setData(event.target.value)}
        />
      </div>
    </Dialog>
  );
}
